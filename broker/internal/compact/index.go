package compact

import (
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/txn/isolation"
)

// Index finds the last offset of each key in the part of a log that no round has seen yet.
type Index struct {
	table   *Table
	txns    txns
	from    int64
	next    int64 // all records below it are in the table
	full    bool
	scratch record.Scratch
}

// NewIndex begins an index of the records from an offset on. aborted are the aborted transactions that touch the part of the log
// whose batches come, by first offset.
func NewIndex(t *Table, from int64, aborted []isolation.AbortedTxn) *Index {
	return &Index{table: t, txns: newTxns(aborted), from: from, next: from}
}

// Add takes in the next batch, in log order from the segment on that holds the first offset. more is false once the table is full:
// then the round ends here.
func (x *Index) Add(b record.Batch) (more bool, err error) {
	if x.full {
		return false, nil
	}
	aborted, err := x.txns.needless(b)
	if err != nil {
		return false, err
	}
	if !aborted && !b.Attributes().Control() && b.LastOffset() >= x.from {
		if err := x.add(b); err != nil || x.full {
			return false, err
		}
	}
	x.next = max(x.next, b.LastOffset()+1)
	return true, nil
}

func (x *Index) add(b record.Batch) error {
	r, err := b.Reader(&x.scratch)
	if err != nil {
		return err
	}
	for r.Next() {
		rec := r.Record()
		if rec.Offset < x.from || rec.Key == nil {
			continue
		}
		if !x.table.Put(rec.Key, rec.Offset) {
			x.next, x.full = max(x.next, rec.Offset), true
			return nil
		}
	}
	x.scratch.Release()
	return r.Err()
}

// Next is the offset behind what the table knows: the next round begins there.
func (x *Index) Next() int64 { return x.next }
