package restore_test

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/millrace/millrace/streams/internal/restore"
	"github.com/millrace/millrace/streams/state"
	"github.com/millrace/millrace/txn/session"
)

// A panic of user code ends the restore, not the process, and says where it was.
func TestPanicOfARow(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.put("a=1", "b=2")
	j := l.job(state.NewMemory())
	j.Row = func(*session.Record) ([]byte, []byte, bool) { panic("a serde") }
	err := restore.Run(l.ctx, l.cluster, []*restore.Job{j}, slog.New(slog.DiscardHandler))
	var p *restore.Panic
	if !errors.As(err, &p) || p.Value != "a serde" || len(p.Stack) == 0 {
		t.Errorf("%v", err)
	}
}

// A copy goes on as the log does, stops at its bound, and is complete like any other
// store once it is promoted.
func TestCopyFollows(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.put("a=1")
	img := state.NewMemory()
	j := l.job(img)
	j.Follow, j.Bound = true, 3
	if err := restore.Prepare(l.ctx, l.cluster, []*restore.Job{j}, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	set := restore.NewSet(l.cluster)
	defer set.Close()
	set.Add(j)
	step := func(until int64) {
		t.Helper()
		for set.Step() || j.Position() < until {
			if j.Err() != nil {
				t.Fatal(j.Err())
			}
			select {
			case <-set.Arrived():
			case <-l.ctx.Done():
				t.Fatalf("stuck at %d of %d", j.Position(), until)
			}
		}
	}
	step(1)
	l.put("b=2", "c=3", "d=4", "a")
	step(3)
	if _, ok, err := j.Overlay.Committed().Get([]byte("d")); ok || err != nil {
		t.Errorf("a copy has what lies behind its bound: %v, %v", ok, err)
	}
	if v, ok, err := j.Overlay.Committed().Get([]byte("c")); string(v) != "3" || !ok || err != nil {
		t.Errorf("a copy at its bound has c=%q, %v, %v", v, ok, err)
	}
	j.Bound = restore.Unbounded
	step(5)
	if n := j.Remaining(); n != 0 {
		t.Errorf("a copy that has everything lacks %d", n)
	}
	if err := set.Remove(j); err != nil {
		t.Fatal(err)
	}
	l.put("e=5")
	promoted := l.job(img)
	l.run(promoted)
	l.check(promoted, 1, "")
}

// Pitfall 10 (KAFKA-12951): the end of a changelog is a marker, and before it lies
// what was aborted: a restore gets there all the same.
func TestPitfall10TheLogEndsWithMarkers(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.put("a=1")
	p, err := l.cluster.NewProducer(l.ctx, session.ProducerOptions{TransactionalID: "owner"})
	if err != nil {
		t.Fatal(err)
	}
	send := func(k, v string) {
		t.Helper()
		if err := p.Send(l.ctx, &session.Record{Topic: "log", Key: []byte(k), Value: []byte(v)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	send("b", "2")
	if err := p.Commit(l.ctx, nil, session.Generation{}); err != nil {
		t.Fatal(err)
	}
	l.want["b"] = "2"
	send("c", "never")
	if err := p.Abort(l.ctx); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(l.ctx); err != nil {
		t.Fatal(err)
	}
	j := l.job(state.NewMemory())
	l.run(j)
	l.check(j, 2, "")
}
