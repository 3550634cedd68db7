package streams

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/streams/internal/runtime"
)

// State is what a running application is doing.
type State = runtime.JobState

// The states, in the usual order. An application is StateRebalancing while any of
// its workers joins the group or restores stores; its other workers go on meanwhile.
const (
	StateStarting    = runtime.JobStarting
	StateRebalancing = runtime.JobRebalancing
	StateRunning     = runtime.JobRunning
	StatePaused      = runtime.JobPaused
	StateStopping    = runtime.JobStopping
	StateStopped     = runtime.JobStopped
	StateFailed      = runtime.JobFailed
)

// WorkerStatus is what a worker last said: its Number, its State as a word and the
// number of its Tasks.
type WorkerStatus = runtime.WorkerStatus

// ErrEnded reports a request to an application that has stopped.
var ErrEnded = runtime.ErrEnded

// OnState calls f whenever the state of the application in this process changes, in
// order. f must not call methods that wait for the application.
func OnState(f func(State)) RunOpt { return func(o *runtime.Options) { o.OnJobState = f } }

// Uncaught is what becomes of an application when one of its workers fails; see
// OnUncaught.
type Uncaught = runtime.Uncaught

// The choices of OnUncaught.
const (
	// StopProcess ends Run, or Running.Wait, with the error.
	StopProcess = runtime.StopProcess
	// ReplaceWorker starts another worker in the place of the failed one. It goes
	// on from the last commit, after a pause that grows up to 5 s from one failure
	// to the next, and returns to nothing once it has committed.
	ReplaceWorker = runtime.ReplaceWorker
)

// OnUncaught decides what follows when a worker fails: with a *Failure, whose Err is
// a *Panic with its stack where a function panicked, or with an error of the
// cluster. Without it, or when f answers StopProcess, the application ends in this
// process. What the error chain of the topology decides (OnError) comes first. A
// worker that another process has fenced is never replaced.
func OnUncaught(f func(error) Uncaught) RunOpt {
	return func(o *runtime.Options) { o.OnUncaught = f }
}

// Running is an application at work in this process. Its methods may be called from
// any goroutine, but not from functions of the topology or callbacks.
type Running struct {
	app *App
	job *runtime.Job
}

// Start is Run in the background: it returns once nothing more can refuse the start
// and the workers have begun to join. The application works until ctx ends or it is
// closed, drained, or fails.
func (a *App) Start(ctx context.Context, cluster Cluster, opts ...RunOpt) (*Running, error) {
	t, o, err := a.prepare(ctx, cluster, opts)
	if err != nil {
		return nil, err
	}
	j, err := runtime.Start(ctx, t, cluster, o)
	if err != nil {
		return nil, fmt.Errorf("application %s: %w", a.id, err)
	}
	return &Running{a, j}, nil
}

// App is the application that runs.
func (r *Running) App() *App { return r.app }

// Wait waits for the end and returns what Run would.
func (r *Running) Wait() error { return r.wrap(r.job.Wait()) }

// Done is closed at the end; Wait returns at once then.
func (r *Running) Done() <-chan struct{} { return r.job.Done() }

// State is what the application is doing in this process.
func (r *Running) State() State {
	s, _ := r.job.State()
	return s
}

// Workers tells what each worker does, by number.
func (r *Running) Workers() []WorkerStatus {
	_, w := r.job.State()
	return w
}

// Await waits until the application is in one of these states. If it ends otherwise
// the error is what ended it, or ErrEnded.
func (r *Running) Await(ctx context.Context, states ...State) error {
	return r.wrap(r.job.Await(ctx, states...))
}

// Pause makes the workers commit and rest, and returns when all do. They stay members
// of the group with their tasks. No record is processed and no timer called until
// Resume, not even after a rebalance. If ctx ends first the pause comes all the same.
func (r *Running) Pause(ctx context.Context) error { return r.wrap(r.job.Pause(ctx)) }

// Resume ends a pause.
func (r *Running) Resume() { r.job.Resume() }

// Drain processes all that lies in the inputs at this moment, through the repartition
// topics to the outputs, commits, and stops; nothing that comes later is touched. It
// returns what Wait does. What waits for time to pass, a window that is open, a timer,
// stays in its store. Of an application that runs in several processes each drains
// its own tasks: what another writes to repartition topics meanwhile is partly left.
//
// If ctx ends first the application still works towards the same end: Drain again, or
// Close.
func (r *Running) Drain(ctx context.Context) error { return r.wrap(r.job.Drain(ctx)) }

// AddWorker starts one more worker, which gets its share of the tasks, and returns its
// number. With a state folder its place does not outlast this run: a restart has as
// many workers as Workers says.
func (r *Running) AddWorker() (int, error) {
	n, err := r.job.AddWorker()
	return n, r.wrap(err)
}

// RemoveWorker stops the worker with the highest number. It commits and leaves the
// group at once, so that its tasks go to the others. It returns the worker's number
// when that is done; the last worker is not removed.
func (r *Running) RemoveWorker(ctx context.Context) (int, error) {
	n, err := r.job.RemoveWorker(ctx)
	return n, r.wrap(err)
}

// CloseOpt is an option of Close.
type CloseOpt struct{ how runtime.Parting }

// LeaveGroup makes Close give the tasks to others at once, as if Leave had been given
// to the start.
func LeaveGroup() CloseOpt { return CloseOpt{runtime.LeaveGroup} }

// RemainInGroup makes Close keep the places in the group for SessionTimeout: this
// process comes back soon, and until then nothing is moved.
func RemainInGroup() CloseOpt { return CloseOpt{runtime.RemainInGroup} }

// Close commits and stops. It returns what Wait does, or ctx's error if that comes
// first; the application stops all the same. Without an option it is for Leave and the
// state folder to say whether the group is left.
func (r *Running) Close(ctx context.Context, opts ...CloseOpt) error {
	how := runtime.AsOptions
	for _, o := range opts {
		how = o.how
	}
	return r.wrap(r.job.Close(ctx, how))
}

func (r *Running) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("application %s: %w", r.app.id, err)
}
