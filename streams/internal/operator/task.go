package operator

import (
	"context"
	"fmt"

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
	entries  map[string][]Entry
	sites    []*Site
	clocks   []*Clock
	streamMs int64
	current  *task.Record // the record being processed
	failed   error        // the first error: a task that failed stays failed
}

var _ task.Task = (*Task)(nil)

// Process implements task.Task.
func (t *Task) Process(r *task.Record) error {
	if t.failed != nil {
		return t.failed
	}
	entries := t.entries[r.Topic]
	if entries == nil {
		return fmt.Errorf("task of partition %d got a record of topic %s, which it does not read", t.env.Partition, r.Topic)
	}
	t.current = r
	for _, e := range entries {
		if err := e.Process(r); err != nil {
			t.failed = err
			break
		}
	}
	t.current = nil
	return t.failed
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

// Close implements task.Task. Nodes hold nothing that needs an end.
func (t *Task) Close() error {
	t.failed = fmt.Errorf("task of partition %d is closed", t.env.Partition)
	return nil
}

// advance moves the task's stream time.
func (t *Task) advance(timeMs int64) { t.streamMs = max(t.streamMs, timeMs) }
