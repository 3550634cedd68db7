package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/streams/internal/assign"
	"github.com/millrace/millrace/txn/session"
)

// changed is closed when the group wants the worker to join again; nil while it does.
func (w *worker) changed() <-chan struct{} {
	if w.joining != nil {
		return nil
	}
	return w.member.Changed()
}

// answered is closed when a Join has come to its end; nil while there is none.
func (w *worker) answered() <-chan struct{} {
	if w.joining == nil {
		return nil
	}
	return w.joining.done
}

// summoned deals with a change of the group: the worker joins again, unless others
// own the tasks by now.
func (w *worker) summoned() error {
	if w.member.Lost() {
		return w.lost()
	}
	return w.rejoin()
}

// lost reports that others own the tasks by now: what is open here must not be
// seen, and what is in memory is outdated.
func (w *worker) lost() error {
	return spoil(fmt.Errorf("%w: the group went on without this worker", session.ErrFenced))
}

// rejoin commits and begins to join; the tasks go on meanwhile. One that is on its way
// already is followed by another one.
func (w *worker) rejoin() error {
	if w.joining != nil {
		w.again = true
		return nil
	}
	if err := w.commit(w.life); err != nil {
		return spoil(err)
	}
	w.join()
	return nil
}

// join begins to become a member of the group's next generation. The group waits for
// the others, who may take their time.
func (w *worker) join() {
	if w.joining != nil {
		return
	}
	w.enter(Joining)
	w.again = false
	w.balancer.claim = w.claim()
	ctx, cancel := context.WithCancel(w.life)
	j := &joining{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(j.done)
		j.joined, j.err = w.member.Join(ctx)
	}()
	w.joining = j
}

// claim is what this worker tells the leader.
func (w *worker) claim() assign.Claim {
	c := w.first
	if w.joined.Generation.Member == "" {
		c.Generation = -1
		return c
	}
	c.Generation, c.Units, c.Copies = w.joined.Generation.ID, w.units, nil
	lags := w.keeper.lag()
	for _, u := range w.plan.unitsOf(w.missing()) {
		if _, ok := lags[u]; !ok && w.plan.stateful(u) {
			c.Copies = append(c.Copies, assign.Copy{Unit: u, Lag: assign.UnknownLag})
		}
	}
	for u, lag := range lags {
		c.Copies = append(c.Copies, assign.Copy{Unit: u, Lag: lag})
	}
	slices.SortFunc(c.Copies, func(a, b assign.Copy) int { return int(a.Unit) - int(b.Unit) })
	return c
}

// arriveIn takes the outcome of a Join: the worker gives up the tasks that it is no
// longer assigned, everything committed, and begins to restore those that are new.
// What it had to give up others get in the next generation, so it joins again.
func (w *worker) arriveIn() error {
	j := w.joining
	w.joining = nil
	j.cancel()
	if err := j.err; err != nil {
		if errors.Is(err, session.ErrFenced) {
			return fmt.Errorf("%w: %w", errReplaced, err)
		}
		return err
	}
	share, err := parse(j.joined.Assignment)
	if err != nil {
		return err
	}
	claimed := w.balancer.claim.Units
	w.joined, w.units, w.share, w.reached, w.outdated = j.joined, share.Units, share, 0, false
	w.control.say(w.number, func(s *WorkerStatus) { s.generation, s.reached = j.joined.Generation.ID, 0 })
	w.desk.learn(j.joined.Generation.ID, share.Map)
	w.log.Info("joined", "generation", j.joined.Generation.ID, "units", share.Units, "standbys", share.Standbys, "warming", share.Warm)
	if j.joined.Continued {
		err = w.giveUp()
	} else {
		// Others may have had the tasks, and what was being restored, in between.
		w.keeper.forget()
		err = w.startOver(w.ctx)
	}
	if err != nil {
		return err
	}
	w.fill()
	// A process that comes back under its name is given its old share without a new
	// generation. What was on its way then, nobody would fetch any more.
	stranded := !j.joined.Continued && slices.Contains(share.Map.Runs, -1)
	if w.again || stranded || slices.ContainsFunc(claimed, func(u int32) bool { return !slices.Contains(share.Units, u) }) {
		return w.rejoin()
	}
	return nil
}

// giveUp ends the tasks that are not this worker's any more.
func (w *worker) giveUp() error {
	keep := w.plan.tasks(w.units)
	gone := func(a *active) bool { return !slices.Contains(keep, a.id) }
	if !slices.ContainsFunc(w.tasks, gone) {
		return nil
	}
	if err := w.commit(w.life); err != nil {
		return spoil(err)
	}
	var errs []error
	w.tasks = slices.DeleteFunc(w.tasks, func(a *active) bool {
		if !gone(a) {
			return false
		}
		w.leave(a)
		errs = append(errs, a.close(w.reader))
		return true
	})
	return errors.Join(errs...)
}

// missing are the assigned tasks that do not run yet.
func (w *worker) missing() []taskID {
	return slices.DeleteFunc(w.plan.tasks(w.units), func(id taskID) bool {
		return slices.ContainsFunc(w.tasks, func(a *active) bool { return a.id == id })
	})
}

// fill has the keeper restore the assigned tasks that do not run yet, and keep the
// copies.
func (w *worker) fill() {
	missing := w.missing()
	if w.outdated {
		missing = nil
	}
	w.keeper.want(missing, w.copies(), w.share.Warm, w.share.Close)
	w.announce()
}

// copies are the tasks of whose stores this worker keeps copies.
func (w *worker) copies() []taskID {
	var copies []taskID
	for _, id := range w.plan.tasks(slices.Concat(w.share.Standbys, w.share.Warm)) {
		if w.plan.logged(id) && !slices.Contains(w.units, id.unit) {
			copies = append(copies, id)
		}
	}
	return copies
}

// announce tells what the worker is doing, if that has changed.
func (w *worker) announce() {
	ids := make([]taskID, len(w.tasks))
	for i, a := range w.tasks {
		ids[i] = a.id
	}
	w.desk.runs(w.place, ids, w.copies())
	s := Running
	switch {
	case w.joining != nil:
		s = Joining
	case len(w.missing()) > 0:
		s = Restoring
	case w.resting:
		s = Paused
	}
	if s != w.state {
		w.enter(s)
		return
	}
	w.control.say(w.number, func(st *WorkerStatus) { st.Tasks = len(w.tasks) })
}

// mayCommit reports whether a commit is of use now. While the worker joins it does not
// know which generation the group is in, and a commit of the wrong one is refused; so
// it waits for the answer as long as the transaction can wait.
func (w *worker) mayCommit() bool {
	if w.joining == nil {
		return true
	}
	deadline, open := w.producer.Deadline()
	return open && time.Until(deadline) < w.options.TransactionTimeout/2
}

// endJoin ends a Join that is on its way, at a stop. If the group answers soon, what is
// open can still be committed.
func (w *worker) endJoin(patience time.Duration) {
	j := w.joining
	if j == nil {
		return
	}
	select {
	case <-j.done:
	case <-time.After(patience):
	}
	j.cancel()
	<-j.done
	w.joining = nil
	if j.err == nil && j.joined.Continued {
		w.joined = j.joined
	}
}
