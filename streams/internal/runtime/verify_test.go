package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/core/seedtest"
	"github.com/millrace/millrace/core/vfs"
	"github.com/millrace/millrace/streams/internal/runtime"
	"github.com/millrace/millrace/txn/session"
)

// TestPitfall30: topics that were filled before give the same output, record by
// record, in every run (KAFKA-12360, KAFKA-10091): here in 20 applications over copies
// of the same input.
func TestPitfall30PreloadedTopicsGiveTheSameOutput(t *testing.T) {
	t.Parallel()
	var first string
	cluster := brokers(t)
	for run := range 20 {
		j := newJobOn(t, time.Minute, cluster)
		// The table changes while events happen: which label an event gets
		// depends on the order in which the two topics are read.
		j.label()
		for i := range 20 {
			j.relabel(i, 1_000_000_000_000+int64(i)*37)
		}
		j.sendKeyed(800)
		o := j.options(t.TempDir())
		// Little by little, so that one topic is often ahead of the other.
		o.ReadAhead, o.InputBytes, o.Leave = 300+100*run, 1000*(1+run%5), true
		r := j.startCount(o)
		j.await(r)
		j.finish(r)
		var out strings.Builder
		got := j.read(j.out, nil)
		for p := range int32(partitions) {
			for _, rec := range got[p] {
				fmt.Fprintf(&out, "%d %s %s %d\n", p, rec.Key, rec.Value, rec.Time.UnixMilli())
			}
		}
		if run == 0 {
			first = out.String()
		} else if out.String() != first {
			t.Fatalf("run %d gave another output than the first", run)
		}
	}
	if n := strings.Count(first, "new-label"); n == 0 {
		t.Error("no event met a changed label, so the test shows nothing")
	}
}

// A task waits for producers as long as it is told to: rows of a table that come later
// and are older are met. Rows that never come are given up.
func TestTaskIdle(t *testing.T) {
	t.Parallel()
	const event = 1_000_000_000_000 // time of the first
	for _, c := range []struct {
		idle time.Duration
		late bool // rows come after the events
		want string
	}{
		{time.Minute, true, "new"},
		{100 * time.Millisecond, false, "label"},
		{0, false, "label"},
		{-1, false, ""}, // as they come
	} {
		t.Run(c.idle.String(), func(t *testing.T) {
			t.Parallel()
			j := newJob(t, 40*time.Second)
			j.label()
			o := j.options(t.TempDir())
			o.TaskIdle = c.idle
			o.Workers = 1
			j.sendKeyed(200)
			r := j.startCount(o)
			if c.late {
				time.Sleep(300 * time.Millisecond) // the other runs do not wait for it
				for i := range words {
					j.relabel(i, event-1)
				}
				for i := range words { // and something that ends the wait
					j.relabel(i, event+1_000_000)
				}
			}
			j.await(r)
			j.finish(r)
			for _, rs := range j.read(j.out, nil) {
				for _, rec := range rs {
					if label, _, _ := strings.Cut(string(rec.Value), "-"); c.want != "" && label != c.want {
						t.Fatalf("%s has met %q, want %q", rec.Key, rec.Value, c.want)
					}
				}
			}
		})
	}
}

func TestStateFolderBelongsToOneProcess(t *testing.T) {
	t.Parallel()
	j := newJob(t, time.Minute)
	dir := t.TempDir()
	j.label()
	j.send(10)
	r := j.start(j.options(dir))
	j.await(r)
	if err := runtime.Run(j.ctx, j.topology(), j.cluster, j.options(dir)); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("second run in the same folder: %v", err)
	}
	j.finish(r)
}

// Two processes with the same instance id: the older one ends, and says why.
func TestSameInstanceReplacesTheOlder(t *testing.T) {
	t.Parallel()
	j := newJob(t, time.Minute)
	j.label()
	j.send(100)
	options := func() runtime.Options {
		o := j.options(t.TempDir())
		o.InstanceID, o.Workers = "the-one", 1
		return o
	}
	older := j.start(options())
	j.await(older)
	newer := j.start(options())
	select {
	case err := <-older.done:
		if !errors.Is(err, session.ErrFenced) {
			t.Errorf("the older process ended with %v", err)
		}
	case <-j.ctx.Done():
		t.Fatal("the older process goes on")
	}
	j.send(100)
	j.await(newer)
	j.finish(newer)
	j.check()
}

// Stores in memory restore everything, and the result is the same.
func TestWithoutStateDir(t *testing.T) {
	t.Parallel()
	j := newJob(t, time.Minute)
	j.label()
	for range 3 {
		j.send(300)
		r := j.start(j.options(""))
		j.await(r)
		j.finish(r)
	}
	j.check()
}

// Connections that break at any moment, replies lost included: the outcome of
// some commits is unknown then, and still nothing is lost or counted twice.
func TestBrokenConnections(t *testing.T) {
	t.Parallel()
	j := newJob(t, 2*time.Minute)
	dir := t.TempDir()
	seed := seedtest.New(t)
	c := &flaky{Cluster: j.cluster, rnd: rand.New(rand.NewPCG(seed, 2))}
	j.label()
	ctx, stop := context.WithCancel(j.ctx)
	r := &running{stop: stop, done: make(chan error, 1)}
	go func() { r.done <- runtime.Run(ctx, j.topology(), c, j.options(dir)) }()
	for range 40 {
		j.send(50)
		c.cut()
		select {
		case err := <-r.done:
			t.Fatalf("run ended: %v", err)
		case <-time.After(40 * time.Millisecond):
		}
	}
	j.await(r)
	j.finish(r)
	j.check()
	j.checkStores(dir)
	if c.cuts == 0 {
		t.Error("no connection was cut")
	}
}

// flaky cuts connections of its client, some in mid-answer.
type flaky struct {
	runtime.Cluster
	mu    sync.Mutex
	rnd   *rand.Rand
	conns []net.Conn
	cuts  int
}

func (f *flaky) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := f.Cluster.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conns = append(f.conns, c)
	return c, nil
}

// cut closes about a third of the connections: what the client has sent goes
// out, the answers are lost.
func (f *flaky) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conns = slices.DeleteFunc(f.conns, func(c net.Conn) bool {
		if f.rnd.IntN(3) > 0 {
			return false
		}
		if c.Close() == nil {
			f.cuts++
		}
		return true
	})
}
