package task

import (
	"context"
	"fmt"
	"time"
)

// Phase says what was being done when a record failed.
type Phase string

const (
	// Decode: the bytes of the record are not what the topic should hold.
	Decode Phase = "decode"
	// Process: a user function returned an error or panicked.
	Process Phase = "process"
	// Encode: a key or value could not be turned into bytes.
	Encode Phase = "encode"
	// Timer: a function that a timer called returned an error or panicked. There
	// is no source record.
	Timer Phase = "timer"
)

// Failure is one record that one node could not handle. It is an error, and
// what App.Run returns when the application chose to fail.
type Failure struct {
	Phase     Phase
	Node      string // name of the node in the topology
	Topic     string // of the source record
	Partition int32
	Offset    int64
	Attempt   int // 1 for the first
	Err       error
}

// Error names the record, the node and the cause.
func (f *Failure) Error() string {
	tries := ""
	if f.Attempt > 1 {
		tries = fmt.Sprintf(" (attempt %d)", f.Attempt)
	}
	if f.Phase == Timer {
		return fmt.Sprintf("%s at node %s, partition %d%s: %v", f.Phase, f.Node, f.Partition, tries, f.Err)
	}
	return fmt.Sprintf("%s at node %s, record %s-%d@%d%s: %v", f.Phase, f.Node, f.Topic, f.Partition, f.Offset, tries, f.Err)
}

// Unwrap is the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Handler decides what becomes of a failure.
type Handler func(context.Context, Failure) Decision

// verb is what a decision does.
type verb int

const (
	fail verb = iota
	skip
	retry
	deadLetter
)

// Decision is what a Handler answers. The zero value is Fail.
type Decision struct {
	verb    verb
	retries int
	backoff time.Duration
	topic   string
	then    *Decision // after the last retry; nil: fail
}

// Fail stops the task with the failure as its error.
func Fail() Decision { return Decision{} }

// Skip leaves the record out of this node and what follows it, and counts it.
// Other branches of the topology still get the record.
func Skip() Decision { return Decision{verb: skip} }

// Retry calls the function again, up to n times, with a pause before each.
func Retry(n int, backoff time.Duration) Decision {
	return Decision{verb: retry, retries: n, backoff: backoff}
}

// DeadLetter writes the source record to a topic and skips it.
func DeadLetter(topic string) Decision { return Decision{verb: deadLetter, topic: topic} }

// Then says what happens when the retries are used up; without it, Fail.
func (d Decision) Then(after Decision) Decision {
	d.then = &after
	return d
}

// Step is a Decision for one attempt, with retries counted.
type Step struct {
	Again      bool          // call the function again after Pause
	Pause      time.Duration //
	Skip       bool          // leave the record out, counted
	DeadLetter string        // topic to write the source record to before leaving it out
}

// At resolves the decision for the given attempt (1 is the first). The zero
// Step means: fail.
func (d Decision) At(attempt int) Step {
	for d.verb == retry {
		if attempt <= d.retries {
			return Step{Again: true, Pause: d.backoff}
		}
		if d.then == nil {
			return Step{}
		}
		attempt -= max(d.retries, 0)
		d = *d.then
	}
	switch d.verb {
	case skip:
		return Step{Skip: true}
	case deadLetter:
		return Step{DeadLetter: d.topic}
	}
	return Step{}
}

// String prints the decision for messages.
func (d Decision) String() string {
	switch d.verb {
	case skip:
		return "skip"
	case deadLetter:
		return "dead letter to " + d.topic
	case retry:
		s := fmt.Sprintf("retry %d times", d.retries)
		if d.then != nil {
			s += ", then " + d.then.String()
		}
		return s
	}
	return "fail"
}

// Panic is a panic of a user function as an error.
type Panic struct {
	Value any
	Stack []byte
}

// Error prints what was thrown; the stack is in the field.
func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Unwrap gives the error that was thrown, if it was one.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}
