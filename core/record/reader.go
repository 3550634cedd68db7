package record

import (
	"fmt"
	"iter"
)

// Record is one record of a batch. Its slices are views: they alias the batch or, if the batch was compressed, the
// [Scratch], and hold until the next use of either. A nil slice is null, an empty one is empty.
type Record struct {
	Offset int64
	// Timestamp in ms since 1970: the producer's, or the broker's if the batch has [Attributes.LogAppendTime]. -1 is none.
	Timestamp int64
	Key       []byte
	Value     []byte
	Headers   []Header
}

// Header is a name and a value of a record. A name may occur twice; order is kept.
type Header struct {
	Key   []byte
	Value []byte // nil is null
}

// Reader walks the records of one batch:
//
//	r, err := b.Reader(&scratch)
//	for r.Next() {
//		use(r.Record())
//	}
//	err = r.Err()
//
// It does not check the checksum ([Batch.CheckCRC]), and it trusts nothing else either: a batch that lies about its
// records ends in an error, after the records that were sound.
type Reader struct {
	batch   Batch
	scratch *Scratch
	p       []byte
	i       int
	index   int32
	count   int32
	raw     raw
	rec     Record
	err     error

	baseOffset, baseTimestamp, appendTime int64
	logAppendTime                         bool
}

// Reader gives a reader of the batch's records and decompresses them if need be. With a scratch it allocates nothing in
// the long run; the reader then lives in the scratch and is good until the next use of it. A nil scratch makes a new one.
// The error is that of the codec, or says that the records take more than the scratch allows.
func (b Batch) Reader(scratch *Scratch) (*Reader, error) {
	if scratch == nil {
		scratch = new(Scratch)
	}
	p, err := scratch.records(b, scratch.limit())
	if err != nil {
		return nil, err
	}
	r := &scratch.reader
	*r = Reader{
		batch: b, scratch: scratch, p: p, count: b.Count(),
		baseOffset: b.BaseOffset(), baseTimestamp: b.BaseTimestamp(), appendTime: b.MaxTimestamp(),
		logAppendTime: b.Attributes().LogAppendTime(),
	}
	if r.count < 0 {
		return nil, &CorruptError{Field: "count", Value: int64(r.count), Want: "0 or more"}
	}
	return r, nil
}

// Next moves to the next record. It gives false behind the last one and on an error; see [Reader.Err].
func (r *Reader) Next() bool {
	if r.index >= r.count || r.err != nil {
		if r.err == nil && r.i != len(r.p) {
			r.err = &CorruptError{Field: fieldRecords, Value: int64(r.count), Want: fmt.Sprintf("%d bytes are left behind the last record", len(r.p)-r.i)}
		}
		return false
	}
	next, reason := scan(r.p, r.i, &r.raw)
	if reason != "" {
		r.err = &CorruptError{Field: fieldRecords, Value: int64(r.index), Want: reason}
		return false
	}
	r.i = next
	r.index++
	r.rec.Offset = r.baseOffset + int64(r.raw.offsetDelta)
	r.rec.Timestamp = r.appendTime
	if !r.logAppendTime {
		r.rec.Timestamp = r.baseTimestamp + r.raw.timeDelta
	}
	r.rec.Key, r.rec.Value = r.raw.key, r.raw.value
	r.rec.Headers = nil
	if r.raw.headerCount > 0 {
		r.readHeaders()
	}
	return true
}

// readHeaders fills the scratch's slice; scan has checked the bytes, so it grows with what is really there.
func (r *Reader) readHeaders() {
	hs, p, i := r.scratch.headers[:0], r.raw.headers, 0
	for range r.raw.headerCount {
		var h Header
		h.Key, i = nullable(p, i)
		h.Value, i = nullable(p, i)
		hs = append(hs, h)
	}
	r.scratch.headers = hs
	r.rec.Headers = hs
}

// Record is the current record; the pointer stays the same, what it points to changes with Next.
func (r *Reader) Record() *Record { return &r.rec }

// OffsetDelta is the current record's offset less the batch's base offset.
func (r *Reader) OffsetDelta() int32 { return r.raw.offsetDelta }

// Sequence is the current record's sequence number, -1 if the batch has none.
func (r *Reader) Sequence() int32 {
	base := r.batch.BaseSequence()
	if base < 0 || r.raw.offsetDelta < 0 {
		return NoSequence
	}
	return AddSequence(base, r.raw.offsetDelta)
}

// Err is what ended the walk, nil at the proper end.
func (r *Reader) Err() error { return r.err }

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
