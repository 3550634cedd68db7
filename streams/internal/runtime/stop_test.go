package runtime_test

import (
	"context"
	"errors"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/streams/internal/runtime"
	"github.com/millrace/millrace/txn/session"
)

// A run ends soon after its ctx does, also when the cluster does not answer, or
// is not there at all, in the middle of a transaction or before the start.
func TestStopsWithoutTheCluster(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]func(m *machine){
		"silent": (*machine).hold,
		"away": func(m *machine) {
			_ = m.node.Broker().Close() // the test's end closes it once more and reports
			m.cut(func() bool { return true })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			j := newJobOn(t, time.Minute, m)
			dir := t.TempDir()
			j.label()
			j.once(dir)
			o := j.options(dir)
			committing := make(chan struct{})
			var once sync.Once
			o.OnStep = func(int, session.Step) error {
				once.Do(func() {
					gone(m)
					close(committing)
				})
				return nil
			}
			j.send(500)
			r := j.start(o)
			<-committing
			j.ends(r)
			j.ends(j.start(j.options(dir)))
			j.ends(j.start(j.options("")))
		})
	}
}

// ends stops a run and wants it to be over before anybody would lose patience.
// What it returns depends on what it was about to do.
func (j *job) ends(r *running) {
	j.t.Helper()
	r.stop()
	select {
	case err := <-r.done:
		j.t.Logf("ended with %v", err)
	case <-time.After(20 * time.Second):
		buf := make([]byte, 1<<20)
		j.t.Fatalf("goes on\n%s", buf[:goruntime.Stack(buf, true)])
	}
}

// After Run has returned, in whatever way, none of its goroutines is left. It
// is not parallel, so that those of other tests do not count.
func TestNothingStaysBehind(t *testing.T) {
	j := newJob(t, time.Minute)
	dir := t.TempDir()
	j.label()
	j.send(100)
	j.once(dir)
	before := settled(t, 0)
	for range 3 {
		j.send(50)
		r := j.start(j.options(dir))
		j.await(r)
		j.finish(r)
		j.ends(j.start(j.options(dir))) // at once
		ends, stop := context.WithCancel(j.ctx)
		o := j.options(dir)
		o.OnState = func(int, runtime.State) { stop() } // while it joins
		if err := runtime.Run(ends, j.topology(), j.cluster, o); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(j.ctx)
		cancel()
		if err := runtime.Run(ctx, j.topology(), j.cluster, j.options(dir)); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if after := settled(t, before); after > before {
		buf := make([]byte, 1<<20)
		t.Errorf("%d goroutines, %d before\n%s", after, before, buf[:goruntime.Stack(buf, true)])
	}
	j.check()
}

// once runs the job until all is counted.
func (j *job) once(dir string) {
	r := j.start(j.options(dir))
	j.await(r)
	j.finish(r)
}

// settled returns the number of goroutines once it is at most want, or has had
// ten seconds to get there; with want 0, once it has not changed for a while.
func settled(t *testing.T, want int) int {
	t.Helper()
	last, same := -1, 0
	for range 500 {
		n := goruntime.NumGoroutine()
		if n == last {
			same++
		} else {
			last, same = n, 0
		}
		if want > 0 && n <= want || want == 0 && same == 10 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return last
}
