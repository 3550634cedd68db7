package producer

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/millrace/millrace/core/record"
)

// A snapshot is Kafka's file: int16 version 1, uint32 CRC-32C of all that follows, an int32 count and that many entries of
// 46 bytes. An entry has room for one batch only. What it has no room for stands in a section of ours behind the entries,
// which Kafka's checksum covers and Kafka's reader does not reach: it reads as many entries as the count says, and ignores
// the rest. So Kafka and its tools read our files, we read Kafka's, and after a restart all five batches of each producer
// are still known. A table without anything to add has no such section; its bytes are then those that Kafka writes.
//
// The section: the four bytes "MRp1", an int32 count, and for each producer int64 id, int16 epoch of its last marker, int8
// result of that (0 unknown, 1 abort, 2 commit), int64 time of its last activity, int8 number of batches, and for each
// batch, oldest first, int32 last sequence, int32 offset delta, int64 last offset, int64 timestamp.

const (
	snapshotVersion = 1
	snapshotHeader  = 10
	snapshotEntry   = 46
	sectionHeader   = 8
	sectionEntry    = 20
	sectionBatch    = 24
)

const sectionMagic = "MRp1"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrCorruptSnapshot says that bytes are no snapshot. The log is the truth: rebuild the table from it.
var ErrCorruptSnapshot = errors.New("producer: corrupt snapshot")

// Snapshot appends the table to dst. The same table gives the same bytes.
func (t *Table) Snapshot(dst []byte) []byte {
	es := t.sorted()
	start := len(dst)
	be := binary.BigEndian
	dst = be.AppendUint16(dst, snapshotVersion)
	dst = be.AppendUint32(dst, 0) // the checksum, below
	dst = be.AppendUint32(dst, uint32(len(es)))
	extra := 0
	for _, e := range es {
		var last seen
		last.lastSequence, last.lastOffset = record.NoSequence, -1
		if e.n > 0 {
			last = e.window[e.n-1]
		}
		dst = be.AppendUint64(dst, uint64(e.id))
		dst = be.AppendUint16(dst, uint16(e.epoch))
		dst = be.AppendUint32(dst, uint32(last.lastSequence))
		dst = be.AppendUint64(dst, uint64(last.lastOffset))
		dst = be.AppendUint32(dst, uint32(last.offsetDelta))
		dst = be.AppendUint64(dst, uint64(e.timestampMs))
		dst = be.AppendUint32(dst, uint32(e.coordinatorEpoch))
		dst = be.AppendUint64(dst, uint64(e.txnFirstOffset))
		if !e.plain() {
			extra++
		}
	}
	if extra > 0 {
		dst = append(dst, sectionMagic...)
		dst = be.AppendUint32(dst, uint32(extra))
		for _, e := range es {
			if !e.plain() {
				dst = e.appendSection(dst)
			}
		}
	}
	be.PutUint32(dst[start+2:], crc32.Checksum(dst[start+6:], castagnoli))
	return dst
}

// plain tells whether Kafka's entry says all there is to know: restoring from it alone gives this very entry.
func (e *entry) plain() bool {
	if e.n > 1 {
		return false
	}
	restored := entry{n: e.n, epoch: e.epoch, timestampMs: e.timestampMs, coordinatorEpoch: e.coordinatorEpoch}
	restored.infer()
	return (e.n == 0 || e.window[0].timestampMs == e.timestampMs) &&
		e.seenMs == restored.seenMs && e.markerEpoch == restored.markerEpoch && e.markerResult == restored.markerResult
}

// infer fills in what Kafka's entry does not say. With a coordinator's epoch and nothing written under the producer's, the
// last thing in the log is a marker of this epoch.
func (e *entry) infer() {
	e.seenMs = e.timestampMs
	e.markerEpoch, e.markerResult = noMarker, resultUnknown
	if e.n == 0 && e.coordinatorEpoch >= 0 {
		e.markerEpoch = e.epoch
	}
}

func (e *entry) appendSection(dst []byte) []byte {
	be := binary.BigEndian
	dst = be.AppendUint64(dst, uint64(e.id))
	dst = be.AppendUint16(dst, uint16(e.markerEpoch))
	dst = append(dst, byte(e.markerResult))
	dst = be.AppendUint64(dst, uint64(e.seenMs))
	dst = append(dst, byte(e.n))
	for _, s := range e.window[:e.n] {
		dst = be.AppendUint32(dst, uint32(s.lastSequence))
		dst = be.AppendUint32(dst, uint32(s.offsetDelta))
		dst = be.AppendUint64(dst, uint64(s.lastOffset))
		dst = be.AppendUint64(dst, uint64(s.timestampMs))
	}
	return dst
}
