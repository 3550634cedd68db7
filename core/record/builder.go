package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Producer is who an idempotent or transactional batch comes from.
type Producer struct {
	ID       int64
	Epoch    int16
	Sequence int32 // of the batch's first record; -1 if the broker itself writes for the producer
}

// BuilderOptions say what a batch is. The zero value is an uncompressed batch at offset 0 without a producer.
type BuilderOptions struct {
	Codec Codec
	// Level is how hard the codec tries, in its own numbers, which are Kafka's compression.*.level: gzip 1 to 9, lz4 1 to 17, zstd
	// -131072 to 22. 0 is a fast one of each. An encoder has fewer steps than that, and takes the nearest.
	Level      int
	BaseOffset int64
	// LeaderEpoch is for the log to stamp; a producer would send -1, which nobody looks at.
	LeaderEpoch int32
	// Producer is nil for a batch without idempotence. (It is a pointer because 0 is a producer id like any other.)
	Producer *Producer
	// Transactional puts the batch into the open transaction of its Producer, which must be set then.
	Transactional bool
	// Control marks a control batch; markers have [BuildControl].
	Control bool
}

// maxBatchSize is what the length field can say.
const maxBatchSize = math.MaxInt32

// ErrEmpty says that a batch without records was asked of a Builder.
var ErrEmpty = errors.New("record: a batch needs at least one record")

// Builder makes batches. Its buffers are used again from batch to batch, so that in the long run it allocates nothing. The
// zero value is ready and stands for the zero BuilderOptions. Not safe for concurrent use.
type Builder struct {
	opts        BuilderOptions // without Producer, which is here:
	producer    Producer
	hasProducer bool

	raw    []byte // header and uncompressed records
	packed []byte // header and compressed records
	count  int32
	baseTs int64
	maxTs  int64
	err    error
}

// Reset starts a new batch. The batch that the builder gave before is no longer valid.
func (b *Builder) Reset(o BuilderOptions) {
	*b = Builder{opts: o, raw: b.raw[:0], packed: b.packed[:0]}
	if o.Producer != nil { // copied: no pointer to the caller's memory stays here
		b.producer, b.hasProducer, b.opts.Producer = *o.Producer, true, nil
	}
}

// Append adds a record: its time in ms since 1970, key and value (nil is null), headers. Bytes are copied. Offsets and
// sequences count up from the batch's first. An error, such as a batch over 2 GiB, comes out of Batch.
func (b *Builder) Append(timestampMs int64, key, value []byte, headers []Header) {
	if b.err != nil {
		return
	}
	if b.count == 0 {
		b.raw = append(b.raw[:0], make([]byte, HeaderSize)...)
		b.baseTs, b.maxTs = timestampMs, timestampMs
	}
	b.maxTs = max(b.maxTs, timestampMs)
	delta := timestampMs - b.baseTs
	body := 1 + varintSize(delta) + varintSize(int64(b.count)) + nullableSize(key) + nullableSize(value) + varintSize(int64(len(headers)))
	for i := range headers {
		h := &headers[i]
		body += varintSize(int64(len(h.Key))) + len(h.Key) + nullableSize(h.Value)
	}
	if len(b.raw)+body+5 > maxBatchSize || b.count == math.MaxInt32 {
		b.err = fmt.Errorf("record: a record of %d bytes does not fit into a batch that has %d bytes already, the most is %d", body, len(b.raw), maxBatchSize)
		return
	}
	dst := appendVarint(b.raw, int64(body))
	dst = append(dst, 0) // attributes
	dst = appendVarint(dst, delta)
	dst = appendVarint(dst, int64(b.count))
	dst = appendNullable(dst, key)
	dst = appendNullable(dst, value)
	dst = appendVarint(dst, int64(len(headers)))
	for i := range headers {
		h := &headers[i]
		dst = appendVarint(dst, int64(len(h.Key)))
		dst = append(dst, h.Key...)
		dst = appendNullable(dst, h.Value)
	}
	b.raw = dst
	b.count++
}

// SetProducer says who the batch is from, for a producer that knows its sequence only when the batch is about to go out. It
// replaces what Reset was given.
func (b *Builder) SetProducer(p Producer) { b.producer, b.hasProducer = p, true }

// Count is how many records the batch has so far.
func (b *Builder) Count() int { return int(b.count) }

// Size is how many bytes the batch has so far, header included, before compression.
func (b *Builder) Size() int {
	if b.count == 0 {
		return HeaderSize
	}
	return len(b.raw)
}

// Batch finishes the batch. It lives in the builder's memory and is valid until Reset or Append. It may be called again;
// then it makes the batch anew.
func (b *Builder) Batch() (Batch, error) {
	if b.err != nil {
		return nil, b.err
	}
	if b.count == 0 {
		return nil, ErrEmpty
	}
	if b.opts.Transactional && !b.hasProducer {
		return nil, errors.New("record: a transactional batch needs a producer")
	}
	out := b.raw
	if b.opts.Codec != None {
		packed, err := compress(b.opts.Codec, b.opts.Level, append(b.packed[:0], b.raw[:HeaderSize]...), b.raw[HeaderSize:])
		b.packed = packed
		if err != nil {
			return nil, err
		}
		out = packed
	}
	if len(out) > maxBatchSize {
		return nil, fmt.Errorf("record: the batch has %d bytes, the most is %d", len(out), maxBatchSize)
	}
	batch := Batch(out[:len(out):len(out)])
	b.writeHeader(batch)
	return batch, nil
}

func (b *Builder) writeHeader(h Batch) {
	attr := Attributes(b.opts.Codec)
	if b.opts.Transactional {
		attr |= transactionalBit
	}
	if b.opts.Control {
		attr |= controlBit
	}
	p := Producer{ID: NoProducerID, Epoch: NoProducerEpoch, Sequence: NoSequence}
	if b.hasProducer {
		p = b.producer
	}
	h.SetBaseOffset(b.opts.BaseOffset)
	h.SetLeaderEpoch(b.opts.LeaderEpoch)
	h[atMagic] = 2
	binary.BigEndian.PutUint32(h[atLength:], uint32(len(h)-overhead))
	binary.BigEndian.PutUint16(h[atAttributes:], uint16(attr))
	binary.BigEndian.PutUint32(h[atLastOffsetDelta:], uint32(b.count-1))
	binary.BigEndian.PutUint64(h[atBaseTimestamp:], uint64(b.baseTs))
	binary.BigEndian.PutUint64(h[atMaxTimestamp:], uint64(b.maxTs))
	binary.BigEndian.PutUint64(h[atProducerID:], uint64(p.ID))
	binary.BigEndian.PutUint16(h[atProducerEpoch:], uint16(p.Epoch))
	binary.BigEndian.PutUint32(h[atBaseSequence:], uint32(p.Sequence))
	binary.BigEndian.PutUint32(h[atCount:], uint32(b.count))
	h.SetCRC()
}

func nullableSize(p []byte) int {
	if p == nil {
		return 1
	}
	return varintSize(int64(len(p))) + len(p)
}

func appendNullable(dst, p []byte) []byte {
	if p == nil {
		return append(dst, 1) // -1
	}
	return append(appendVarint(dst, int64(len(p))), p...)
}
