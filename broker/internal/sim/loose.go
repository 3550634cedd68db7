package sim

import (
	"strconv"
	"time"

	"github.com/millrace/millrace/broker/internal/partition"
	"github.com/millrace/millrace/core/record"
)

// relaxed is a topic in which what is outside of transactions is acknowledged from the page cache.
const relaxed = "relaxed"

// bounds are how much of the relaxed topic a power cut may take.
type bounds struct {
	mode     string
	messages int64         // less than so many records, 0 for any
	after    time.Duration // what is older, 0 for whatever
}

func newBounds(w *world) bounds {
	b := bounds{mode: "os"}
	if w.chance(2) {
		b.mode, b.after = "interval", w.between(5*time.Millisecond, 300*time.Millisecond)
	}
	if w.chance(2) {
		b.messages = 2 + w.rng.Int64N(10)
	}
	return b
}

func (b bounds) settings() map[string]string {
	c := smallSegments()
	c["millrace.durability"] = b.mode
	if b.messages > 0 {
		c["flush.messages"] = strconv.FormatInt(b.messages, 10)
	}
	if b.after > 0 {
		c["flush.ms"] = strconv.FormatInt(max(b.after.Milliseconds(), 1), 10)
	}
	return c
}

// reopened holds a relaxed partition of a new run against what was seen of it. After a power cut its end may be missing: nothing out of
// the middle, nothing of a transaction that was acknowledged, not more than the bounds allow, and the leader epoch tells of it.
func (v *view) reopened(p *partition.Partition, m partition.Marks) {
	w := v.o.w
	gone := v.marks.HighWatermark - m.HighWatermark
	cut := v.o.n.cuts > v.cuts
	if v.cuts = v.o.n.cuts; gone <= 0 {
		v.compare(p, m.LogStart)
		return
	}
	w.see("a power cut takes the end of a relaxed log")
	switch {
	case !cut:
		w.fail("%s: the log ended at %d, now it ends at %d, and the power did not fail", v.name, v.marks.HighWatermark, m.HighWatermark)
	case v.bounds.messages > 0 && gone >= v.bounds.messages:
		w.fail("%s: a power cut took %d records, flush.messages is %d", v.name, gone, v.bounds.messages)
	case m.LeaderEpoch <= v.marks.LeaderEpoch:
		w.fail("%s: a power cut took what is behind %d, the leader epoch is still %d", v.name, m.HighWatermark, m.LeaderEpoch)
	}
	n := len(v.batches)
	for n > 0 && v.batches[n-1].last >= m.HighWatermark {
		n--
	}
	v.batches = v.batches[:n]
	v.compare(p, m.LogStart)
	v.forget(m.HighWatermark)
	v.next, v.batches, v.open, v.writers = 0, nil, 0, map[int64]*writer{}
	v.again = true
	high := m.HighWatermark
	v.read(p, m.LogStart, func(b record.Batch) {
		if b.BaseOffset() < high {
			v.take(b)
		}
	})
	v.again = false
	v.marks = partition.Marks{}
}

// forget takes back what is known of the records from an offset on.
func (v *view) forget(from int64) {
	kept := v.items[:0]
	for _, i := range v.items {
		if i.at < from {
			kept = append(kept, i)
			continue
		}
		if i.acked >= 0 && !i.weak {
			v.o.w.fail("%s: record %d of a transaction was acknowledged at offset %d, and a power cut took it", v.name, i.id, i.acked)
		}
		if i.at = -1; i.txn == nil {
			i.fate = undecided
		}
	}
	v.items = kept
}
