package record

import (
	"encoding/binary"
	"fmt"
)

// Marker is the end of a transaction on one partition: a control batch with one record.
type Marker struct {
	ProducerID int64
	// ProducerEpoch is the epoch the marker carries: under transaction version 2 one more than the data's, under 0 and 1
	// the same.
	ProducerEpoch int16
	Commit        bool // else abort
	// CoordinatorEpoch is the leader epoch of the coordinator's partition, which fences an old coordinator.
	CoordinatorEpoch int32
	TimestampMs      int64
}

// Types of control records. The others belong to the metadata log.
const (
	controlAbort  = 0
	controlCommit = 1
)

// markerSize is the whole of a marker's batch: the header and a record of 17 bytes.
const markerSize = HeaderSize + 17

// BuildControl appends the batch of a marker to dst and returns it; base offset 0 and leader epoch 0 are for the log to
// patch. The bytes are those that Kafka writes.
func BuildControl(dst []byte, m Marker) Batch {
	start := len(dst)
	dst = append(dst, make([]byte, markerSize)...)
	b := Batch(dst[start:])
	binary.BigEndian.PutUint32(b[atLength:], markerSize-overhead)
	b[atMagic] = 2
	binary.BigEndian.PutUint16(b[atAttributes:], uint16(transactionalBit|controlBit))
	binary.BigEndian.PutUint64(b[atBaseTimestamp:], uint64(m.TimestampMs))
	binary.BigEndian.PutUint64(b[atMaxTimestamp:], uint64(m.TimestampMs))
	binary.BigEndian.PutUint64(b[atProducerID:], uint64(m.ProducerID))
	binary.BigEndian.PutUint16(b[atProducerEpoch:], uint16(m.ProducerEpoch))
	binary.BigEndian.PutUint32(b[atBaseSequence:], 0xffffffff) // no sequence
	binary.BigEndian.PutUint32(b[atCount:], 1)
	r := b[HeaderSize:]
	r[0] = 16 << 1 // length of what follows, zigzag; attributes and both deltas are 0
	r[4] = 4 << 1  // key: version 0, type
	if m.Commit {
		r[8] = controlCommit
	}
	r[9] = 6 << 1 // value: version 0, coordinator epoch
	binary.BigEndian.PutUint32(r[12:], uint32(m.CoordinatorEpoch))
	b.SetCRC()
	return b
}

// Marker reads the end of a transaction. ok is false, without an error, for a batch that is none: data, another type of
// control record, or a marker that compaction has emptied. The error is about a control batch that does not parse.
func (b Batch) Marker() (m Marker, ok bool, err error) {
	if !b.Attributes().Control() || b.Count() == 0 {
		return Marker{}, false, nil
	}
	r, err := b.Reader(nil)
	if err != nil {
		return Marker{}, false, err
	}
	if !r.Next() {
		return Marker{}, false, r.Err()
	}
	k, v := r.Record().Key, r.Record().Value
	if len(k) < 4 {
		return Marker{}, false, &CorruptError{Field: fieldRecords, Want: fmt.Sprintf("a control record has a key of %d bytes, at least 4 are needed", len(k))}
	}
	typ := binary.BigEndian.Uint16(k[2:])
	if typ != controlAbort && typ != controlCommit {
		return Marker{}, false, nil
	}
	if len(v) < 6 {
		return Marker{}, false, &CorruptError{Field: fieldRecords, Want: fmt.Sprintf("a marker has a value of %d bytes, at least 6 are needed", len(v))}
	}
	return Marker{
		ProducerID:       b.ProducerID(),
		ProducerEpoch:    b.ProducerEpoch(),
		Commit:           typ == controlCommit,
		CoordinatorEpoch: int32(binary.BigEndian.Uint32(v[2:])),
		TimestampMs:      r.Record().Timestamp,
	}, true, nil
}
