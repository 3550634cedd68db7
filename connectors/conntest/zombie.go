package conntest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/connectors"
)

// takeOverDeadline is how long a take-over may wait for a frozen owner that
// does not hold the store.
const takeOverDeadline = 5 * time.Second

// zombieCases freeze an owner at each point, let a successor go on, and thaw it.
func zombieCases() []testCase {
	var out []testCase
	for _, p := range commitPoints {
		out = append(out, testCase{name: "contract/zombie/" + p, run: func(e *env) error { return caseZombieCommit(e, p) }})
	}
	for _, p := range commitPoints {
		out = append(out, testCase{name: "contract/zombie-at-once/" + p, run: func(e *env) error { return caseZombieAtOnce(e, p) }})
	}
	for _, p := range openPoints {
		out = append(out, testCase{name: "contract/zombie/" + p, run: func(e *env) error { return caseZombieOpen(e, p) }})
	}
	return append(out, testCase{name: "contract/zombie/ping-pong", run: casePingPong})
}

// frozen is a call that stands still in another goroutine.
type frozen struct {
	*freezer
	result chan error // gets the call's error, once
}

// freeze starts a call that will stop at a point.
func (o *owner) freeze(point string, n int, call func() error) (*frozen, error) {
	f := &frozen{freezer: o.sink.freezeAt(point, n), result: make(chan error, 1)}
	go func() { f.result <- call() }()
	select {
	case <-f.reached:
		return f, nil
	case err := <-f.result:
		return nil, fmt.Errorf("the call ended before it came to point %s: %v", point, err)
	case <-o.e.ctx.Done():
		return nil, fmt.Errorf("the call did not come to point %s: %w", point, o.e.ctx.Err())
	}
}

// thaw lets the call go on and waits for its end.
func (f *frozen) thaw(ctx context.Context) error {
	close(f.thawed)
	select {
	case err := <-f.result:
		return err
	case <-ctx.Done():
		return fmt.Errorf("a thawed call does not end: %w", ctx.Err())
	}
}

// succeed opens a successor while a is frozen. A store that declares that a
// frozen writer blocks it may refuse with ErrRetry; then a is thawed first, and
// thawed tells so, with the result of a's call.
func (e *env) succeed(log *model, a *frozen, epoch int64) (b *owner, thawed bool, aErr error, err error) {
	b, err = e.newOwnerWhile(log)
	if err != nil {
		return nil, false, nil, err
	}
	ctx, cancel := context.WithTimeout(e.ctx, takeOverDeadline)
	defer cancel()
	for {
		err = b.takeOver(ctx, epoch, "b")
		switch {
		case err == nil:
			return b, thawed, aErr, nil
		case !errors.Is(err, connectors.ErrRetry):
			return nil, thawed, aErr, fmt.Errorf("the successor's Open: %w", err)
		case ctx.Err() != nil:
			return nil, thawed, aErr, fmt.Errorf("the successor's Open was held up for %v: %w", takeOverDeadline, err)
		case !thawed && b.sink.Spec().BlocksTakeOver:
			thawed, aErr = true, a.thaw(e.ctx)
		}
	}
}

// newOwnerWhile opens a client without Prepare: the tables are there, and a
// frozen writer may hold the store.
func (e *env) newOwnerWhile(log *model) (*owner, error) {
	sink, err := e.client()
	if err != nil {
		return nil, err
	}
	return &owner{e: e, log: log, sink: sink}, nil
}

func caseZombieCommit(e *env, point string) error {
	log := newModel(e)
	a, err := e.owner(log, 1, "a")
	if err != nil {
		return err
	}
	if err := a.step(10); err != nil {
		return err
	}
	batch := a.batch(10)
	f, err := a.freeze(point, 2, func() error { return a.sink.Commit(e.ctx, batch) })
	if err != nil {
		return err
	}
	b, thawed, aErr, err := e.succeed(log, f, 2)
	if err != nil {
		return err
	}
	start := b.at[log.tps()[0]].Next
	for range 3 {
		if err := b.step(7); err != nil {
			return fmt.Errorf("the successor's commit while the old owner is frozen at %s: %w", point, err)
		}
	}
	if !thawed {
		aErr = f.thaw(e.ctx)
	}
	switch {
	case aErr == nil && start != 20:
		return fmt.Errorf("the zombie's commit succeeded, but the successor began at %d without it", start)
	case aErr != nil && start != 10:
		return fmt.Errorf("the zombie's commit failed (%w), but the successor began at %d with it", aErr, start)
	}
	a.sink.onPoint(nil)
	if err := a.mustBeFenced(batch); err != nil {
		return err
	}
	_, err = e.settle(log, 3)
	return err
}

// caseZombieAtOnce thaws the zombie when its successor has opened and not yet
// committed: no write of the successor's is there that the zombie's could
// collide with, except the take-over itself.
func caseZombieAtOnce(e *env, point string) error {
	log := newModel(e)
	a, err := e.owner(log, 1, "a")
	if err != nil {
		return err
	}
	if err := a.step(10); err != nil {
		return err
	}
	batch := a.batch(10)
	f, err := a.freeze(point, 2, func() error { return a.sink.Commit(e.ctx, batch) })
	if err != nil {
		return err
	}
	b, thawed, aErr, err := e.succeed(log, f, 2)
	if err != nil {
		return err
	}
	start := b.at[log.tps()[0]].Next
	if !thawed {
		aErr = f.thaw(e.ctx)
	}
	if aErr == nil && start != 20 {
		return fmt.Errorf("Open returned position %d to the successor, and then the zombie's commit succeeded", start)
	}
	if err := b.step(10); err != nil {
		return fmt.Errorf("the successor's first commit after the zombie thawed: %w", err)
	}
	_, err = e.settle(log, 3)
	return err
}

// mustBeFenced: whatever the first answer was, trying again ends with ErrFenced
// and never with success.
func (o *owner) mustBeFenced(b *connectors.Batch) error {
	for range 20 {
		err := o.sink.Commit(o.e.ctx, b)
		if errors.Is(err, connectors.ErrRetry) || errors.Is(err, connectors.ErrUnknownOutcome) {
			continue
		}
		return mustBe(err, connectors.ErrFenced, "the zombie's commit after the take-over")
	}
	return errors.New("the zombie's commit is never told that it is fenced")
}

// caseZombieOpen: an owner frozen inside Open loses against a later one.
func caseZombieOpen(e *env, point string) error {
	log := newModel(e)
	first, err := e.owner(log, 1, "first")
	if err != nil {
		return err
	}
	if err := first.step(10); err != nil {
		return err
	}
	a, err := e.newOwner(log)
	if err != nil {
		return err
	}
	f, err := a.freeze(point, 1, func() error { return a.takeOver(e.ctx, 2, "a") })
	if err != nil {
		return err
	}
	b, thawed, aErr, err := e.succeed(log, f, 3)
	if err != nil {
		return err
	}
	if err := b.step(10); err != nil {
		return err
	}
	if !thawed {
		aErr = f.thaw(e.ctx)
	}
	if err := b.step(10); err != nil {
		return fmt.Errorf("the later owner after the earlier one thawed: %w", err)
	}
	if aErr == nil { // it had taken over before; now it must find out
		a.sink.onPoint(nil)
		if err := a.mustBeFenced(a.batch(10)); err != nil {
			return err
		}
	} else if !errors.Is(aErr, connectors.ErrFenced) && !errors.Is(aErr, connectors.ErrRetry) {
		return fmt.Errorf("the thawed Open: got error %w, want one that matches: %w", aErr, connectors.ErrFenced)
	}
	_, err = e.settle(log, 4)
	return err
}

// casePingPong: two owners that both believe to be the rightful one take over
// from each other at random; every record is there once in the end.
func casePingPong(e *env) error {
	log := newModel(e)
	var owners [2]*owner
	epoch := int64(0)
	for i := range owners {
		o, err := e.newOwner(log)
		if err != nil {
			return err
		}
		owners[i] = o
	}
	for range 60 {
		i := e.rng.IntN(2)
		o := owners[i]
		if o.at == nil || e.rng.IntN(4) == 0 {
			epoch++
			if err := o.takeOver(e.ctx, epoch, fmt.Sprintf("owner-%d", i)); err != nil {
				return fmt.Errorf("Open with epoch %d: %w", epoch, err)
			}
		}
		err := o.step(1 + e.rng.Int64N(12))
		switch {
		case errors.Is(err, connectors.ErrFenced):
			o.at = nil // claims again
		case err != nil:
			return err
		}
	}
	_, err := e.settle(log, epoch+1)
	return err
}
