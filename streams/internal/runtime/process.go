package runtime

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/txn/session"
)

// budget is how many records a task processes before the worker looks up: at
// the clock, at the group and at its other tasks.
const budget = 500

// process runs the tasks until ctx ends or something fails. What happens around them
// meanwhile, in the group, at the keeper and with the owner, is dealt with between
// their turns.
func (w *worker) process(ctx context.Context) error {
	timer := time.NewTimer(w.options.CommitInterval)
	defer timer.Stop()
	w.committed = time.Now()
	if err := w.heed(); err != nil {
		return err
	}
	for {
		if err := w.react(ctx, nil, nil); err != nil {
			return err
		}
		n, hurry, err := w.serve(ctx)
		if err != nil {
			return err
		}
		if n > 0 {
			continue
		}
		if err := w.arrive(); err != nil {
			return err
		}
		w.demand()
		if hurry {
			w.reader.Hurry()
		}
		w.producer.Push()
		timer.Reset(min(w.untilCommit(), w.untilTick(), w.untilIdle()))
		if err := w.react(ctx, w.reader.Arrived(), timer.C); err != nil {
			return err
		}
	}
}

// serve gives the tasks a turn, unless the owner wishes a pause.
func (w *worker) serve(ctx context.Context) (n int, hurry bool, err error) {
	if err := w.followGlobals(); err != nil {
		return 0, false, err
	}
	if !w.resting {
		if n, hurry, err = w.turn(ctx); err != nil {
			return n, hurry, err
		}
		if err := w.tick(); err != nil {
			return n, hurry, err
		}
	}
	w.refresh()
	return n, hurry, spoil(w.commitIfDue())
}

// turn gives each task its budget.
func (w *worker) turn(ctx context.Context) (n int, hurry bool, err error) {
	for _, a := range w.tasks {
		w.busy = a
		began := w.meter.now()
		k, h, err := a.run(budget)
		a.gauge.ran(began)
		n, hurry = n+k, hurry || h
		if err != nil {
			return n, hurry, spoil(err)
		}
		if k > 0 {
			continue
		}
		for _, in := range a.inputs {
			if in.feed.Err() == nil {
				continue
			}
			if err := w.mend(ctx, in); err != nil {
				return n, hurry, fmt.Errorf("task %s/%d: %w", a.sub.Name, a.id.unit, err)
			}
		}
	}
	w.busy = nil
	return n, hurry, nil
}

// tick calls the timers of the wall clock that are due.
func (w *worker) tick() error {
	now := time.Now().UnixMilli()
	for _, a := range w.tasks {
		if a.task.NextTick() > now {
			continue
		}
		if err := a.task.Tick(now); err != nil {
			return spoil(fmt.Errorf("task %s/%d: %w", a.sub.Name, a.id.unit, err))
		}
	}
	return nil
}

// untilTick is the time left until the next timer of the wall clock.
func (w *worker) untilTick() time.Duration {
	if w.resting {
		return time.Hour
	}
	next := int64(math.MaxInt64)
	for _, a := range w.tasks {
		next = min(next, a.task.NextTick())
	}
	return time.Duration(max(0, min(next-time.Now().UnixMilli(), int64(time.Hour/time.Millisecond)))) * time.Millisecond
}

// untilIdle is the time left until a task goes on without waiting for producers.
func (w *worker) untilIdle() time.Duration {
	next := time.Duration(math.MaxInt64)
	for _, a := range w.tasks {
		next = min(next, a.untilIdle())
	}
	return next
}

// mend deals with an input that cannot go on. A worker that slept may find that
// others have gone on without it, and have purged what they consumed, before the
// group tells it so: then it joins again. Records that a source topic's retention
// deleted before they were read are lost to this application, which is said
// loudly, and reading goes on at the new start. Everything else ends the run: a
// log that is shorter than what was read, a topic made anew, damage.
func (w *worker) mend(ctx context.Context, in *input) error {
	err := in.feed.Err()
	if !errors.Is(err, session.ErrOutOfRange) {
		return err
	}
	group, gerr := w.cluster.CommittedOffsets(ctx, w.plan.app.AppID, []session.TopicPartition{in.topic})
	if gerr != nil {
		return gerr
	}
	if group[in.topic].Next > in.feed.Position() {
		return w.lost()
	}
	if in.internal || w.plan.begin(in.topic.Topic).At == topology.BeginNowhere {
		return err
	}
	starts, lerr := w.cluster.List(ctx, session.Start, []session.TopicPartition{in.topic})
	if lerr != nil {
		return lerr
	}
	at, start := in.feed.Position(), starts[in.topic]
	if start <= at {
		return fmt.Errorf("%w: the log is shorter than what was read", err)
	}
	w.log.Error("records were deleted before they were read", "topic", in.topic.Topic, "partition", in.topic.Partition, "from", at, "to", start)
	w.reader.Remove(in.feed)
	in.feed = w.reader.Add(in.topic, start)
	w.aim(w.goal)
	return nil
}

// commitIfDue commits when the interval is over or too much is held in memory.
func (w *worker) commitIfDue() error {
	if w.untilCommit() > 0 && !(w.asked && w.mayCommit()) {
		held := w.producer.Held()
		for _, a := range w.tasks {
			held += a.uncommitted()
		}
		if held < w.options.UncommittedBytes {
			return nil
		}
	}
	return w.commit(w.life)
}

// untilCommit is the time left of the commit interval, 0 when it is over. While the
// worker joins there is no hurry; see mayCommit.
func (w *worker) untilCommit() time.Duration {
	if !w.mayCommit() {
		return w.options.CommitInterval
	}
	return max(0, w.options.CommitInterval-time.Since(w.committed))
}
