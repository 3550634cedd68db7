package record

import "fmt"

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

// TimestampDelta is what the current record stores as its timestamp less the batch's base timestamp. With
// [Attributes.LogAppendTime] it is the producer's, which [Record.Timestamp] then does not show.
func (r *Reader) TimestampDelta() int64 { return r.raw.timeDelta }

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

// DefaultMaxDecompressed is how many bytes the records of one batch may take once they are decompressed, where the caller
// sets no limit. A batch of the usual 1 MiB at most, packed as well as 128 to 1, stays below it.
const DefaultMaxDecompressed = 128 << 20

// keepDecompressed is the size up to which a Scratch keeps its buffer for the next batch.
const keepDecompressed = 8 << 20

// Scratch is the working memory that reading a batch needs: a buffer for decompressed records, a reader, a slice of
// headers. Used again for batch after batch it makes reading free of allocation. The zero value is ready. It serves one
// batch at a time and is not safe for concurrent use; what a reader gave out is valid until the next use of its Scratch.
type Scratch struct {
	// MaxDecompressed bounds the decompressed records of one batch, in bytes; 0 means [DefaultMaxDecompressed].
	MaxDecompressed int

	buf     []byte
	headers []Header
	reader  Reader
}

// Release lets a buffer go that one large batch has grown. Who keeps a Scratch for long (one per connection, say) calls it
// between batches; [Batch.Validate] does so itself.
func (s *Scratch) Release() {
	if cap(s.buf) > keepDecompressed {
		s.buf = nil
	}
}

func (s *Scratch) limit() int {
	if s.MaxDecompressed > 0 {
		return s.MaxDecompressed
	}
	return DefaultMaxDecompressed
}

// records gives the records of b, decompressed if need be, at most limit bytes of them.
func (s *Scratch) records(b Batch, limit int) ([]byte, error) {
	codec := b.Attributes().Codec()
	if codec == None {
		return b.payload(), nil
	}
	out, err := decompress(codec, s.buf[:0], b.payload(), limit)
	if cap(out) > cap(s.buf) {
		s.buf = out[:0]
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}
