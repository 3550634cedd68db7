package record

import "iter"

// Records walks the batch's records, and gives one error last if it is malformed. The record is the reader's: the same
// pointer each time, valid for one step. A nil scratch makes a new one.
func (b Batch) Records(scratch *Scratch) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		r, err := b.Reader(scratch)
		if err != nil {
			yield(nil, err)
			return
		}
		for r.Next() {
			if !yield(r.Record(), nil) {
				return
			}
		}
		if r.Err() != nil {
			yield(nil, r.Err())
		}
	}
}

// Batches walks the batches of a buffer and gives one error last if what is left is no whole batch: [ErrTruncated] for a
// cut one.
func Batches(buf []byte) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		for len(buf) > 0 {
			b, rest, err := Next(buf)
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(b, nil) {
				return
			}
			buf = rest
		}
	}
}
