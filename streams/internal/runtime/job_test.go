package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/streams/internal/runtime"
	"github.com/millrace/millrace/streams/internal/task"
	"github.com/millrace/millrace/txn/session"
)

func (j *job) open(o runtime.Options) *runtime.Job {
	j.t.Helper()
	r, err := runtime.Start(j.ctx, j.topology(), j.cluster, o)
	if err != nil {
		j.t.Fatal(err)
	}
	j.t.Cleanup(func() { _ = r.Close(context.Background(), runtime.LeaveGroup) }) // the test has closed it, or failed
	return r
}

// counts waits until all that was sent is counted.
func (j *job) counts(r *runtime.Job) {
	j.t.Helper()
	for j.results() < j.sent {
		select {
		case <-r.Done():
			j.t.Fatalf("the run ended: %v", r.Wait())
		case <-j.ctx.Done():
			j.t.Fatalf("%d of %d results", j.results(), j.sent)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (j *job) must(err error) {
	j.t.Helper()
	if err != nil {
		j.t.Fatal(err)
	}
}

// Workers come and go while records flow; a process that joins in the middle takes
// its share. Everything is counted once, and processed once.
func TestWorkersComeAndGo(t *testing.T) {
	t.Parallel()
	j := newJob(t, 2*time.Minute)
	dirs := []string{t.TempDir(), t.TempDir()}
	j.label()
	j.send(400)
	o := j.options(dirs[0])
	o.Workers = 1
	r := j.open(o)
	j.counts(r)
	for want := 1; want <= 2; want++ {
		n, err := r.AddWorker()
		if err != nil || n != want {
			t.Fatalf("added worker %d, %v", n, err)
		}
		j.send(300)
	}
	j.must(r.Await(j.ctx, runtime.JobRunning))
	o.StateDir = dirs[1]
	other := j.open(o)
	j.send(300)
	j.counts(r)
	if err := other.Close(j.ctx, runtime.LeaveGroup); err != nil {
		t.Fatal(err)
	}
	for want := 2; want >= 1; want-- {
		j.send(300)
		if n, err := r.RemoveWorker(j.ctx); err != nil || n != want {
			t.Fatalf("removed worker %d, %v", n, err)
		}
	}
	if _, err := r.RemoveWorker(j.ctx); err == nil || !strings.Contains(err.Error(), "last worker") {
		t.Errorf("the last worker was removed: %v", err)
	}
	j.send(300)
	j.counts(r)
	j.must(r.Close(j.ctx, runtime.AsOptions))
	j.check()
	for _, dir := range dirs {
		j.checkStores(dir)
	}
	if got, want := j.calls.Load(), int64(2*j.sent+words); got != want {
		t.Errorf("%d records were processed, want %d", got, want)
	}
	if _, err := r.AddWorker(); !errors.Is(err, runtime.ErrEnded) {
		t.Errorf("a worker was added to a run that is over: %v", err)
	}
}

// A pause commits, keeps the tasks, and survives a rebalance; nothing is processed
// until it is over.
func TestPause(t *testing.T) {
	t.Parallel()
	j := newJob(t, time.Minute)
	j.label()
	j.send(200)
	var mu sync.Mutex
	var seen []runtime.JobState
	o := j.options(t.TempDir())
	o.OnJobState = func(s runtime.JobState) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, s)
	}
	r := j.open(o)
	j.counts(r)
	j.must(r.Pause(j.ctx))
	if s, workers := r.State(); s != runtime.JobPaused || len(workers) != 2 || workers[0].State != runtime.Paused || workers[0].Tasks+workers[1].Tasks != 8 {
		t.Errorf("%s, %+v", s, workers)
	}
	before := j.calls.Load()
	j.send(100)
	// A third worker makes the group rebalance: it pauses too.
	if _, err := r.AddWorker(); err != nil {
		t.Fatal(err)
	}
	j.must(j.paused(r, 3))
	if n := j.calls.Load(); n != before {
		t.Errorf("%d records were processed during the pause", n-before)
	}
	r.Resume()
	j.counts(r)
	j.must(r.Close(j.ctx, runtime.AsOptions))
	j.check()
	mu.Lock()
	defer mu.Unlock()
	got := fmt.Sprint(slices.Compact(seen))
	for _, want := range []string{"rebalancing running paused", "stopping stopped]"} {
		if !strings.Contains(got, want) {
			t.Errorf("states %s, want %s among them", got, want)
		}
	}
}

// paused waits until so many workers rest.
func (j *job) paused(r *runtime.Job, workers int) error {
	for {
		s, all := r.State()
		if s == runtime.JobPaused && len(all) == workers && all[workers-1].State == runtime.Paused {
			return nil
		}
		select {
		case <-j.ctx.Done():
			return fmt.Errorf("%s, %+v: %w", s, all, j.ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// A drain processes what is there, in all stages, and comes to an end although more
// keeps coming, with a rebalance in the middle. What it leaves is there for the next
// run.
func TestDrain(t *testing.T) {
	t.Parallel()
	j := newJob(t, time.Minute)
	dir := t.TempDir()
	j.label()
	j.send(1500)
	r := j.open(j.options(dir))
	j.must(r.Pause(j.ctx)) // so that there is something left to drain
	j.send(500)
	before, drained := j.sent, make(chan error, 1)
	go func() { drained <- r.Drain(j.ctx) }()
	for n, done := 0, false; !done; n++ {
		j.send(20)
		switch n {
		case 3:
			r.Resume()
		case 5:
			if _, err := r.AddWorker(); err != nil && !errors.Is(err, runtime.ErrEnded) {
				t.Fatal(err)
			}
		}
		select {
		case err := <-drained:
			j.must(err)
			done = true
		case <-time.After(5 * time.Millisecond):
		}
	}
	if s, _ := r.State(); s != runtime.JobStopped {
		t.Errorf("it is %s after a drain", s)
	}
	if n := j.results(); n < before || n > j.sent {
		t.Errorf("%d results: %d events were there before the drain, %d after it", n, before, j.sent)
	}
	j.checkStores(dir)
	j.send(100)
	j.once(dir)
	j.check()
	j.checkStores(dir)
}

// An application that fails ends a drain, a wait and a close with what it failed of.
func TestFailureReachesEverybodyWhoWaits(t *testing.T) {
	t.Parallel()
	j := newJob(t, time.Minute)
	j.label()
	o := j.options(t.TempDir())
	var broken atomic.Bool
	app := j.topology()
	make := app.Subs[1].New
	app.Subs[1].New = func(e task.Env) (task.Task, error) {
		t, err := make(e)
		return &panicking{t, &broken}, err
	}
	r, err := runtime.Start(j.ctx, app, j.cluster, o)
	j.must(err)
	j.send(50)
	j.counts(r)
	broken.Store(true)
	j.send(50)
	for what, err := range map[string]error{"drain": r.Drain(j.ctx), "wait": r.Wait(), "close": r.Close(j.ctx, runtime.AsOptions), "await": r.Await(j.ctx, runtime.JobRunning)} {
		var f *task.Failure
		var p *task.Panic
		if !errors.As(err, &f) || !errors.As(err, &p) {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if f.Node != "count" || !strings.HasSuffix(f.Topic, "words-repartition") || f.Offset < 0 || p.Value != "out of order" || !strings.Contains(string(p.Stack), "panicking") {
			t.Errorf("%s: failure %+v, stack\n%s", what, f, p.Stack)
		}
	}
	if s, _ := r.State(); s != runtime.JobFailed {
		t.Errorf("it is %s", s)
	}
}

// panicking fails as a function does that no error chain covers.
type panicking struct {
	task.Task
	broken *atomic.Bool
}

func (p *panicking) Process(r *task.Record) error {
	if p.broken.Load() && strings.HasSuffix(r.Topic, "repartition") {
		panic("out of order")
	}
	return p.Task.Process(r)
}

// By policy a worker that failed is replaced and goes on from the last commit.
func TestWorkerIsReplaced(t *testing.T) {
	t.Parallel()
	j := newJob(t, time.Minute)
	j.label()
	app := j.topology()
	var broken atomic.Bool
	make := app.Subs[1].New
	app.Subs[1].New = func(e task.Env) (task.Task, error) {
		t, err := make(e)
		return &panicking{t, &broken}, err
	}
	o := j.options(t.TempDir())
	var failures atomic.Int64
	o.OnUncaught = func(err error) runtime.Uncaught {
		var p *task.Panic
		if !errors.As(err, &p) {
			t.Errorf("the policy is asked about %v", err)
		}
		if failures.Add(1) == 5 {
			broken.Store(false)
		}
		return runtime.ReplaceWorker
	}
	r, err := runtime.Start(j.ctx, app, j.cluster, o)
	j.must(err)
	j.send(300)
	j.counts(r)
	broken.Store(true)
	j.send(300)
	j.counts(r)
	j.must(r.Close(j.ctx, runtime.AsOptions))
	if failures.Load() < 5 {
		t.Errorf("%d failures", failures.Load())
	}
	j.check()
	j.checkStores(o.StateDir)
}

// A process that was killed in the middle of a transaction and starts again takes it
// back itself: the start does not wait for the transaction to time out.
func TestRestartWaitsForNoTimeout(t *testing.T) {
	t.Parallel()
	j := newJob(t, time.Minute)
	dir := t.TempDir()
	j.label()
	j.send(200)
	o := j.options(dir)
	o.TransactionTimeout = 2 * time.Minute // more than the test has
	crash := o
	var n atomic.Int64
	crash.OnStep = func(_ int, s session.Step) error {
		if s == session.StepEnd && n.Add(1) == 2 {
			return errTestCrash
		}
		return nil
	}
	if err := j.feedUntilEnd(j.start(crash)); !errors.Is(err, errTestCrash) {
		t.Fatal(err)
	}
	r := j.open(o)
	j.counts(r)
	j.must(r.Close(j.ctx, runtime.AsOptions))
	j.check()
	j.checkStores(dir)
}

// Workers that ran in this folder before and do not come back keep nothing: not their
// tasks, which a session would hold for long, and not their transactions.
func TestFormerWorkersAreDismissed(t *testing.T) {
	t.Parallel()
	j := newJob(t, time.Minute)
	dir := t.TempDir()
	j.label()
	o := j.options(dir)
	o.Workers, o.SessionTimeout, o.TransactionTimeout = 3, 2*time.Minute, 2*time.Minute // more than the test has
	crash := o
	var n atomic.Int64
	crash.OnStep = func(_ int, s session.Step) error {
		if s == session.StepEnd && n.Add(1) == 3 {
			return errTestCrash
		}
		return nil
	}
	if err := j.feedUntilEnd(j.start(crash)); !errors.Is(err, errTestCrash) {
		t.Fatal(err)
	}
	o.Workers = 1
	r := j.open(o)
	j.send(200)
	j.counts(r)
	if _, err := r.AddWorker(); err != nil {
		t.Fatal(err)
	}
	j.must(r.Await(j.ctx, runtime.JobRunning))
	// The added one is not part of the next start, so it leaves although the process
	// remains.
	j.must(r.Close(j.ctx, runtime.RemainInGroup))
	j.send(200)
	r = j.open(o)
	j.counts(r)
	j.must(r.Close(j.ctx, runtime.AsOptions))
	j.check()
	j.checkStores(dir)
}
