package operator

import (
	"fmt"
	"math"
	"runtime"
	"strconv"

	"github.com/millrace/millrace/streams/internal/task"
)

// enter and leave stand around every call into user code, which functions and
// serdes are, so that a panic is known to be theirs.
func (s *Site) enter() { s.task.at = s }
func (s *Site) leave() { s.task.at = nil }

// user runs user code. A panic leaves the site entered, which is how it is known
// to be the user's: no deferred call may leave it.
func (s *Site) user(f func() error) error {
	s.enter()
	err := f()
	s.leave()
	return err
}

func (s *Site) drop(reason int) { s.dropped[reason]++ }

// late counts a record that is too late and, where that is asked for, writes the
// source record to a topic, with headers that say which node and what its time was.
func (s *Site) late(topic string, clock *Clock) error {
	s.drop(dropLate)
	if topic == "" {
		return nil
	}
	const prefix = "__streams.late."
	r := s.task.current
	h := append(make([]task.Header, 0, len(r.Headers)+5), r.Headers...)
	for _, e := range [...][2]string{
		{"topic", r.Topic},
		{"partition", strconv.Itoa(int(r.Partition))},
		{"offset", strconv.FormatInt(r.Offset, 10)},
		{"node", s.node},
		{"stream.time", strconv.FormatInt(clock.Ms(), 10)},
	} {
		h = append(h, task.Header{Key: prefix + e[0], Value: []byte(e[1])})
	}
	return s.task.env.Emit(&task.Out{Topic: topic, Partition: task.ByKey, TimeMs: r.TimeMs, Key: r.Key, Value: r.Value, Headers: h})
}

func (s *Site) appendDropped(out []task.Dropped) []task.Dropped {
	for reason, n := range s.dropped {
		if n > 0 {
			out = append(out, task.Dropped{Node: s.node, Reason: dropNames[reason], N: n})
		}
	}
	return out
}

// retry puts a failure through the error chain and calls again as long as the
// decision is to. done: a later attempt succeeded. Otherwise a nil error means
// that the record is left out here, and an error that the task is over.
func (s *Site) retry(cause error, again func() error) (done bool, err error) {
	for attempt := 1; ; attempt++ {
		f := s.failure(cause, attempt)
		step, err := s.decide(f)
		if err != nil {
			return false, err
		}
		if !step.Again {
			return false, s.give(step, f)
		}
		if err := s.pause(step); err != nil {
			return false, fmt.Errorf("%w (waiting to retry: %w)", f, err)
		}
		if cause = again(); cause == nil {
			return true, nil
		}
	}
}

// once is retry for a function that must not run again, as what it has done
// already stays done.
func (s *Site) once(cause error) error {
	f := s.failure(cause, 1)
	d, err := s.ask(f)
	if err != nil {
		return err
	}
	return s.give(d.At(math.MaxInt), f)
}

// panicked is the failure of a panic. It is not tried again, as the nodes in
// front of this one have returned already: Retry counts as used up.
func (s *Site) panicked(v any) error {
	return s.once(panicOf(v))
}

// panicOf is a panic as an error, with the stack at that point.
func panicOf(v any) *task.Panic {
	stack := make([]byte, 16<<10)
	return &task.Panic{Value: v, Stack: stack[:runtime.Stack(stack, false)]}
}

func (s *Site) failure(cause error, attempt int) *task.Failure {
	r := s.task.current
	if r == nil {
		return &task.Failure{Phase: task.Timer, Node: s.node, Attempt: attempt, Err: cause, Partition: s.task.env.Partition, Offset: -1}
	}
	return &task.Failure{
		Phase: s.phase, Node: s.node, Attempt: attempt, Err: cause,
		Topic: r.Topic, Partition: r.Partition, Offset: r.Offset,
	}
}

func (s *Site) decide(f *task.Failure) (task.Step, error) {
	d, err := s.ask(f)
	return d.At(f.Attempt), err
}

func (s *Site) pause(step task.Step) error {
	if s.task.env.Wait == nil || step.Pause <= 0 {
		return s.ctx.Err()
	}
	return s.task.env.Wait(s.ctx, step.Pause)
}

// give ends the attempts: the record is left out, or the failure is final.
func (s *Site) give(step task.Step, f *task.Failure) error {
	switch {
	case step.DeadLetter != "":
		s.drop(dropDeadLetter)
		return s.deadLetter(step.DeadLetter, f)
	case step.Skip:
		s.drop(dropSkipped)
		return nil
	}
	return f
}

// ask calls the handler, which is user code as well: if it panics, the task
// fails with both causes.
func (s *Site) ask(f *task.Failure) (d task.Decision, err error) {
	if s.handler == nil {
		return task.Fail(), nil
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w (and its error handler panicked: %v)", f, v)
		}
	}()
	return s.handler(s.ctx, *f), nil
}

// deadLetter emits the source record as it came, in the transaction of all
// other output, with headers that say where it is from and what was wrong. The
// header names are those of Kafka's own dead letters (KIP-1034), plus node and
// phase.
func (s *Site) deadLetter(topic string, f *task.Failure) error {
	const prefix = "__streams.errors."
	r := s.task.current
	if r == nil {
		r = &task.Record{TimeMs: max(s.task.streamMs, 0)} // of a timer there are headers only
	}
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
