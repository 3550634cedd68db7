package producer

import (
	"errors"
	"fmt"
)

// Kafka's error codes that this package answers with.
const (
	CodeOutOfOrderSequence     int16 = 45
	CodeInvalidProducerEpoch   int16 = 47
	CodeInvalidTxnState        int16 = 48
	CodeConcurrentTransactions int16 = 51
	CodeTxnCoordinatorFenced   int16 = 52
)

// ErrMarkerRepeated says that a refused marker is one that stands in the log already: the coordinator may take it for
// written. It comes wrapped in an [*Error] with INVALID_PRODUCER_EPOCH, Kafka's answer.
var ErrMarkerRepeated = errors.New("producer: the marker has been written before")

// Error is the refusal of a batch or a marker.
type Error struct {
	Code       int16 // Kafka's error code
	ProducerID int64
	Reason     string
	cause      error
}

func (e *Error) Error() string {
	return fmt.Sprintf("producer: id %d: %s", e.ProducerID, e.Reason)
}

// Unwrap is [ErrMarkerRepeated], or nil.
func (e *Error) Unwrap() error { return e.cause }

// ErrorCode is the code for the protocol.
func (e *Error) ErrorCode() int16 { return e.Code }

func refuse(code int16, id int64, format string, args ...any) *Error {
	return &Error{Code: code, ProducerID: id, Reason: fmt.Sprintf(format, args...)}
}

// Check decides about a data batch before it is appended. It changes nothing; after the append comes [Table.Apply]. A batch
// that is one of the producer's last [Window] under the same epoch is a duplicate: it is answered with the old offsets and
// not appended. The comparison is by sequence numbers, content is not looked at. An error is an [*Error]:
//   - INVALID_PRODUCER_EPOCH for an epoch that a newer one has fenced;
//   - OUT_OF_ORDER_SEQUENCE_NUMBER for a gap, for an overlap, for a duplicate too old for the window, and for a new epoch
//     that does not start at 0. A producer without an entry may start anywhere: the log may have forgotten it (KIP-360);
//   - INVALID_TXN_STATE for a batch outside a transaction while its producer has one open;
//   - CONCURRENT_TRANSACTIONS for a batch of a new epoch while the transaction of an older one is open. Kafka joins the
//     two, so that one marker ends both; the coordinator's protocol never lets it come so far unless a marker was lost.
func (t *Table) Check(b Batch) (dup Duplicate, isDup bool, err error) {
	if b.Epoch < 0 || b.BaseSequence < 0 {
		return Duplicate{}, false, refuse(CodeInvalidProducerEpoch, b.ProducerID, "epoch %d and base sequence %d must not be negative", b.Epoch, b.BaseSequence)
	}
	e := t.get(b.ProducerID)
	if e == nil {
		return Duplicate{}, false, nil
	}
	if d, ok := e.duplicate(b); ok {
		return d, true, nil
	}
	if b.Epoch < e.epoch {
		return Duplicate{}, false, refuse(CodeInvalidProducerEpoch, b.ProducerID, "epoch %d is fenced by epoch %d", b.Epoch, e.epoch)
	}
	want := int32(0)
	if b.Epoch == e.epoch && e.n > 0 {
		want = addSequence(e.lastSequence(), 1)
	}
	if b.BaseSequence != want {
		return Duplicate{}, false, refuse(CodeOutOfOrderSequence, b.ProducerID, "sequence %d under epoch %d, expected %d after sequence %d of epoch %d",
			b.BaseSequence, b.Epoch, want, e.lastSequence(), e.epoch)
	}
	if e.txnFirstOffset < 0 {
		return Duplicate{}, false, nil
	}
	if b.Epoch != e.epoch {
		return Duplicate{}, false, refuse(CodeConcurrentTransactions, b.ProducerID, "a batch of epoch %d while a transaction of epoch %d is open since offset %d",
			b.Epoch, e.epoch, e.txnFirstOffset)
	}
	if !b.Transactional {
		return Duplicate{}, false, refuse(CodeInvalidTxnState, b.ProducerID, "a batch outside a transaction while one is open since offset %d", e.txnFirstOffset)
	}
	return Duplicate{}, false, nil
}

// duplicate looks for the batch in the window.
func (e *entry) duplicate(b Batch) (Duplicate, bool) {
	if b.Epoch != e.epoch {
		return Duplicate{}, false
	}
	for i := e.n - 1; i >= 0; i-- {
		if s := e.window[i]; s.lastSequence == b.LastSequence && s.baseSequence() == b.BaseSequence {
			return Duplicate{BaseOffset: s.lastOffset - int64(s.offsetDelta), LastOffset: s.lastOffset, TimestampMs: s.timestampMs}, true
		}
	}
	return Duplicate{}, false
}

// CheckInternal decides about a batch that a coordinator writes in a producer's name, as a group coordinator does with the
// offsets of a transaction. Such batches have no sequence; only the epoch counts. Errors are those of [Table.Check].
func (t *Table) CheckInternal(b Batch) error {
	e := t.get(b.ProducerID)
	switch {
	case b.Epoch < 0:
		return refuse(CodeInvalidProducerEpoch, b.ProducerID, "epoch %d must not be negative", b.Epoch)
	case e == nil:
		return nil
	case b.Epoch < e.epoch:
		return refuse(CodeInvalidProducerEpoch, b.ProducerID, "epoch %d is fenced by epoch %d", b.Epoch, e.epoch)
	case b.Epoch > e.epoch && e.txnFirstOffset >= 0:
		return refuse(CodeConcurrentTransactions, b.ProducerID, "a batch of epoch %d while a transaction of epoch %d is open since offset %d",
			b.Epoch, e.epoch, e.txnFirstOffset)
	}
	return nil
}

// CheckMarker decides about a marker before it is appended. Under transaction versions 0 and 1 its epoch must not be below
// the producer's current one. Under version 2 it must be above (KIP-1228): the end of a transaction raises the epoch, so a
// marker with the current one is the end of an earlier transaction that comes late, and would end a part of the one that is
// open now. If that very marker stands in the log already the error wraps [ErrMarkerRepeated]. Errors are [*Error]:
// INVALID_PRODUCER_EPOCH, or TRANSACTION_COORDINATOR_FENCED for an epoch of the coordinator below the last one seen.
func (t *Table) CheckMarker(m Marker) error {
	if m.Epoch < 0 {
		return refuse(CodeInvalidProducerEpoch, m.ProducerID, "a marker's epoch must not be negative, it is %d", m.Epoch)
	}
	e := t.get(m.ProducerID)
	if e == nil {
		return nil
	}
	if m.Epoch < e.epoch {
		return refuse(CodeInvalidProducerEpoch, m.ProducerID, "the marker's epoch %d is fenced by epoch %d", m.Epoch, e.epoch)
	}
	if m.TxnVersion >= 2 && m.Epoch == e.epoch {
		err := refuse(CodeInvalidProducerEpoch, m.ProducerID, "the marker's epoch %d must be above the producer's under transaction version 2", m.Epoch)
		if e.repeated(m) {
			err.cause = ErrMarkerRepeated
		}
		return err
	}
	if m.CoordinatorEpoch < e.coordinatorEpoch {
		return refuse(CodeTxnCoordinatorFenced, m.ProducerID, "the coordinator's epoch %d is fenced by epoch %d", m.CoordinatorEpoch, e.coordinatorEpoch)
	}
	return nil
}

// repeated tells whether the last marker in the log is this one.
func (e *entry) repeated(m Marker) bool {
	if e.markerEpoch != m.Epoch {
		return false
	}
	return e.markerResult == resultUnknown || m.Commit == (e.markerResult == resultCommit)
}
