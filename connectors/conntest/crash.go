package conntest

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/connectors"
)

// crashCases kill a client at each point, and lose the reply at each point
// after which the store has, or may have, committed.
func crashCases() []testCase {
	var out []testCase
	for _, p := range openPoints {
		out = append(out, testCase{name: "contract/crash/" + p, run: func(e *env) error { return caseCrashOpen(e, p) }})
	}
	for _, p := range commitPoints {
		out = append(out,
			testCase{name: "contract/crash/" + p, run: func(e *env) error { return caseCrashCommit(e, p) }},
			testCase{name: "contract/lost-reply/" + p, run: func(e *env) error { return caseLostReply(e, p) }},
		)
	}
	return append(out, testCase{name: "contract/points", run: casePoints})
}

// casePoints: without the inner points the kit would be blind to what happens
// inside a transaction.
func casePoints(e *env) error {
	log := newModel(e)
	a, err := e.owner(log, 1, "a")
	if err != nil {
		return err
	}
	if err := a.step(10); err != nil {
		return err
	}
	for _, p := range append(append([]string{}, openPoints...), commitPoints...) {
		if a.sink.times(p) == 0 {
			return fmt.Errorf("the sink does not announce point %s with connectors.Reach", p)
		}
	}
	return nil
}

func caseCrashOpen(e *env, point string) error {
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
	a.sink.killAt(point, 1, nil)
	if err, killed := survive(func() error { return a.takeOver(e.ctx, 2, "a") }); !killed {
		return fmt.Errorf("the call ended before it came to point %s: %v", point, err)
	}
	// The old owner may or may not be fenced; either is right, a half is not.
	err = first.step(10)
	if err != nil && !errors.Is(err, connectors.ErrFenced) {
		return fmt.Errorf("the old owner after a crash of the new one: %w", err)
	}
	_, err = e.settle(log, 3)
	return err
}

func caseCrashCommit(e *env, point string) error {
	log := newModel(e)
	a, err := e.owner(log, 1, "a")
	if err != nil {
		return err
	}
	if err := a.step(10); err != nil {
		return err
	}
	a.sink.killAt(point, 2, nil)
	if err, killed := survive(func() error { return a.step(10) }); !killed {
		return fmt.Errorf("the call ended before it came to point %s: %v", point, err)
	}
	found, err := e.settle(log, 2)
	if err != nil {
		return err
	}
	return committedFrom(point, found, log, 10, 20)
}

// committedFrom checks that a commit that was cut at a point is there after the
// store's commit and is not there before it.
func committedFrom(point string, found map[connectors.TP]connectors.Position, log *model, before, after int64) error {
	want := before
	if point == connectors.PointCommitted || point == commitReturn {
		want = after
	}
	for _, tp := range log.tps() {
		if got := found[tp].Next; got != want {
			return fmt.Errorf("%s: a commit cut at %s left position %d, want %d", tp, point, got, want)
		}
	}
	return nil
}

// caseLostReply: the call fails at a point with an unknown outcome; the owner
// opens again with a new epoch, compares, and sends again only what is missing.
func caseLostReply(e *env, point string) error {
	log := newModel(e)
	a, err := e.owner(log, 1, "a")
	if err != nil {
		return err
	}
	if err := a.step(10); err != nil {
		return err
	}
	lost := fmt.Errorf("%w: the kit has lost the reply", connectors.ErrUnknownOutcome)
	a.sink.onPoint(func(_ context.Context, p string) error {
		if p == point {
			return lost
		}
		return nil
	})
	b := a.batch(10)
	if err := mustBe(a.sink.Commit(e.ctx, b), connectors.ErrUnknownOutcome, "Commit with a lost reply"); err != nil {
		return err
	}
	a.sink.onPoint(nil)
	if err := a.takeOver(e.ctx, 2, "a2"); err != nil {
		return fmt.Errorf("open again: %w", err)
	}
	if err := committedFrom(point, a.at, log, 10, 20); err != nil {
		return err
	}
	if err := mustBe(a.sink.Commit(e.ctx, b), connectors.ErrFenced, "the batch of the old session"); err != nil {
		return err
	}
	if err := a.step(10); err != nil {
		return err
	}
	_, err = e.settle(log, 3)
	return err
}
