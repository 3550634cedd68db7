package record

import (
	"encoding/binary"
	"hash/crc32"
)

// HeaderSize is the number of bytes before the first record of a batch, and so the size of a batch whose records
// compaction has all removed.
const HeaderSize = 61

// overhead is what stands before the part that the length field counts.
const overhead = 12

// Offsets of the header fields, in bytes from the start of the batch.
const (
	atBaseOffset      = 0
	atLength          = 8
	atLeaderEpoch     = 12
	atMagic           = 16
	atCRC             = 17
	atAttributes      = 21
	atLastOffsetDelta = 23
	atBaseTimestamp   = 27
	atMaxTimestamp    = 35
	atProducerID      = 43
	atProducerEpoch   = 51
	atBaseSequence    = 53
	atCount           = 57
)

// NoProducerID, NoProducerEpoch and NoSequence are what a batch carries that no idempotent producer wrote.
const (
	NoProducerID    = -1
	NoProducerEpoch = -1
	NoSequence      = -1
)

// NoTimestamp is what a record carries to which its producer gave no time.
const NoTimestamp = -1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Batch is the bytes of exactly one record batch of format 2, header included. It is a view of a buffer that somebody
// else owns: nothing here copies it, accessors do not allocate, and the setters write through. Every Batch that comes out
// of [Next], [Single], [Builder.Batch] or [BuildControl] is at least [HeaderSize] bytes long; accessors panic on anything
// shorter, as an index out of range would.
type Batch []byte

// Next splits the first batch off buf by its length field. The batch's content is not looked at: see [Batch.CheckCRC] and
// [Batch.Validate]. It gives [ErrTruncated] when buf ends inside the batch (an empty buf too), and a [*CorruptError] when
// the length field or the magic byte cannot belong to a batch of format 2.
func Next(buf []byte) (b Batch, rest []byte, err error) {
	if len(buf) < overhead {
		return nil, buf, ErrTruncated
	}
	n := int32(binary.BigEndian.Uint32(buf[atLength:]))
	if n < HeaderSize-overhead {
		return nil, buf, &CorruptError{Field: "length", Value: int64(n), Want: "at least 49"}
	}
	if len(buf) > atMagic && buf[atMagic] != 2 {
		return nil, buf, &CorruptError{Field: "magic", Value: int64(int8(buf[atMagic])), Want: "2"}
	}
	size := int(n) + overhead
	if len(buf) < size {
		return nil, buf, ErrTruncated
	}
	return Batch(buf[:size:size]), buf[size:], nil
}

// PeekSize says how many bytes the batch takes whose first bytes are given, without having it whole: what a reader of a
// file needs to know before it reads on. At least 17 bytes (up to the magic byte) must be there, else [ErrTruncated].
func PeekSize(head []byte) (int, error) {
	if len(head) <= atMagic {
		return 0, ErrTruncated
	}
	n := int32(binary.BigEndian.Uint32(head[atLength:]))
	if n < HeaderSize-overhead {
		return 0, &CorruptError{Field: "length", Value: int64(n), Want: "at least 49"}
	}
	if head[atMagic] != 2 {
		return 0, &CorruptError{Field: "magic", Value: int64(int8(head[atMagic])), Want: "2"}
	}
	return int(n) + overhead, nil
}

// BaseOffset is the offset that the record with offset delta 0 has or had.
func (b Batch) BaseOffset() int64 { return int64(binary.BigEndian.Uint64(b[atBaseOffset:])) }

// LastOffset is the offset of the last record that the batch was written with. Compaction keeps it, also when that record
// or all of them are gone, so the next batch starts at LastOffset+1 or later.
func (b Batch) LastOffset() int64 { return b.BaseOffset() + int64(b.LastOffsetDelta()) }

// LastOffsetDelta is LastOffset less BaseOffset.
func (b Batch) LastOffsetDelta() int32 {
	return int32(binary.BigEndian.Uint32(b[atLastOffsetDelta:]))
}

// LeaderEpoch is the epoch of the leader that appended the batch; -1 before it is appended.
func (b Batch) LeaderEpoch() int32 { return int32(binary.BigEndian.Uint32(b[atLeaderEpoch:])) }

// Magic is the format, always 2 here.
func (b Batch) Magic() int8 { return int8(b[atMagic]) }

// CRC is the CRC-32C in the header; see [Batch.CheckCRC].
func (b Batch) CRC() uint32 { return binary.BigEndian.Uint32(b[atCRC:]) }

// Attributes are the batch's flags and its codec.
func (b Batch) Attributes() Attributes {
	return Attributes(binary.BigEndian.Uint16(b[atAttributes:]))
}

// BaseTimestamp is what the records' timestamp deltas count from, in ms since 1970. With [Attributes.DeleteHorizon] it is
// also the time from which tombstones and markers of the batch may go (KIP-534).
func (b Batch) BaseTimestamp() int64 { return int64(binary.BigEndian.Uint64(b[atBaseTimestamp:])) }

// MaxTimestamp is the greatest timestamp of the batch in ms since 1970; with [Attributes.LogAppendTime] the timestamp of
// every record in it. Compaction keeps it even when the record that had it is gone.
func (b Batch) MaxTimestamp() int64 { return int64(binary.BigEndian.Uint64(b[atMaxTimestamp:])) }

// ProducerID is the idempotent producer's id; negative when there is none.
func (b Batch) ProducerID() int64 { return int64(binary.BigEndian.Uint64(b[atProducerID:])) }

// HasProducer tells whether an idempotent producer wrote the batch. Any negative id means none, as in Kafka.
func (b Batch) HasProducer() bool { return b.ProducerID() >= 0 }

// ProducerEpoch is the epoch under which ProducerID wrote.
func (b Batch) ProducerEpoch() int16 { return int16(binary.BigEndian.Uint16(b[atProducerEpoch:])) }

// BaseSequence is the sequence number of the record with offset delta 0; it means nothing without a producer.
func (b Batch) BaseSequence() int32 { return int32(binary.BigEndian.Uint32(b[atBaseSequence:])) }

// LastSequence is the sequence number of the last record. Sequences wrap from 2^31-1 to 0. A batch without a base
// sequence (a marker) has none: -1.
func (b Batch) LastSequence() int32 {
	base := b.BaseSequence()
	if base < 0 {
		return NoSequence
	}
	return AddSequence(base, b.LastOffsetDelta())
}

// AddSequence is the sequence number that stands n after s, wrapping from 2^31-1 to 0. Both must not be negative.
func AddSequence(s, n int32) int32 { return int32((uint32(s) + uint32(n)) & 0x7fffffff) }

// Count is the number of records that the header claims.
func (b Batch) Count() int32 { return int32(binary.BigEndian.Uint32(b[atCount:])) }

// payload is what follows the header: the records, compressed as Attributes say.
func (b Batch) payload() []byte { return b[HeaderSize:] }
