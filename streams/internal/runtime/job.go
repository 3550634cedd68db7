package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/txn/session"
)

// Job is a run of an application in this process: its workers, and what its owner
// may ask of them while they work. Safe for concurrent use.
type Job struct {
	run     *run
	control *control
	ctx     context.Context // ends when the job is to stop
	cancel  context.CancelFunc
	done    chan struct{} // closed when everything is let go of
	cleaned chan struct{} // closed when no clean-up of stores is under way any more

	mu   sync.Mutex
	crew map[int]*hand
	err  error // the first of any worker; final when done is closed
	over bool  // no more workers

	goals sync.Mutex // held by Drain: one at a time

	following sync.WaitGroup // of follow
}

// hand is a worker's place in the job, kept when the worker in it is replaced.
type hand struct {
	number  int
	ctx     context.Context
	cancel  context.CancelFunc
	parting atomic.Int32 // a Parting
	done    chan struct{}

	mu  sync.Mutex
	end context.CancelFunc // of the worker's life in this place
}

// begin begins the life of a worker. renewed tells, when it has ended in order, whether
// that was to make room for the next one.
func (h *hand) begin() (life context.Context, renewed func() bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.end != nil {
		h.end()
	}
	life, h.end = context.WithCancel(h.ctx)
	return life, func() bool { return life.Err() != nil && h.ctx.Err() == nil }
}

// renew has the workers commit and makes others in their places, with the plan as it
// is now.
func (j *Job) renew() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, h := range j.crew {
		h.mu.Lock()
		if h.end != nil {
			h.end()
		}
		h.mu.Unlock()
	}
}

// moved tells whether a worker has ended since a topic that a pattern matches is gone,
// and makes the plan for the next one.
func (j *Job) moved(err error) bool {
	if !errors.Is(err, session.ErrRecreated) || !j.run.app.Patterns() || j.ctx.Err() != nil {
		return false
	}
	old := j.run.planned()
	now, lerr := j.run.look(j.ctx, old)
	if lerr != nil || now == old {
		return false
	}
	j.run.current.CompareAndSwap(old, now)
	return true
}

// errStopped marks what Start returns because its ctx has ended.
var errStopped = errors.New("streams: stopped before the start")

// Start starts an application; it runs until ctx ends or it is closed. When Start
// returns, the cluster has been asked for everything that may refuse a start, the
// internal topics are there and the workers have begun to join.
func Start(ctx context.Context, app *topology.Topology, cluster Cluster, options Options) (*Job, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	if app.AppID == "" {
		return nil, errors.New("streams: the application has no id")
	}
	options = options.withDefaults()
	r := &run{app: app, cluster: cluster, options: options, log: options.Logger}
	if err := r.identify(); err != nil {
		return nil, err
	}
	if err := r.open(ctx); err != nil {
		r.close()
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", errStopped, err)
		}
		return nil, err
	}
	j := &Job{run: r, control: newControl(options.OnJobState), done: make(chan struct{}), cleaned: make(chan struct{}), crew: map[int]*hand{}}
	j.ctx, j.cancel = context.WithCancel(ctx)
	r.watched(func() JobState { s, _ := j.control.now(); return s })
	if err := r.begin(j.ctx); err != nil {
		j.cancel()
		r.close()
		return nil, err
	}
	go r.cleanUp(j.ctx, j.cleaned)
	j.following.Go(j.follow)
	context.AfterFunc(j.ctx, func() { j.control.enter(JobStopping) })
	j.mu.Lock()
	defer j.mu.Unlock()
	for n := range options.Workers {
		j.hireLocked(n)
	}
	return j, nil
}

// hireLocked starts a worker.
func (j *Job) hireLocked(number int) *hand {
	h := &hand{number: number, done: make(chan struct{})}
	h.ctx, h.cancel = context.WithCancel(j.ctx)
	if number >= j.run.options.Workers {
		h.parting.Store(int32(LeaveGroup)) // the next start does not bring it back
	}
	j.crew[number] = h
	j.control.hire(number)
	go func() {
		err := j.work(h)
		h.cancel()
		j.part(h, err)
	}()
	return h
}

// part takes note that a worker has ended; after the last one the job lets go of
// what they shared.
func (j *Job) part(h *hand, err error) {
	j.mu.Lock()
	delete(j.crew, h.number)
	if err != nil && j.err == nil {
		j.err = err
	}
	last := len(j.crew) == 0
	j.over = j.over || last
	failed := j.err != nil
	j.mu.Unlock()
	j.control.dismiss(h.number)
	close(h.done)
	if err != nil {
		j.cancel()
	}
	if !last {
		return
	}
	j.cancel()
	<-j.cleaned
	j.following.Wait()
	j.run.close()
	if failed {
		j.control.enter(JobFailed)
	} else {
		j.control.enter(JobStopped)
	}
	close(j.done)
}

// work is one place's life: a worker, and the next one when policy replaces it.
func (j *Job) work(h *hand) error {
	failures := 0
	for {
		life, renewed := h.begin()
		w, err := newWorker(life, h.number, j.run, j.control)
		if err != nil && renewed() {
			continue
		}
		if err != nil {
			if h.ctx.Err() != nil {
				return nil
			}
			return err
		}
		w.parting = &h.parting
		err = w.run(life)
		if err == nil && renewed() {
			continue // with another plan
		}
		if j.moved(err) {
			continue
		}
		if err == nil || h.ctx.Err() != nil || !j.replaces(h.number, err) {
			return err
		}
		if w.progress.Commits > 0 {
			failures = 0
		}
		failures++
		select {
		case <-h.ctx.Done():
			return nil
		case <-time.After(min(50*time.Millisecond<<min(failures-1, 10), maxPause)):
		}
	}
}

// replaces asks the application's policy whether a worker that failed is replaced. A
// worker whose place another process has taken is not: the two would take turns.
func (j *Job) replaces(number int, err error) bool {
	policy := j.run.options.OnUncaught
	if policy == nil || errors.Is(err, errCrash) || errors.Is(err, session.ErrFenced) {
		return false
	}
	if policy(err) != ReplaceWorker {
		return false
	}
	j.run.log.Error("a worker is replaced", "app", j.run.app.AppID, "worker", number, "error", err)
	return true
}

// Wait waits until the job has ended and returns what ended it: nil for a stop.
func (j *Job) Wait() error {
	<-j.done
	return j.err
}

// Done is closed when the job has ended.
func (j *Job) Done() <-chan struct{} { return j.done }

// State is what the job and its workers are doing.
func (j *Job) State() (JobState, []WorkerStatus) { return j.control.now() }

// Await waits until the job is in one of the states. A job that ends in another one
// returns what ended it, or ErrEnded.
func (j *Job) Await(ctx context.Context, states ...JobState) error {
	return j.await(ctx, func(s JobState, _ []WorkerStatus) bool {
		for _, want := range states {
			if s == want {
				return true
			}
		}
		return false
	})
}

// ErrEnded reports a request to a job that has ended.
var ErrEnded = errors.New("streams: the application has stopped")

func (j *Job) await(ctx context.Context, wanted func(JobState, []WorkerStatus) bool) error {
	if j.control.await(ctx, j.done, wanted) {
		return nil
	}
	select {
	case <-j.done:
		if j.err != nil {
			return j.err
		}
		return ErrEnded
	default:
		return ctx.Err()
	}
}

// Pause lets the workers commit and rest, and returns when they do. They keep their
// tasks; whoever joins the group meanwhile gets a share all the same.
func (j *Job) Pause(ctx context.Context) error {
	j.control.ask(func(c *control) { c.paused = true })
	return j.Await(ctx, JobPaused)
}

// Resume ends a pause.
func (j *Job) Resume() { j.control.ask(func(c *control) { c.paused = false }) }

// AddWorker starts one more worker and returns its number.
func (j *Job) AddWorker() (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.over || j.ctx.Err() != nil {
		return 0, ErrEnded
	}
	n := 0
	for j.crew[n] != nil {
		n++
	}
	if n >= maxWorkers {
		return 0, fmt.Errorf("streams: there are %d workers, the limit is %d", n, maxWorkers)
	}
	if err := j.run.remember(n + 1); err != nil {
		return 0, err
	}
	j.hireLocked(n)
	return n, nil
}

// RemoveWorker stops the worker with the highest number, which commits and leaves the
// group, and waits for that. The last one stays.
func (j *Job) RemoveWorker(ctx context.Context) (int, error) {
	j.mu.Lock()
	n := -1
	for k := range j.crew {
		n = max(n, k)
	}
	h, left := j.crew[n], len(j.crew)
	j.mu.Unlock()
	switch {
	case h == nil:
		return 0, ErrEnded
	case left == 1:
		return 0, errors.New("streams: the last worker is not removed; close the application")
	}
	h.parting.Store(int32(LeaveGroup))
	h.cancel()
	select {
	case <-h.done:
		return n, nil
	case <-ctx.Done():
		return n, ctx.Err()
	}
}

// Close commits and stops. It returns what Wait does, or ctx's error if that comes
// first; the job ends all the same.
func (j *Job) Close(ctx context.Context, how Parting) error {
	if how != AsOptions {
		j.mu.Lock()
		for _, h := range j.crew {
			if how == LeaveGroup || h.number < j.run.options.Workers {
				h.parting.Store(int32(how))
			}
		}
		j.mu.Unlock()
	}
	j.cancel()
	select {
	case <-j.done:
		return j.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
