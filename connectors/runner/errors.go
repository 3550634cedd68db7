package runner

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/millrace/millrace/connectors"
)

// Control flow inside a task.
var (
	// errInterrupted: the assignment has changed; drop what is in hand and look.
	errInterrupted = errors.New("interrupted by a rebalance")
	// errStopping: the connector is to stop.
	errStopping = errors.New("stopping")
)

// errMoved: the store is at another position than the batch starts from; what
// was read is dropped and read again from there.
var errMoved = errors.New("the store's position has moved")

// RecordError names the record at which a connector has stopped.
type RecordError struct {
	TP     connectors.TP
	Offset int64
	Reason string
	Err    error
}

// Error names topic, partition, offset and reason.
func (e *RecordError) Error() string {
	return fmt.Sprintf("%s offset %d cannot be stored (%s): %v", e.TP, e.Offset, e.Reason, e.Err)
}

// Unwrap returns the decoder's or the store's error.
func (e *RecordError) Unwrap() error { return e.Err }

// final reports whether an error ends the task or the round; others are tried
// again.
func final(err error) bool {
	for _, e := range []error{errInterrupted, errStopping, connectors.ErrConfig,
		connectors.ErrTopicRecreated, connectors.ErrPositionLost, connectors.ErrLogTruncated} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// errLetGo: the partitions belong to someone else now.
var errLetGo = errors.New("let go")

func isFenced(err error) bool {
	return errors.Is(err, connectors.ErrFenced) || errors.Is(err, kerr.FencedInstanceID)
}
