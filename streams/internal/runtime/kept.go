package runtime

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/millrace/millrace/txn/session"
)

// reconcile compares what is kept with what is wanted. It comes after every wish and
// every end of a step.
func (k *keeper) reconcile() {
	for id, x := range k.kept {
		since, isActive := k.active[id]
		switch {
		case x.takeover == nil:
			if !k.copies[id] {
				delete(k.kept, id)
			}
		case isActive && x.since == since, !isActive && k.copies[id] && x.since == 0:
		case x.busy:
			x.stop()
		case isActive:
			// The images stay open: a copy is promoted, or a restore asks anew.
			if err := k.remove(x); err != nil {
				k.fail(id, x, err)
				continue
			}
			k.step(id, x, since)
		default:
			k.closeKept(id, x, k.remove(x))
		}
	}
	for id, since := range k.active {
		if k.kept[id] == nil {
			k.step(id, &kept{}, since)
		}
	}
	for id, wanted := range k.copies {
		if x := k.kept[id]; wanted && (x == nil || x.takeover == nil && !x.busy && time.Now().After(x.rest)) {
			if x == nil {
				x = &kept{}
			}
			k.step(id, x, 0)
		}
	}
}

// step lets a take-over prepare itself, beside everything else.
func (k *keeper) step(id taskID, x *kept, since int64) {
	t := k.parts
	t.id, t.copy = id, since == 0
	t.log = k.log.With("task", t.name())
	if x.takeover != nil {
		t.opened = x.takeover.opened
	}
	x.takeover, x.since, x.busy, x.began = &t, since, true, time.Now()
	k.kept[id] = x
	ctx, cancel := context.WithCancel(k.ctx)
	x.stop = cancel
	k.steps.Go(func() {
		defer cancel()
		err := x.takeover.prepare(ctx)
		k.command(func() { k.prepared(id, x, err) })
	})
}

// prepared is the end of a step. If something else is wanted by now, that comes next.
func (k *keeper) prepared(id taskID, x *kept, err error) {
	x.busy = false
	since, isActive := k.active[id]
	switch {
	case !(isActive && x.since == since) && !(!isActive && k.copies[id] && x.since == 0):
		if err != nil {
			k.closeKept(id, x, nil) // what is open may be in no good state
		}
		k.reconcile()
	case err != nil:
		k.fail(id, x, err)
	default:
		for _, o := range x.takeover.opened {
			if o.job != nil {
				k.set.Add(o.job)
			}
		}
		k.look()
	}
}

// remove takes the stores of a task out of the set; what was read is written.
func (k *keeper) remove(x *kept) error {
	var errs []error
	for _, o := range x.takeover.opened {
		if o.job != nil {
			errs = append(errs, k.set.Remove(o.job))
		}
	}
	return errors.Join(errs...)
}

// closeKept closes the stores of a task and forgets it.
func (k *keeper) closeKept(id taskID, x *kept, err error) {
	for _, o := range x.takeover.opened {
		if o.job != nil {
			k.set.Drop(o.job)
		}
	}
	if err = errors.Join(err, x.takeover.close()); err != nil {
		k.log.Warn("close stores", "task", id.unit, "error", err)
	}
	delete(k.kept, id)
}

// fail deals with stores that cannot be read, written or opened. The worker hears of
// it if it waits for them; a copy is tried again.
func (k *keeper) fail(id taskID, x *kept, err error) {
	x.failures++
	switch {
	case errors.Is(err, session.ErrOutOfRange) && x.failures < maxFailures:
		// The log has moved on; a new look at it says from where to begin.
		if again := k.remove(x); again == nil {
			k.step(id, x, x.since)
			return
		}
	case x.since > 0:
		k.closeKept(id, x, nil)
		k.deliver(result{id: id, since: x.since, err: err})
		return
	}
	k.log.Warn("copy of a store", "task", id.unit, "error", err)
	k.closeKept(id, x, nil)
	x.takeover, x.rest = nil, time.Now().Add(min(time.Second<<min(x.failures, 10), maxRest))
	k.kept[id] = x
}

// maxFailures is how often in a row a restore may find that its log has gone on
// without it; maxRest is the longest pause before a copy is tried again.
const (
	maxFailures = 10
	maxRest     = time.Minute
)

// look finds what is complete, what has failed, and how far copies are.
func (k *keeper) look() {
	lags := map[int32]int64{}
	for id, x := range k.kept {
		if x.busy || x.takeover == nil {
			continue
		}
		complete, lag := true, int64(0)
		var err error
		for _, o := range x.takeover.opened {
			if o.job == nil {
				continue
			}
			complete = complete && o.job.Done()
			lag += o.job.Remaining()
			err = errors.Join(err, o.job.Err())
		}
		switch {
		case err != nil:
			k.fail(id, x, err)
		case x.since > 0 && complete:
			k.complete(id, x)
		default:
			lags[id.unit] += lag
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !maps.Equal(lags, k.lags) {
		k.lags = lags
	}
	for u := range k.warm {
		if lag, ok := lags[u]; ok && lag <= k.close && k.allOpen(u) {
			delete(k.warm, u)
			k.isWarm = true
			signal(k.ready)
		}
	}
}

// allOpen reports whether all copies of a unit are open.
func (k *keeper) allOpen(unit int32) bool {
	for id := range k.copies {
		if x := k.kept[id]; id.unit == unit && (x == nil || x.busy || x.takeover == nil) {
			return false
		}
	}
	return true
}

// complete hands the stores of a task to the worker.
func (k *keeper) complete(id taskID, x *kept) {
	t := x.takeover
	for _, o := range t.opened {
		if o.job != nil {
			t.log.Info("store is restored", "store", o.spec.Name, "records", o.job.Restored, "bytes", o.job.Bytes,
				"position", o.job.End, "took", time.Since(x.began).Round(time.Millisecond))
		}
	}
	k.tell(x, true)
	delete(k.kept, id)
	k.deliver(result{id: id, since: x.since, takeover: t})
}

func (k *keeper) deliver(r result) {
	k.delivered[r.id] = r.since
	delete(k.active, r.id)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.since[r.id] != r.since {
		k.discard(r)
		return
	}
	k.results = append(k.results, r)
	signal(k.ready)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// askBounds asks how far copies of stores may go whose changelog is a source topic:
// what the group has not committed yet, no store has.
func (k *keeper) askBounds() {
	var parts []session.TopicPartition
	for _, x := range k.kept {
		if x.busy || x.takeover == nil || x.since > 0 {
			continue
		}
		for _, o := range x.takeover.opened {
			if o.spec.FromSource != nil && o.job != nil {
				parts = append(parts, o.job.Part)
			}
		}
	}
	if len(parts) == 0 {
		return
	}
	k.steps.Go(func() {
		ctx, cancel := context.WithTimeout(k.ctx, boundEvery)
		defer cancel()
		offsets, err := k.parts.cluster.CommittedOffsets(ctx, k.parts.plan.app.AppID, parts)
		if err != nil {
			return // it is asked again
		}
		k.command(func() { k.bound(offsets) })
	})
}

func (k *keeper) bound(offsets session.Offsets) {
	for _, x := range k.kept {
		if x.busy || x.takeover == nil || x.since > 0 {
			continue
		}
		for _, o := range x.takeover.opened {
			if o.spec.FromSource == nil || o.job == nil {
				continue
			}
			if at, ok := offsets[o.job.Part]; ok {
				o.job.Bound = max(o.job.Bound, at.Next)
				o.job.End = max(o.job.End, o.job.Bound)
			}
		}
	}
}

// letGo closes everything at the end.
func (k *keeper) letGo() {
	k.steps.Wait()
	for id, x := range k.kept {
		if x.takeover == nil {
			continue
		}
		var err error
		if k.flush {
			err = k.remove(x)
		}
		k.closeKept(id, x, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.results {
		k.discard(r)
	}
	k.results, k.since = nil, nil
	k.set.Close()
}
