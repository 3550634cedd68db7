package streams

import (
	"context"
	"time"

	"github.com/millrace/millrace/streams/internal/task"
)

// Failure is one record that one node could not handle. It is an error with the
// fields
//
//	Phase     Phase  // PhaseDecode, PhaseProcess, PhaseEncode or PhaseTimer
//	Node      string // name of the node in the topology
//	Topic     string // coordinates of the source record
//	Partition int32
//	Offset    int64
//	Attempt   int    // 1 for the first
//	Err       error  // the cause; a *Panic if the function panicked
//
// An application that fails returns it from Run:
//
//	var f *streams.Failure
//	if errors.As(err, &f) { … }
type Failure = task.Failure

// Panic is a panic of a user function as an error: the Value that was thrown
// and the Stack at that point.
type Panic = task.Panic

// Phase says what was being done when a record failed.
type Phase = task.Phase

// The phases.
const (
	PhaseDecode  = task.Decode  // bytes of a record to key and value
	PhaseProcess = task.Process // a function of the user's
	PhaseEncode  = task.Encode  // key or value to bytes
	PhaseTimer   = task.Timer   // a function that a timer called; there is no source record
)

// Decision is what an error handler answers; see OnError.
type Decision = task.Decision

// Fail stops the application with the failure as its error. Nothing of the
// record is committed. This is what happens without a handler.
func Fail() Decision { return task.Fail() }

// Skip leaves the record out at this node, and counts it. What the record did
// on other branches of the topology stays.
func Skip() Decision { return task.Skip() }

// Retry calls the failing function again, up to n times, after a pause. Then
// says what happens when that does not help; without it the application fails.
//
//	streams.Retry(3, 100*time.Millisecond).Then(streams.DeadLetter("orders-dead"))
//
// The pauses happen inside a transaction: one that would outlive it fails.
func Retry(n int, backoff time.Duration) Decision { return task.Retry(n, backoff) }

// DeadLetter writes the source record, bytes as they came, to a topic, in the
// same transaction as all other output, and leaves it out at this node. Headers
// __streams.errors.topic, partition, offset, exception, message, node and phase
// say where it is from and what was wrong.
func DeadLetter(topic string) Decision { return task.DeadLetter(topic) }

// Always is the handler that decides the same for every failure.
func Always(d Decision) func(context.Context, Failure) Decision {
	return func(context.Context, Failure) Decision { return d }
}
