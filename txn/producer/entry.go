package producer

import "github.com/millrace/millrace/core/record"

// Window is how many of its last batches a producer's duplicates are recognised among. It equals the most requests that an
// idempotent producer may have under way (max.in.flight.requests.per.connection), so every batch that can be sent again is
// in it.
const Window = 5

// seen is one batch of the window.
type seen struct {
	lastSequence int32
	offsetDelta  int32 // last offset less base offset
	lastOffset   int64
	timestampMs  int64
}

func (s seen) baseSequence() int32 { return addSequence(s.lastSequence, -s.offsetDelta) }

// addSequence moves along the ring of sequence numbers, 0 to 2^31-1, either way.
func addSequence(s, n int32) int32 { return int32((uint32(s) + uint32(n)) & 0x7fffffff) }

// markerResult is how the last marker ended its transaction.
type markerResult int8

const (
	resultUnknown markerResult = iota // restored from a snapshot that doesn't say
	resultAbort
	resultCommit
)

// noMarker stands for the epoch of a marker that never came.
const noMarker int16 = -1

// entry is all about one producer. Epochs only rise, except by Apply, which believes the log.
type entry struct {
	id    int64
	epoch int16
	// window[:n] are the last batches under epoch, oldest first.
	n                int8
	markerResult     markerResult
	markerEpoch      int16 // of the last marker
	coordinatorEpoch int32
	timestampMs      int64 // of the last batch or marker
	seenMs           int64
	window           [Window]seen

	txnFirstOffset int64 // -1 without an open transaction, and the entry is in Table.quiet; else it is in Table.open
	prev, next     *entry
}

// setEpoch takes over a new epoch, to which no batch of the window belongs.
func (e *entry) setEpoch(epoch int16) {
	if e.epoch != epoch {
		e.epoch, e.n = epoch, 0
	}
}

func (e *entry) push(s seen) {
	if e.n == Window {
		copy(e.window[:], e.window[1:])
		e.n--
	}
	e.window[e.n] = s
	e.n++
}

// lastOffset is the offset of the last record under the current epoch, -1 if there is none.
func (e *entry) lastOffset() int64 {
	if e.n == 0 {
		return -1
	}
	return e.window[e.n-1].lastOffset
}

// lastSequence is the sequence number of the last record under the current epoch, -1 if there is none.
func (e *entry) lastSequence() int32 {
	if e.n == 0 {
		return record.NoSequence
	}
	return e.window[e.n-1].lastSequence
}
