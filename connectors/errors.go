package connectors

import (
	"errors"
	"fmt"
)

// The errors a sink answers with. The runner decides by errors.Is; an error
// that matches none of them is treated as [ErrUnknownOutcome], the most careful
// reading.
var (
	// ErrFenced: a newer owner has taken over; nothing of this call was
	// applied. Usually as a *[FencedError].
	ErrFenced = errors.New("fenced by a newer owner")
	// ErrRetry: nothing of this call was applied and the same call may succeed
	// later (store busy, down, full).
	ErrRetry = errors.New("not applied, may be retried")
	// ErrUnknownOutcome: the call may or may not have been applied. The runner
	// never sends the data again before it has re-opened with a new epoch and
	// read the position.
	ErrUnknownOutcome = errors.New("outcome unknown")
	// ErrStale: nothing of this call was applied, because the batch does not
	// start at the stored position (it, or a part of it, was delivered before).
	// The runner re-opens and reads the position.
	ErrStale = errors.New("batch does not start at the stored position")
	// ErrConfig: the settings or the store's shape are wrong; a retry cannot
	// help (target table missing, wrong column, no privilege).
	ErrConfig = errors.New("configuration error")
)

// Errors about the log under a stored position. Each stops the connector, as
// going on would lose or repeat records silently; see [Offsets] for the way out.
var (
	// ErrTopicRecreated: the topic of this name is another one (other topic id)
	// than the one the stored position belongs to.
	ErrTopicRecreated = errors.New("topic was deleted and recreated")
	// ErrPositionLost: the log starts above the stored position: retention or a
	// deletion overtook the connector, so the records between are gone.
	ErrPositionLost = errors.New("log start is above the stored position")
	// ErrLogTruncated: the log ends below the stored position, or it diverges
	// from the leader epoch stored with it: the log lost acknowledged records.
	ErrLogTruncated = errors.New("log ends below the stored position")
)

// FencedError tells which fence refused a call. It matches [ErrFenced].
type FencedError struct {
	TP     TP
	Mine   Fence // what the caller came with
	Stored Fence // what the store holds; Epoch -1 when the store did not tell
}

// Error names the partition and both fences.
func (e *FencedError) Error() string {
	return fmt.Sprintf("%s: fenced: epoch %d of owner %s, the store holds epoch %d of owner %s",
		e.TP, e.Mine.Epoch, e.Mine.Owner, e.Stored.Epoch, e.Stored.Owner)
}

// Is makes errors.Is(err, ErrFenced) true.
func (e *FencedError) Is(target error) bool { return target == ErrFenced }

// RejectError says that one record of a batch can never be stored, while the
// rest may. Nothing of the batch was applied. A sink that finds several joins
// them with errors.Join, so that the runner needs one more attempt, not one per
// record.
type RejectError struct {
	// Index into Batch.Records. -1: the store does not say which; the runner
	// then halves the batch until it has found it.
	Index  int
	Reason string // short and stable, fit for a metric label or a WHERE clause
	Err    error  // the store's own error
}

// Error names the index, the reason and the store's error.
func (e *RejectError) Error() string {
	return fmt.Sprintf("record %d of the batch rejected (%s): %v", e.Index, e.Reason, e.Err)
}

// Unwrap returns the store's error.
func (e *RejectError) Unwrap() error { return e.Err }

// Rejections returns every *RejectError in err, in the order in which they were
// joined; nil when there is none.
func Rejections(err error) []*RejectError {
	switch e := err.(type) {
	case nil:
		return nil
	case *RejectError:
		return []*RejectError{e}
	case interface{ Unwrap() []error }:
		var out []*RejectError
		for _, sub := range e.Unwrap() {
			out = append(out, Rejections(sub)...)
		}
		return out
	case interface{ Unwrap() error }:
		return Rejections(e.Unwrap())
	}
	return nil
}
