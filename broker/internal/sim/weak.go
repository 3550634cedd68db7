package sim

import (
	"github.com/twmb/franz-go/pkg/kmsg"
)

// unheard sends a batch whose sender wants no answer. What becomes of it only the log tells.
func (p *producer) unheard(b *batch, req *kmsg.ProduceRequest) {
	sent := p.tell(toData, req)
	p.w.see("produce without an answer")
	p.after(0, "sent", func() {
		i := p.place(b)
		if i < 0 {
			return // given up meanwhile
		}
		p.pending = append(p.pending[:i], p.pending[i+1:]...)
		if !sent {
			p.w.log("%s: nobody listens, %d records are lost", p.name, len(b.items))
		}
		b.done(good)
	})
}

// lost tells whether a record may be missing that was acknowledged from the page cache: a power cut came since.
func (o *oracle) lost(i *item) bool {
	gone := i.weak && i.at < 0 && o.n.cuts > i.cuts
	if gone && i.acked >= 0 {
		o.w.see("acknowledged from the page cache and lost")
	}
	return gone
}

// kept checks, when a producer is told that its transaction is committed, that what was acknowledged to it is in the log: the
// decision waits for records that were acknowledged from the page cache.
func (o *oracle) kept(t *txn) {
	for _, i := range t.items {
		if i.weak && i.acked >= 0 && i.at < 0 && !o.lost(i) && !o.dropped[i.topic] {
			o.w.fail("%s is told that its transaction is committed, record %d at %s-%d offset %d is not durable, and the power did not fail",
				t.id, i.id, i.topic, i.partition, i.acked)
			return
		}
	}
}
