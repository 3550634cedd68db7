package operator

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/millrace/millrace/streams/internal/task"
)

// Entry is the first node behind a source topic.
type Entry interface {
	Process(*task.Record) error
}

// Task runs the nodes of one sub-topology on one partition. It owns the stream
// time, the clocks and the counters of its nodes.
type Task struct {
	env      task.Env
	ctx      context.Context
	entries  map[string][]Entry // by topic
	patterns []pattern
	sites    []*Site
	clocks   []*Clock
	streamMs int64
	current  *task.Record // the record being processed
	at       *Site        // the node whose user code is running, if any
	failed   error        // the first error: a task that failed stays failed
	fatal    error        // of a store, met inside user code; fails the task after it
	inits    []func() error
	checks   []func() error // of what inits must have done
	closers  []func() error
	flushes  []func() (some bool, err error)
	timers   [2][]timer // by clock
	nowMs    int64      // that timers which are being called were called for; see moment
	seen     []*seen    // records per node, if Env.Watch asks for it
}

var _ task.Task = (*Task)(nil)

// Reasons why a node drops a record; see task.Dropped.
const (
	dropLate = iota
	dropNullKey
	dropNullValue
	dropSkipped
	dropDeadLetter
	dropNoTime
	dropReasons
)

var dropNames = [dropReasons]string{"late", "null key", "null value", "skipped", "dead letter", "no time"}

// Site is a node's place in its task: its name, its error handler and its
// counters.
type Site struct {
	node    string
	task    *Task
	ctx     context.Context // what user functions of this node get
	phase   task.Phase      // that its user code is part of
	handler task.Handler    // nil: fail
	dropped [dropReasons]int64
}

// seen counts the records of a node; one with several parents has one counter.
type seen struct{ task.Seen }

// pattern is a source of all topics that match.
type pattern struct {
	re    *regexp.Regexp
	entry Entry
}

// behind are the sources of a topic.
func (t *Task) behind(topic string) []Entry {
	entries, ok := t.entries[topic]
	if !ok && t.patterns != nil {
		for _, p := range t.patterns {
			if p.re.MatchString(topic) {
				entries = append(entries, p.entry)
			}
		}
		t.entries[topic] = entries
	}
	return entries
}

// Process implements task.Task.
func (t *Task) Process(r *task.Record) error {
	if t.failed != nil {
		return t.failed
	}
	entries := t.behind(r.Topic)
	if entries == nil {
		return fmt.Errorf("task of partition %d got a record of topic %s, which it does not read", t.env.Partition, r.Topic)
	}
	t.current = r
	for _, e := range entries {
		if err := t.enter(e, r); err != nil {
			t.failed = err
			break
		}
	}
	t.current = nil
	if t.failed == nil {
		t.failed = t.fatal
	}
	if t.failed == nil && t.timers[StreamClock] != nil && t.streamMs >= 0 {
		t.failed = t.fire(StreamClock, t.streamMs)
	}
	return t.failed
}

// Flush implements task.Task.
func (t *Task) Flush() error {
	for some := true; some && t.failed == nil; {
		some = false // what one node lets go another may hold back
		for _, flush := range t.flushes {
			did, err := flush()
			if some = some || did; err != nil {
				t.failed = err
				break
			}
		}
	}
	return t.failed
}

// TimeMs implements task.Task.
func (t *Task) TimeMs(r *task.Record) int64 {
	for _, e := range t.behind(r.Topic) {
		for w, ok := e.(interface{ inner() Entry }); ok; w, ok = e.(interface{ inner() Entry }) {
			e = w.inner() // what counts or wraps it says nothing
		}
		if x, ok := e.(interface{ timeMs(*task.Record) int64 }); ok {
			return x.timeMs(r)
		}
	}
	return r.TimeMs
}

// enter runs one source; its panics end there.
func (t *Task) enter(e Entry, r *task.Record) (err error) {
	defer t.recovered(&err)
	return e.Process(r)
}

// recovered is deferred where a branch of the topology begins: in front of each
// source, each of several nodes behind one, each of the values made of a
// record, each result of a window. If the panic comes from user code it becomes
// a failure of that node: between here and there is but one chain of nodes, so
// leaving the record out ends that chain and nothing else. A panic from
// anywhere else is a defect of ours or of the driver and is not stopped.
func (t *Task) recovered(err *error) {
	if t.at == nil {
		return // the usual way out
	}
	if v := recover(); v != nil {
		at := t.at
		t.at = nil
		*err = at.panicked(v)
	}
}

// StreamTimeMs implements task.Task.
func (t *Task) StreamTimeMs() int64 { return t.streamMs }

// Progress implements task.Task.
func (t *Task) Progress() string { return encodeProgress(t.streamMs, t.clocks) }

// Dropped implements task.Task.
func (t *Task) Dropped() []task.Dropped {
	var out []task.Dropped
	for _, s := range t.sites {
		out = s.appendDropped(out)
	}
	return out
}

// Close implements task.Task.
func (t *Task) Close() error {
	t.failed = fmt.Errorf("task of partition %d is closed", t.env.Partition)
	var errs []error
	for _, c := range t.closers {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

// advance moves the task's stream time.
func (t *Task) advance(timeMs int64) { t.streamMs = max(t.streamMs, timeMs) }
