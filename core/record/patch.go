package record

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// SetBaseOffset places the batch in the log. The field is outside the checksum, so appending costs no pass over the
// records.
func (b Batch) SetBaseOffset(o int64) { binary.BigEndian.PutUint64(b[atBaseOffset:], uint64(o)) }

// SetLeaderEpoch stamps the leader's epoch; outside the checksum too.
func (b Batch) SetLeaderEpoch(e int32) { binary.BigEndian.PutUint32(b[atLeaderEpoch:], uint32(e)) }

// SetLogAppendTime gives all records of a producer's batch the broker's time: it sets the type bit and the max timestamp,
// takes a delete horizon away, and makes a new checksum. The deltas stay as they came; readers ignore them.
func (b Batch) SetLogAppendTime(ms int64) {
	b.setTime(b.Attributes().settled()|logAppendTimeBit, ms)
}

// Settle makes the header of a producer's batch tell the truth that Validate found: the greatest timestamp of its records,
// the producer's kind of time, no delete horizon. It costs a new checksum only if something changes, which is when
// [Info.Untrue] is set. Not for topics with log append time: see SetLogAppendTime.
func (b Batch) Settle(i Info) {
	b.setTime(b.Attributes().settled(), i.MaxTimestamp)
}

// setTime writes attributes and max timestamp and makes a new checksum if one of them changed.
func (b Batch) setTime(a Attributes, ms int64) {
	if a == b.Attributes() && ms == b.MaxTimestamp() {
		return
	}
	binary.BigEndian.PutUint16(b[atAttributes:], uint16(a))
	binary.BigEndian.PutUint64(b[atMaxTimestamp:], uint64(ms))
	b.SetCRC()
}

// SetCRC computes the checksum anew, for a batch changed on purpose.
func (b Batch) SetCRC() { binary.BigEndian.PutUint32(b[atCRC:], b.checksum()) }

// checksum is the CRC-32C of everything behind the checksum field.
func (b Batch) checksum() uint32 { return crc32.Checksum(b[atAttributes:], castagnoli) }

// CheckCRC compares the checksum with the bytes; a [*CorruptError] when they differ.
func (b Batch) CheckCRC() error {
	if got := b.checksum(); got != b.CRC() {
		return &CorruptError{Field: "crc", Value: int64(b.CRC()), Want: formatCRC(got)}
	}
	return nil
}

func formatCRC(c uint32) string { return fmt.Sprintf("%d, as the bytes have it", c) }
