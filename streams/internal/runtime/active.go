package runtime

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/millrace/millrace/streams/internal/task"
	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/streams/state"
	"github.com/millrace/millrace/txn/session"
)

// input is one partition that a task reads.
type input struct {
	feed      *session.Feed
	topic     session.TopicPartition
	internal  bool  // a repartition topic: consumed records are purged
	committed int64 // position of the last commit, or where it began
	known     bool  // the group has an offset of it
	empty     bool  // had nothing when pick looked at it
	timed     bool  // the task says what time a record has
	timedAt   int64 // offset of the last record that it was asked about
	// since is when the task began to wait for producers of this input, zero while
	// it has records; over says that it has waited long enough.
	since time.Time
	over  bool
}

// global is a worker's copy of a whole topic as a table, in memory. It is read from
// its start before the worker's first task is, and follows the topic from then on.
// Nothing of it is committed: it is not the worker's state.
type global struct {
	spec  *topology.Global
	rows  *state.Memory
	feeds []*session.Feed
	row   func(*session.Record) (key, value []byte, ok bool)
}

// store is one store of a task.
type store struct {
	spec    *topology.Store
	part    session.TopicPartition // its changelog
	topicID [16]byte
	epoch   int32 // of the changelog's leader when it was last asked
	overlay *state.Overlay
	ack     session.Ack // of the records logged to part
	source  *input      // set: the changelog is this input, nothing is logged
	release func()      // gives up the store's folder
}

// active is a task that runs. The worker's goroutine owns it.
type active struct {
	id     taskID
	sub    *topology.Sub
	task   task.Task
	inputs []*input
	stores []*store
	cancel context.CancelFunc // of the context given to user code
	record task.Record        // the record being processed
	idle   time.Duration      // Options.TaskIdle
	made   int64              // records processed since the last commit
	gauge  *gauge             // nil if nobody watches
	trace  *trace             // nil if nobody follows the records
	// dropped is what the task had left out at the last commit.
	dropped []task.Dropped
}

// pick chooses the next record: the lowest timestamp of all inputs, the first
// input in case of a tie. It chooses none while an input is empty that may still
// have an older record on its way; hurry then asks to find out soon. See Options.TaskIdle.
func (a *active) pick() (in *input, rec *session.Record, hurry bool) {
	if len(a.inputs) == 1 {
		r, ok := a.head(a.inputs[0])
		if !ok {
			return nil, nil, false
		}
		return a.inputs[0], r, false
	}
again:
	in, rec = nil, nil
	empty := false
	for _, i := range a.inputs {
		r, ok := a.head(i)
		i.empty = !ok
		switch {
		case !ok:
			empty = true
		case rec == nil || r.Time.Before(rec.Time):
			in, rec = i, r
		}
		if ok && !i.since.IsZero() {
			i.since, i.over = time.Time{}, false
		}
	}
	if in == nil || !empty || a.idle < 0 {
		return in, rec, false
	}
	for _, i := range a.inputs {
		// As it was above: one that has got something since is to be looked at.
		if !i.empty {
			continue
		}
		if !i.feed.DryAfter(in.feed.Received()) {
			return nil, nil, true
		}
		// The fetch that found it dry may have brought records before it did
		// so, after the look above.
		if _, ok := i.feed.Head(); ok {
			goto again
		}
		if a.idle > 0 && !i.over {
			if a.patience(i) > 0 {
				return nil, nil, false
			}
			i.over = true
		}
	}
	return in, rec, false
}

// patience is how long the task still waits for producers of an empty input.
func (a *active) patience(i *input) time.Duration {
	if i.since.IsZero() {
		i.since = time.Now()
	}
	return a.idle - time.Since(i.since)
}

// untilIdle is the time left until the task goes on without an input that it waits for.
func (a *active) untilIdle() time.Duration {
	next := time.Duration(math.MaxInt64)
	if a.idle <= 0 {
		return next
	}
	for _, i := range a.inputs {
		if !i.since.IsZero() && !i.over {
			next = min(next, max(0, a.patience(i)))
		}
	}
	return next
}

// run processes up to budget records and reports how many. hurry is that of
// pick.
func (a *active) run(budget int) (n int, hurry bool, err error) {
	for n < budget {
		in, rec, wait := a.pick()
		if in == nil {
			return n, wait, nil
		}
		if err := a.process(rec); err != nil {
			return n, false, fmt.Errorf("task %s/%d: %s/%d offset %d: %w", a.sub.Name, a.id.unit, rec.Topic, rec.Partition, rec.Offset, err)
		}
		in.feed.Pop()
		n++
	}
	return n, false, nil
}

// head is the next record of an input, with the time that the task gives it.
func (a *active) head(i *input) (*session.Record, bool) {
	r, ok := i.feed.Head()
	if ok && i.timed && i.timedAt != r.Offset {
		i.timedAt = r.Offset
		a.show(r)
		r.Time = time.UnixMilli(a.task.TimeMs(&a.record))
	}
	return r, ok
}

func (a *active) process(rec *session.Record) error {
	a.show(rec)
	a.made++
	if a.gauge != nil {
		a.gauge.took(a.record.TimeMs, a.task.StreamTimeMs())
	}
	if a.trace != nil {
		return a.trace.process(a.task, &a.record)
	}
	return a.task.Process(&a.record)
}

// show copies a record into the one that tasks get.
func (a *active) show(rec *session.Record) {
	r := &a.record
	r.Topic, r.Partition, r.Offset, r.LeaderEpoch = rec.Topic, rec.Partition, rec.Offset, rec.LeaderEpoch
	r.TimeMs, r.Key, r.Value = rec.Time.UnixMilli(), rec.Key, rec.Value
	r.Headers = r.Headers[:0]
	for _, h := range rec.Headers {
		r.Headers = append(r.Headers, task.Header(h))
	}
}

// dirty reports whether there is anything to commit.
func (a *active) dirty() bool {
	for _, i := range a.inputs {
		if i.feed.Position() != i.committed {
			return true
		}
	}
	return false
}

// tells reports whether the next commit has offsets of this task.
func (a *active) tells() bool { return a.dirty() || a.uncommitted() > 0 }

// uncommitted is the memory that the stores hold for the open transaction.
func (a *active) uncommitted() int {
	n := 0
	for _, s := range a.stores {
		n += s.overlay.Size()
	}
	return n
}

// find returns a store by name, for the task's environment.
func (a *active) find(name string) (state.Store, error) {
	for _, s := range a.stores {
		if s.spec.Name == name {
			return s.overlay, nil
		}
	}
	return nil, fmt.Errorf("streams: sub-topology %s has no store %q", a.sub.Name, name)
}

// close ends a task whose work is committed; its stores are flushed.
func (a *active) close(reader *session.Reader) error {
	return a.end(reader, (*state.Overlay).Close)
}

// drop ends a task as it is: nothing uncommitted survives, and nothing in doubt
// reaches a store.
func (a *active) drop(reader *session.Reader) error {
	return a.end(reader, (*state.Overlay).Drop)
}

func (a *active) end(reader *session.Reader, closeStore func(*state.Overlay) error) error {
	if a.cancel != nil {
		a.cancel()
	}
	var errs []error
	if a.task != nil {
		errs = append(errs, a.task.Close())
	}
	for _, i := range a.inputs {
		reader.Remove(i.feed)
	}
	for _, s := range a.stores {
		errs = append(errs, closeStore(s.overlay))
		s.release()
	}
	return errors.Join(errs...)
}
