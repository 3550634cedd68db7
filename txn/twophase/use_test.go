package twophase_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/txn/session"
	"github.com/millrace/millrace/txn/twophase"
)

// TestSweep: a zombie prepares in the store after its successor has looked for what is prepared, and dies before it hears that
// it is fenced. What it leaves can not commit, and is swept. A zombie that sweeps does no harm to its successor.
func TestSweep(t *testing.T) {
	t.Parallel()
	w := newWorld(t, byLog)
	paused, wake := make(chan struct{}), make(chan struct{})
	old := w.open(func(s twophase.Step) error {
		switch s {
		case twophase.StepWritten:
			close(paused)
			<-wake
		case twophase.StepPrepared, twophase.StepDecided:
			return errCrash
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
	w.mem.finishErr = errCrash // the zombie does not get to roll back
	close(wake)
	if err := <-done; err == nil {
		t.Fatal("the old one committed")
	}
	w.mem.finishErr = nil
	if n := w.mem.open(); n != 1 {
		t.Fatalf("%d transactions are prepared: the test shows nothing", n)
	}
	if err := old.Sweep(w.ctx()); err == nil {
		t.Error("one that has crashed sweeps")
	}
	if err := next.Sweep(w.ctx()); err != nil || w.mem.open() != 0 {
		t.Errorf("sweep: %v, %d are left", err, w.mem.open())
	}
	if err := w.do(next); err != nil {
		t.Error(err)
	}
	w.check()
	third := w.open(nil)
	if err := next.Sweep(w.ctx()); err != nil {
		t.Errorf("with nothing on the list there is nothing to refuse: %v", err)
	}
	w.mem.prepared["millrace/orders//99:0/1"] = nil // of a newer incarnation still
	if err := next.Sweep(w.ctx()); !errors.Is(err, twophase.ErrFenced) || w.mem.open() != 1 {
		t.Errorf("sweep of a zombie: %v, %d are left", err, w.mem.open())
	}
	delete(w.mem.prepared, "millrace/orders//99:0/1")
	if err := w.do(third); err != nil {
		t.Error(err)
	}
	w.check()
}

// TestOffsets: positions of a group move with what was made of the records before them.
func TestOffsets(t *testing.T) {
	t.Parallel()
	for _, way := range directions {
		t.Run(string(way), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, way)
			c := w.open(crashAt(twophase.StepPrepared, 3))
			part := session.TopicPartition{Topic: "out", Partition: 0}
			work := func(n int, fail error) func(*twophase.Txn[*pending]) error {
				return func(tx *twophase.Txn[*pending]) error {
					err := tx.CommitOffsets(w.ctx(), session.Generation{Group: "g"}, session.Offsets{part: {Next: int64(n), LeaderEpoch: -1}})
					return errors.Join(w.work(n)(tx), err, fail)
				}
			}
			committed := func() int64 {
				t.Helper()
				var at int64
				w.admin(func(adm *kadm.Client) {
					offsets, err := adm.FetchOffsets(w.ctx(), "g")
					if err != nil {
						t.Fatal(err)
					}
					o, _ := offsets.Lookup("out", 0)
					at = o.At
				})
				return at
			}
			if err := c.Do(w.ctx(), work(1, nil)); err != nil || committed() != 1 {
				t.Fatalf("commit: %v, offset %d", err, committed())
			}
			if err := c.Do(w.ctx(), work(2, errRefused)); !errors.Is(err, twophase.ErrAborted) || !errors.Is(err, errRefused) || committed() != 1 {
				t.Fatalf("work that fails: %v, offset %d", err, committed())
			}
			if err := c.Do(w.ctx(), work(3, nil)); err != nil || committed() != 3 {
				t.Fatalf("commit: %v, offset %d", err, committed())
			}
			if err := c.Do(w.ctx(), work(4, nil)); !errors.Is(err, errCrash) {
				t.Fatal(err)
			}
			w.open(nil)
			if committed() != 3 {
				t.Errorf("after a crash before the decision: offset %d", committed())
			}
			w.check()
		})
	}
}

// TestNothingForTheLog: a transaction that sends nothing is one of the store alone.
func TestNothingForTheLog(t *testing.T) {
	t.Parallel()
	for _, way := range directions {
		w := newWorld(t, way)
		c := w.open(nil)
		for n := range 2 {
			if err := c.Do(w.ctx(), func(tx *twophase.Txn[*pending]) error { tx.Store.Insert(n); return nil }); err != nil {
				t.Fatalf("%s: %v", way, err)
			}
		}
		if got := w.mem.has(); len(got) != 2 {
			t.Errorf("%s: rows %v", way, got)
		}
	}
}

// TestPanic: what a transaction had written that ended in a panic is in neither side of a later one.
func TestPanic(t *testing.T) {
	t.Parallel()
	for _, way := range directions {
		w := newWorld(t, way)
		c := w.open(nil)
		func() {
			defer func() { _ = recover() }() // it is this test's own
			w.sent++
			_ = c.Do(w.ctx(), func(tx *twophase.Txn[*pending]) error {
				if err := w.work(1)(tx); err != nil {
					return err
				}
				panic("in the middle")
			})
		}()
		if err := c.Do(w.ctx(), w.work(2)); !errors.Is(err, twophase.ErrUnfinished) {
			t.Errorf("%s: the next one without recovery: %v", way, err)
		}
		if err := c.Recover(w.ctx()); err != nil {
			t.Fatal(err)
		}
		if err := w.do(c); err != nil {
			t.Error(err)
		}
		if got := w.check(); len(got) != 1 {
			t.Errorf("%s: %v is committed", way, got)
		}
	}
}

// TestUnsupported: what a cluster does not offer is said in words, at once.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	off := brokertest.Start(t)
	o := twophase.Options{TransactionalID: "x"}
	_, err := twophase.OpenStoreDecides(t.Context(), off, newMem(), o)
	if err == nil || !strings.Contains(err.Error(), "transaction.two.phase.commit.enable") {
		t.Errorf("a broker that does not take part: %v", err)
	}
	if c, err := twophase.OpenLogDecides(t.Context(), off, newMem(), o); err != nil {
		t.Errorf("the log may decide there all the same: %v", err)
	} else {
		c.Close()
	}
	if _, err := twophase.OpenLogDecides(t.Context(), off, newMem(), twophase.Options{}); err == nil {
		t.Error("no transactional id")
	}
	refusing := brokertest.Start(t, brokertest.Configure(func(c *broker.Config) {
		c.TransactionTwoPhaseCommit = true
		c.Authorize = func(a broker.Access) bool { return a.Operation != "TWO_PHASE_COMMIT" }
	}))
	if _, err := twophase.OpenStoreDecides(t.Context(), refusing, newMem(), o); err == nil || !strings.Contains(err.Error(), "TWO_PHASE_COMMIT") {
		t.Errorf("without the right: %v", err)
	}
}

// TestUnknownTopic: a mistake aborts, and the next transaction goes on.
func TestUnknownTopic(t *testing.T) {
	t.Parallel()
	for _, way := range directions {
		w := newWorld(t, way)
		c := w.open(nil)
		for _, r := range []session.Record{{Topic: "nowhere"}, {Topic: "out", Partition: 7}} {
			err := c.Do(w.ctx(), func(tx *twophase.Txn[*pending]) error { tx.Store.Insert(9); return tx.Send(w.ctx(), r) })
			if !errors.Is(err, twophase.ErrAborted) || !strings.Contains(err.Error(), r.Topic) {
				t.Errorf("%s: %+v: %v", way, r, err)
			}
		}
		if err := w.do(c); err != nil {
			t.Errorf("%s: afterwards: %v", way, err)
		}
		w.check()
	}
}
