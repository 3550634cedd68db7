package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/streams/internal/restore"
	"github.com/millrace/millrace/streams/internal/task"
	"github.com/millrace/millrace/streams/state"
	"github.com/millrace/millrace/txn/session"
)

// adopt makes tasks of what the keeper has ready. When something failed, that is the
// error, after the others have been started.
func (w *worker) adopt() error {
	done, warm := w.keeper.take()
	var failed error
	for _, d := range done {
		if d.err != nil {
			failed = d.err
			continue
		}
		if err := w.launch(d.takeover); err != nil && failed == nil {
			failed = err
		}
	}
	if len(done) > 0 {
		slices.SortFunc(w.tasks, func(a, b *active) int { return compareTasks(a.id, b.id) })
		w.aim(w.goal)
		w.announce()
	}
	var thrown *restore.Panic
	if errors.As(failed, &thrown) {
		w.log.Error("panic in a restore", "value", thrown.Value, "stack", string(thrown.Stack))
		return w.panicked(thrown.Value)
	}
	if failed != nil {
		return failed
	}
	if warm {
		return w.rejoin()
	}
	return nil
}

// launch starts a task whose stores are complete.
func (w *worker) launch(t *takeover) error {
	a := t.assemble(w.reader)
	a.idle = w.options.TaskIdle
	if err := w.instantiate(a, t.progress(a)); err != nil {
		return errors.Join(err, a.drop(w.reader))
	}
	w.tasks = append(w.tasks, a)
	if len(w.tasks) == 1 {
		w.epochsAt = time.Now()
	}
	return nil
}

// checkTopics is that of the plan.
func (w *worker) checkTopics(ctx context.Context) (map[string]session.Topic, error) {
	return checkTopics(ctx, w.cluster, w.plan)
}

// instantiate makes the user's part of a task.
func (w *worker) instantiate(a *active, progress []string) error {
	ctx, cancel := context.WithCancel(w.ctx)
	a.cancel = cancel
	var out session.Record
	a.gauge = w.meter.gauge()
	if w.options.Tracer != nil {
		a.trace = &trace{Context: ctx, tracer: w.options.Tracer}
		ctx = a.trace
	}
	env := task.Env{
		AppID: w.plan.app.AppID, Partition: a.id.unit, Progress: progress,
		Store: func(name string) (state.Store, error) { return w.store(a, name) }, Context: ctx, Wait: w.wait,
		Now:        func() int64 { return time.Now().UnixMilli() },
		Commit:     func() { w.asked = true },
		Partitions: w.partitions,
		Watch:      w.meter != nil, Around: w.options.Around,
		Emit: func(o *task.Out) error {
			out.Topic, out.Partition, out.Time = o.Topic, o.Partition, time.UnixMilli(o.TimeMs)
			out.Key, out.Value = o.Key, o.Value
			out.Headers = out.Headers[:0]
			if a.gauge != nil {
				a.gauge.emitted++
			}
			for _, h := range a.trace.carry(o.Headers) {
				out.Headers = append(out.Headers, session.Header(h))
			}
			return w.producer.Send(w.life, &out, nil)
		},
	}
	var err error
	if a.task, err = a.sub.New(env); err != nil {
		return fmt.Errorf("streams: task %s/%d: %w", a.sub.Name, a.id.unit, err)
	}
	return nil
}

// wait pauses user code between retries, not beyond the open transaction: past
// its deadline everything is done again from the last commit, in a new one.
func (w *worker) wait(ctx context.Context, d time.Duration) error {
	if deadline, open := w.producer.Deadline(); open && time.Now().Add(d).After(deadline) {
		return fmt.Errorf("%w: a retry after %v would outlive the transaction", session.ErrAborted, d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-w.changed():
		return fmt.Errorf("%w: the group is rebalancing", session.ErrAborted)
	}
}
