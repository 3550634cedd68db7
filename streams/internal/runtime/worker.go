package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/millrace/millrace/streams/internal/assign"
	"github.com/millrace/millrace/streams/internal/task"
	"github.com/millrace/millrace/streams/state"
	"github.com/millrace/millrace/txn/session"
)

// worker runs tasks. Everything in it belongs to the goroutine of run.
type worker struct {
	number  int
	plan    *plan
	options Options
	folder  *state.Folder // shared by the workers of the process; nil without StateDir
	log     *slog.Logger
	control *control      // the owner's wishes, and what he is told
	parting *atomic.Int32 // a Parting: whether a stop leaves the group
	state   State
	goal    *goal // how far to process before the owner stops the run; nil: no end
	reached int   // the last goal that was reached in this generation

	cluster  *session.Cluster
	balancer *balancer
	member   *session.Member
	reader   *session.Reader
	producer *session.Producer
	purge    *purger
	ctx      context.Context    // of the run; user code sees it
	life     context.Context    // outlives the run's by stopTime: a commit is not cut short by a stop
	kill     context.CancelFunc // of life

	busy      *active // the task that user code is called for
	globals   []*global
	keeper    *keeper      // has the stores on which no task runs
	first     assign.Claim // what the worker says of itself at first
	joining   *joining     // nil but for the time of a Join
	again     bool         // another Join is to follow
	outdated  bool         // others may have the units by now: nothing is begun before the next Join
	joined    session.Joined
	share     assign.Share    // as last assigned
	units     []int32         // to be run, of the share
	tasks     []*active       // sorted by id
	wishes    <-chan struct{} // closed when the owner's wishes change
	resting   bool            // he wishes a pause
	desk      *desk
	place     *place      // of this worker at the desk
	waiting   []*question // until more is committed
	committed time.Time   // when the last commit began
	asked     bool        // a task wants a commit now
	epochsAt  time.Time   // when the epochs of the changelogs were last asked for
	progress  Progress
	meter     *meter           // nil if nobody watches
	counts    map[string]count // of partitions, of topics that are written to
	ended     tally            // of tasks that have ended
	failures  int              // one after the other, without a commit in between
}

// stopTime bounds what a stop may take: the commit that is under way when the
// run is to end, the last one after it, and the farewells. With a cluster that
// answers it takes milliseconds.
const stopTime = 10 * time.Second

// newWorker connects.
func newWorker(ctx context.Context, number int, r *run, c *control) (*worker, error) {
	p := r.planned()
	w := &worker{
		number: number, plan: p, options: r.options, folder: r.folder, control: c, parting: new(atomic.Int32),
		log:      r.log.With("app", p.app.AppID, "worker", number),
		progress: Progress{Worker: number}, meter: r.watch.meter(number),
	}
	w.life, w.kill = context.WithCancel(context.WithoutCancel(ctx))
	instance, txnID := r.names(number)
	var err error
	if w.cluster, err = session.Connect(ctx, r.clusterOptions(fmt.Sprintf("%s-%d", p.app.AppID, number))); err != nil {
		w.kill()
		return nil, err
	}
	w.balancer = &balancer{plan: p, cluster: w.cluster, rules: r.options.rules(), disk: r.folder != nil}
	if w.first, err = r.claim(number, p); err == nil {
		w.member, err = w.cluster.NewMember(session.MemberOptions{
			Group: p.app.AppID, Instance: instance, Balancer: w.balancer,
			Session: r.options.SessionTimeout, Heartbeat: r.options.Heartbeat, Rebalance: r.options.RebalanceTimeout, Cooperative: true,
		})
	}
	if err == nil {
		w.producer, err = w.cluster.NewProducer(ctx, session.ProducerOptions{
			Mode: r.options.Guarantee, TransactionalID: txnID, Timeout: r.options.TransactionTimeout, OnStep: w.hook(),
		})
	}
	if err != nil {
		w.cluster.Close()
		w.kill()
		return nil, err
	}
	w.reader = w.cluster.NewReader(session.ReaderOptions{BufferBytes: r.options.ReadAhead, TotalBytes: r.options.InputBytes})
	w.purge = newPurger(r.admin, r.options.PurgeInterval, w.log)
	w.keeper = newKeeper(takeover{plan: p, cluster: w.cluster, folder: r.folder, options: r.options.Store, log: w.log}, number, r.onRestore())
	w.desk, w.place = r.desk, r.desk.open(number, w.keeper, w.life.Done())
	return w, nil
}

// hook passes the steps of a commit on.
func (w *worker) hook() func(session.Step) error {
	if w.options.OnStep == nil {
		return nil
	}
	return w.step
}

func (w *worker) enter(s State) {
	w.log.Debug("worker", "state", s, "tasks", len(w.tasks))
	w.state = s
	w.control.say(w.number, func(st *WorkerStatus) { st.State, st.Tasks, st.generation = s, len(w.tasks), w.joined.Generation.ID })
	w.shows(s)
	if w.options.OnState != nil {
		w.options.OnState(w.number, s)
	}
}

// run works until ctx ends, then stops in order; or until an error that cannot
// be recovered from.
func (w *worker) run(ctx context.Context) error {
	w.ctx = ctx
	defer w.kill()
	end := sync.OnceFunc(func() { time.AfterFunc(stopTime, w.kill) })
	defer context.AfterFunc(ctx, end)()
	err := w.guarded(ctx)
	if errors.Is(err, errCrash) {
		w.vanish()
		return err
	}
	end()
	return errors.Join(err, w.stop(w.life, err))
}

// guarded is work with a panic as an error: of user code outside of the topology's
// error chain, a serde that a restore calls for instance, or of our own.
func (w *worker) guarded(ctx context.Context) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = w.panicked(v)
		}
	}()
	return w.work(ctx)
}

// panicked is a panic as a failure of the task and the record at hand.
func (w *worker) panicked(v any) error {
	f := &task.Failure{Phase: task.Process, Node: "worker " + strconv.Itoa(w.number), Attempt: 1, Err: &task.Panic{Value: v, Stack: debug.Stack()}}
	if a := w.busy; a != nil {
		f.Node, f.Topic, f.Partition, f.Offset = a.sub.Name, a.record.Topic, a.record.Partition, a.record.Offset
	}
	w.log.Error("panic", "node", f.Node, "topic", f.Topic, "partition", f.Partition, "offset", f.Offset, "value", v, "stack", string(debug.Stack()))
	return f
}

// spoiled wraps an error that leaves the tasks and the open transaction of no
// use: part of something has been done.
type spoiled struct{ error }

func (s spoiled) Unwrap() error { return s.error }

// spoil marks err, if there is one.
func spoil(err error) error {
	if err == nil {
		return nil
	}
	return spoiled{err}
}

// work is the life of a worker: join, take over, process, and again after a
// rebalance or a failure that leaves nothing behind.
func (w *worker) work(ctx context.Context) error {
	if err := w.openGlobals(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	join := true // before anything else
	for {
		err := w.once(ctx, join)
		if errors.Is(err, errCrash) {
			return err
		}
		if errors.As(err, new(spoiled)) {
			if again := w.startOver(ctx); again != nil {
				return errors.Join(err, again)
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		join = errors.Is(err, session.ErrFenced)
		if !w.recoverable(err) {
			return err
		}
		w.log.Warn("starting over from the last commit", "error", err)
		w.pause(ctx)
	}
}

// pause waits before a failure in a row is followed by the next attempt; the
// first one goes ahead at once. Whatever the next attempt does anyway ends it.
func (w *worker) pause(ctx context.Context) {
	w.failures++
	if w.failures == 1 {
		return
	}
	timer := time.NewTimer(min(50*time.Millisecond<<min(w.failures-2, 10), maxPause))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-w.changed():
	case <-timer.C:
	}
}

// maxPause is the longest pause between two attempts.
const maxPause = 5 * time.Second

// unknownTopics is how often in a row a topic that is written may be unknown to
// the cluster: one that was just made may not have reached all brokers.
const unknownTopics = 5

// recoverable reports a failure after which the same work can be done again.
func (w *worker) recoverable(err error) bool {
	if errors.Is(err, session.ErrRefused) || errors.Is(err, kerr.UnknownTopicOrPartition) && w.failures >= unknownTopics {
		return false
	}
	return errors.Is(err, session.ErrAborted) || errors.Is(err, session.ErrUnknownOutcome) ||
		errors.Is(err, session.ErrFenced) && !errors.Is(err, errReplaced) ||
		errors.Is(err, state.ErrCorrupt) || errors.Is(err, state.ErrNoRoom)
}

// errReplaced marks the fencing that is final: another process has this
// worker's place in the group.
var errReplaced = errors.New("streams: this worker was replaced")

// once joins if need be, has restored what is missing, and processes.
func (w *worker) once(ctx context.Context, join bool) error {
	if join {
		w.join()
		w.outdated = true
	}
	w.fill()
	return w.process(ctx)
}

// startOver forgets everything since the last commit. The producer takes a new
// epoch when its state is in doubt.
func (w *worker) startOver(ctx context.Context) error {
	if ctx.Err() != nil {
		ctx = w.life
	} else {
		w.meter.gaveUp()
	}
	if err := w.dropTasks(); err != nil {
		return err
	}
	if w.producer.Abort(ctx) == nil {
		return nil
	}
	return w.producer.Renew(ctx)
}

func (w *worker) dropTasks() error {
	var errs []error
	for _, a := range w.tasks {
		w.leave(a)
		errs = append(errs, a.drop(w.reader))
	}
	w.tasks = nil
	return errors.Join(errs...)
}

// stop commits, unless an error came before, and lets go of everything.
func (w *worker) stop(ctx context.Context, cause error) error {
	var errs []error
	unsure := w.joining != nil // of the generation
	w.endJoin(min(2*w.options.Heartbeat, 3*time.Second))
	if cause == nil {
		if err := w.commit(ctx); err != nil {
			if unsure && (errors.Is(err, session.ErrFenced) || errors.Is(err, session.ErrAborted)) {
				w.log.Info("the last commit was refused, as the group was rebalancing", "error", err)
			} else {
				errs = append(errs, fmt.Errorf("streams: last commit: %w", err))
			}
			cause = err
		}
	}
	if cause != nil {
		errs = append(errs, w.dropTasks())
	}
	w.logDropped()
	for _, a := range w.tasks {
		errs = append(errs, a.close(w.reader))
	}
	w.tasks = nil
	w.keeper.end(true)
	if err := w.producer.Close(ctx); err != nil && !errors.Is(err, session.ErrFenced) {
		errs = append(errs, err)
	}
	if w.leaves() {
		errs = append(errs, w.member.Leave(ctx))
	} else {
		w.member.Close()
	}
	w.release()
	w.enter(Stopped)
	return errors.Join(errs...)
}

// leaves reports whether this stop gives the place in the group up.
func (w *worker) leaves() bool {
	switch Parting(w.parting.Load()) {
	case LeaveGroup:
		return true
	case RemainInGroup:
		return false
	}
	return w.options.Leave || w.folder == nil
}

// vanish is the end that a crash makes: only what this process would lose
// anyway is let go of.
func (w *worker) vanish() {
	// What a crash leaves is what is on disk; a close error changes nothing.
	_ = w.dropTasks()
	w.endJoin(0)
	w.keeper.end(false)
	w.producer.Abandon()
	w.member.Close()
	w.release()
}

func (w *worker) release() {
	w.desk.close(w.number, w.place)
	w.purge.close()
	w.reader.Close()
	w.cluster.Close()
}
