package operator

import (
	"context"
	"fmt"
	"runtime"
	"strconv"

	"github.com/millrace/millrace/streams/internal/task"
)

// Reasons why a node drops a record; see task.Dropped.
const (
	dropLate = iota
	dropNullKey
	dropNullValue
	dropSkipped
	dropDeadLetter
	dropReasons
)

var dropNames = [dropReasons]string{"late", "null key", "null value", "skipped", "dead letter"}

// Site is a node's place in its task: its name, its error handler and its
// counters.
type Site struct {
	node    string
	task    *Task
	handler task.Handler // nil: fail
	dropped [dropReasons]int64
	attempt int // of the call that is failing; 0 when none is
}

// Context is what user functions of this node get.
func (s *Site) Context() context.Context { return s.task.ctx }

func (s *Site) drop(reason int) { s.dropped[reason]++ }

func (s *Site) appendDropped(out []task.Dropped) []task.Dropped {
	for reason, n := range s.dropped {
		if n > 0 {
			out = append(out, task.Dropped{Node: s.node, Reason: dropNames[reason], N: n})
		}
	}
	return out
}

// recovered is deferred around every call into user code: a panic becomes an
// error of the record, with the stack that led to it.
func (s *Site) recovered(err *error) {
	if v := recover(); v != nil {
		stack := make([]byte, 16<<10)
		*err = &task.Panic{Value: v, Stack: stack[:runtime.Stack(stack, false)]}
	}
}

// ok ends a series of attempts.
func (s *Site) ok() { s.attempt = 0 }

// failed puts a failure through the error chain. again asks for another
// attempt; otherwise a nil error means that the record is left out here, and
// an error that the task is over.
func (s *Site) failed(phase task.Phase, cause error) (again bool, err error) {
	r := s.task.current
	s.attempt++
	f := &task.Failure{
		Phase: phase, Node: s.node, Attempt: s.attempt, Err: cause,
		Topic: r.Topic, Partition: r.Partition, Offset: r.Offset,
	}
	var d task.Decision
	if s.handler != nil {
		if d, err = s.ask(f); err != nil {
			return false, err
		}
	}
	step := d.At(s.attempt)
	if step.Again {
		if s.task.env.Wait == nil || step.Pause <= 0 {
			return true, s.task.ctx.Err()
		}
		if err := s.task.env.Wait(s.task.ctx, step.Pause); err != nil {
			return false, fmt.Errorf("%w (waiting to retry: %w)", f, err)
		}
		return true, nil
	}
	s.attempt = 0
	switch {
	case step.DeadLetter != "":
		s.drop(dropDeadLetter)
		return false, s.deadLetter(step.DeadLetter, f)
	case step.Skip:
		s.drop(dropSkipped)
		return false, nil
	}
	return false, f
}

// ask calls the handler, which is user code as well: if it panics, the task
// fails with both causes.
func (s *Site) ask(f *task.Failure) (d task.Decision, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w (and its error handler panicked: %v)", f, v)
		}
	}()
	return s.handler(s.task.ctx, *f), nil
}

// deadLetter emits the source record as it came, in the transaction of all
// other output, with headers that say where it is from and what was wrong. The
// header names are those of Kafka's own dead letters (KIP-1034), plus node and
// phase.
func (s *Site) deadLetter(topic string, f *task.Failure) error {
	const prefix = "__streams.errors."
	r := s.task.current
	h := make([]task.Header, 0, len(r.Headers)+7)
	h = append(h, r.Headers...)
	for _, e := range [...][2]string{
		{"exception", fmt.Sprintf("%T", f.Err)},
		{"message", f.Err.Error()},
		{"topic", f.Topic},
		{"partition", strconv.Itoa(int(f.Partition))},
		{"offset", strconv.FormatInt(f.Offset, 10)},
		{"node", f.Node},
		{"phase", string(f.Phase)},
	} {
		h = append(h, task.Header{Key: prefix + e[0], Value: []byte(e[1])})
	}
	return s.task.env.Emit(&task.Out{
		Topic: topic, Partition: task.ByKey, TimeMs: r.TimeMs, Key: r.Key, Value: r.Value, Headers: h,
	})
}
