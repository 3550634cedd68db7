package sim

import (
	"github.com/millrace/millrace/broker/internal/partition"
	"github.com/millrace/millrace/core/record"
)

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
