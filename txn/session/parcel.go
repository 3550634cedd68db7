package session

import (
	"sync/atomic"

	"github.com/millrace/millrace/core/record"
)

// parcelBytes is where a batch is full. Kafka's default limit of a topic is 1 MiB and
// 12 bytes; a record that is larger than this goes alone, and the broker decides.
const parcelBytes = 1_000_000

// parcel is one batch of one partition: it is filled by the owner of the producer,
// sealed, and from then on the sender's, until it is acknowledged and filled again.
type parcel struct {
	builder record.Builder
	batch   record.Batch // once it was sent the first time: it is repeated as it was
	marks   []mark
	kept    int // bytes that it takes while nothing is in it
}

// mark says which record of a parcel is the last one that an Ack collects.
type mark struct {
	ack  *Ack
	last int
}

// add appends a record.
func (p *parcel) add(ms int64, r *Record, headers []record.Header, ack *Ack) {
	p.builder.Append(ms, r.Key, r.Value, headers)
	if ack == nil {
		return
	}
	last := p.builder.Count() - 1
	for i := range p.marks {
		if p.marks[i].ack == ack {
			p.marks[i].last = last
			return
		}
	}
	p.marks = append(p.marks, mark{ack, last})
}

// room reports whether a record of so many bytes may join the others.
func (p *parcel) room(bytes int, most int) bool {
	return p.builder.Count() == 0 || p.builder.Size()+bytes <= most
}

// seal gives the parcel its place in the producer's sequence.
func (p *parcel) seal(from record.Producer) error {
	p.builder.SetProducer(from)
	var err error
	p.batch, err = p.builder.Batch()
	return err
}

// acknowledge tells who asked for it what the offsets are.
func (p *parcel) acknowledge(base int64) {
	for _, m := range p.marks {
		m.ack.next.Store(base + int64(m.last) + 1)
	}
}

// reset makes the parcel ready to be filled again.
func (p *parcel) reset(o record.BuilderOptions) {
	p.builder.Reset(o)
	p.batch = nil
	clear(p.marks)
	p.marks = p.marks[:0]
}

// Ack collects the acknowledgements of the records sent with it. The zero value
// is ready; it may be used for one partition at a time.
type Ack struct{ next atomic.Int64 }

// Next is the offset after the last acknowledged record, 0 when there was none.
func (a *Ack) Next() int64 { return a.next.Load() }
