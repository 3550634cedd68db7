package session_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/txn/session"
)

// line is a network that can be taken away: while it is dead, what is written
// goes out if it can, but nothing comes back.
type line struct {
	mu   sync.Mutex
	dead bool
	deaf bool // requests do not even get out
}

func (l *line) set(dead, deaf bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead, l.deaf = dead, deaf
}

func (l *line) get() (dead, deaf bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead, l.deaf
}

func (l *line) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if dead, _ := l.get(); dead {
		return nil, errors.New("no route")
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &lineConn{Conn: c, line: l}, nil
}

type lineConn struct {
	net.Conn
	line *line
}

func (c *lineConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if dead, _ := c.line.get(); dead {
		return 0, errors.Join(errors.New("connection lost"), c.Close())
	}
	return n, err
}

func (c *lineConn) Write(b []byte) (int, error) {
	if _, deaf := c.line.get(); deaf {
		return 0, errors.Join(errors.New("connection lost"), c.Close())
	}
	return c.Conn.Write(b)
}

// The network goes away at the moment of the commit, in one case before the
// request is out and in the other before its answer is back. Both times the
// outcome is unknown and said to be; afterwards the session goes on with the
// truth, whichever it was.
func TestUnknownOutcome(t *testing.T) {
	for _, c := range []struct {
		name string
		deaf bool
	}{{"request lost", true}, {"answer lost", false}} {
		t.Run(c.name, func(t *testing.T) {
			onEach(t, func(t *testing.T, w *world) { testUnknownOutcome(t, w, c.deaf) })
		})
	}
}

func testUnknownOutcome(t *testing.T, w *world, deaf bool) {
	in, out := w.topic("in", 2), w.topic("out", 2)
	w.fill(in, 2, 200)
	group := unique(t, "g")
	var l line
	ends := 0
	s := w.open(session.Options{
		ClusterOptions: session.ClusterOptions{Dial: l.Dial},
		Group:          group, TransactionalID: group, Instance: group, Topics: []string{in}, MaxRecords: 40,
		TransactionTimeout: 2 * time.Second,
		OnStep: func(s session.Step) error {
			if s == session.StepEnd {
				if ends++; ends == 2 {
					l.set(true, deaf)
				}
			}
			return nil
		},
	})
	unknown := 0
	for idle := false; !idle || w.visible(out, 2) < 200; {
		k, err := step(w.ctx, s, out)
		if err == nil {
			err = s.Commit(w.ctx)
		}
		switch {
		case errors.Is(err, session.ErrUnknownOutcome):
			unknown++
			l.set(false, false)
		case err != nil:
			t.Fatal(err)
		}
		idle = k == 0 && err == nil
	}
	if unknown != 1 {
		t.Errorf("%d commits of unknown outcome, want 1", unknown)
	}
	if err := s.Close(w.ctx); err != nil {
		t.Fatal(err)
	}
	if got := w.committed(out, 2); !slices.Equal(got, want(200)) {
		t.Errorf("%d records, want 200 different ones", len(got))
	}
}

// A transaction that has been open for too long is not committed, and the
// session goes on.
func TestCommitAfterTheDeadline(t *testing.T) { onEach(t, testCommitAfterTheDeadline) }

func testCommitAfterTheDeadline(t *testing.T, w *world) {
	in, out := w.topic("in", 1), w.topic("out", 1)
	w.fill(in, 1, 50)
	group := unique(t, "g")
	s := w.open(session.Options{Group: group, TransactionalID: group, Topics: []string{in}, TransactionTimeout: 300 * time.Millisecond})
	late := 0
	for idle := false; !idle || w.visible(out, 1) < 50; {
		k, err := step(w.ctx, s, out)
		if err == nil {
			if k > 0 && late == 0 {
				time.Sleep(400 * time.Millisecond) // what this test is about
			}
			err = s.Commit(w.ctx)
		}
		switch {
		case errors.Is(err, session.ErrAborted):
			late++
		case err != nil:
			t.Fatal(err)
		}
		idle = k == 0 && err == nil
	}
	if late != 1 {
		t.Errorf("%d commits were refused, want the late one", late)
	}
	if err := s.Close(w.ctx); err != nil {
		t.Fatal(err)
	}
	if got := w.committed(out, 1); !slices.Equal(got, want(50)) {
		t.Errorf("%d records, want 50 different ones", len(got))
	}
}
