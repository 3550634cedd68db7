package twophase_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace/millrace/core/seedtest"
	"github.com/millrace/millrace/txn/twophase"
)

// TestCrashAtEachStep is the table of the package comment: the program ends at each step, alone or together with the broker,
// which is stopped, or loses its power and with it all that was not synced.
func TestCrashAtEachStep(t *testing.T) {
	t.Parallel()
	for _, way := range directions {
		for _, step := range steps {
			committed := step == twophase.StepDecided || step == twophase.StepDone
			withs := []string{"alone", "power cut"}
			if seedtest.Soak() {
				withs = append(withs, "broker stopped")
			}
			for _, with := range withs {
				t.Run(fmt.Sprintf("%s/%s/%s", way, step, with), func(t *testing.T) {
					t.Parallel()
					crashOnce(newWorld(t, way), step, with, committed)
				})
			}
		}
	}
}

// TestCrashWithForeignLog is the part of it that any cluster must pass which has transactions of version 2.
func TestCrashWithForeignLog(t *testing.T) {
	for _, step := range steps {
		t.Run(string(step), func(t *testing.T) {
			crashOnce(newForeignWorld(t), step, "alone", step == twophase.StepDecided || step == twophase.StepDone)
		})
	}
}

// crashOnce commits one transaction, crashes in the second, and looks at what the next incarnation makes of it.
func crashOnce(w *world, step twophase.Step, with string, committed bool) {
	t := w.t
	t.Helper()
	c := w.open(crashAt(step, 2))
	if err := w.do(c); err != nil {
		t.Fatal(err)
	}
	if err := w.do(c); !errors.Is(err, errCrash) {
		t.Fatalf("the second transaction: %v", err)
	}
	if err := w.do(c); err == nil {
		t.Fatal("a program that has crashed goes on")
	}
	w.sent-- // that one was not tried
	switch with {
	case "broker stopped":
		w.node.Restart(t)
	case "power cut":
		w.node.Crash(t, 1)
	}
	next := w.open(nil)
	if got := w.check(); slices.Contains(got, 2) != committed {
		t.Errorf("transaction 2 is committed: %t, want %t", !committed, committed)
	}
	if err := w.do(next); err != nil {
		t.Errorf("the next transaction: %v", err)
	}
	w.check()
	if n := w.mem.open(); n != 0 {
		t.Errorf("%d transactions stay prepared in the store", n)
	}
}

// TestZombieAtEachStep pauses a program at each step, lets a new incarnation take over and work, and wakes the old one.
func TestZombieAtEachStep(t *testing.T) {
	t.Parallel()
	for _, way := range directions {
		for _, step := range steps {
			t.Run(fmt.Sprintf("%s/%s", way, step), func(t *testing.T) {
				t.Parallel()
				wakeZombie(newWorld(t, way), step)
			})
		}
	}
}

// TestZombieWithForeignLog is the same with any cluster.
func TestZombieWithForeignLog(t *testing.T) {
	for _, step := range steps {
		t.Run(string(step), func(t *testing.T) { wakeZombie(newForeignWorld(t), step) })
	}
}

func wakeZombie(w *world, step twophase.Step) {
	t, way := w.t, w.way
	t.Helper()
	paused, wake := make(chan struct{}), make(chan struct{})
	old := w.open(func(s twophase.Step) error {
		if s == step {
			close(paused)
			<-wake
		}
		return nil
	})
	done := make(chan error, 1)
	go func() { done <- old.Do(w.ctx(), w.work(1)) }()
	<-paused
	w.sent = 1
	next := w.open(nil)
	if err := w.do(next); err != nil {
		t.Fatal(err)
	}
	close(wake)
	err := <-done
	// Where all is decided and the rest is the new one's, there is nothing to be told.
	through := step == twophase.StepDone || step == twophase.StepDecided && way == byLog
	if through != (err == nil) || err != nil && !errors.Is(err, twophase.ErrFenced) {
		t.Errorf("the old one: %v, want ErrFenced: %t", err, !through)
	}
	committed := step == twophase.StepDecided || step == twophase.StepDone
	if got := w.check(); slices.Contains(got, 1) != committed {
		t.Errorf("the old one's transaction is committed: %t, want %t", !committed, committed)
	}
	if err := old.Do(w.ctx(), w.work(99)); err == nil {
		t.Error("the old one goes on")
	}
	for range 2 {
		if err := w.do(next); err != nil {
			t.Errorf("the new one: %v", err)
		}
	}
	w.check()
	if n := w.mem.open(); n != 0 {
		t.Errorf("%d transactions stay prepared in the store", n)
	}
}

// TestStorms runs programs one after the other that crash at random steps, with a broker that restarts or loses its power, a
// store whose answers get lost or that refuses, and recoveries that crash as well.
func TestStorms(t *testing.T) {
	t.Parallel()
	rounds := 2
	if seedtest.Soak() {
		rounds = 20
	}
	for _, way := range directions {
		for round := range rounds {
			t.Run(fmt.Sprintf("%s/%d", way, round), func(t *testing.T) {
				t.Parallel()
				storm(newWorld(t, way), rand.New(rand.NewPCG(seedtest.New(t), 7)))
			})
		}
	}
}

var errRefused = errors.New("the store refuses")

func storm(w *world, r *rand.Rand) {
	sometimes := func(err error) func() error {
		return func() error {
			if r.IntN(6) == 0 {
				return err
			}
			return nil
		}
	}
	for range 8 {
		w.mem.fail, w.mem.late = sometimes(errRefused), sometimes(fmt.Errorf("%w: lost", twophase.ErrUnknownOutcome))
		c := w.open(crashAt(steps[r.IntN(len(steps))], 1+r.IntN(4)))
		for range 6 {
			err := w.do(c)
			switch {
			case err == nil, errors.Is(err, twophase.ErrAborted):
				continue
			case errors.Is(err, twophase.ErrUnfinished) && r.IntN(2) == 0:
				// The same program finds out and goes on.
				if err := c.Recover(w.ctx()); err != nil {
					w.t.Fatal(err)
				}
				continue
			}
			break
		}
		switch r.IntN(4) {
		case 0:
			w.node.Restart(w.t)
		case 1:
			w.node.Crash(w.t, r.Uint64())
		}
	}
	w.mem.fail, w.mem.late = nil, nil
	last := w.open(nil)
	if err := w.do(last); err != nil {
		w.t.Fatal(err)
	}
	if got := w.check(); len(got) < 5 {
		w.t.Errorf("only %d of %d transactions are committed", len(got), w.sent)
	}
	if n := w.mem.open(); n != 0 {
		w.t.Errorf("%d transactions stay prepared in the store", n)
	}
}
