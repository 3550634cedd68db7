package runtime

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/millrace/millrace/streams/internal/task"
	"github.com/millrace/millrace/streams/state"
	"github.com/millrace/millrace/txn/session"
)

// Cluster says where the brokers are and how to reach them.
type Cluster interface {
	Seeds() []string
	Dial(ctx context.Context, network, addr string) (net.Conn, error)
}

// Options tune a run. The zero value works.
type Options struct {
	// StateDir is this process's folder for stores and identity. Empty keeps
	// all stores in memory: then every start restores from the changelogs, and
	// the process is a new member of the group each time.
	StateDir string
	// InstanceID overrides the identity kept in StateDir.
	InstanceID string
	// Workers is how many run in this process. Default 1.
	Workers int
	// Guarantee is what commits promise: exactly once, or one of the modes without
	// transactions.
	Guarantee session.Mode
	// CommitInterval is the longest time between a record and its commit.
	// Default 100 ms.
	CommitInterval time.Duration
	// TransactionTimeout is after how long the coordinator aborts an open
	// transaction, of a process that died for instance. Default 10 s.
	TransactionTimeout time.Duration
	// SessionTimeout is after how long a silent worker loses its tasks, default
	// 45 s; Heartbeat is how often it speaks, default 1 s; RebalanceTimeout is
	// how long the group waits for it to join again, default 60 s.
	SessionTimeout, Heartbeat, RebalanceTimeout time.Duration
	// LookForTopics is how often topics are looked for that match a pattern of a
	// source. Default 10 s.
	LookForTopics time.Duration
	// TaskIdle is how long a task that has records of one input waits for producers
	// of another that is empty, so that both merge by time. 0 waits only for what
	// is there: until a fetch sent after the first record arrived has found
	// nothing. Once it has waited it goes on until that input has records again.
	// Negative does not wait at all.
	TaskIdle time.Duration
	// UncommittedBytes is how much the stores of a worker may hold uncommitted
	// before it commits early. Default 64 MiB.
	UncommittedBytes int
	// ReadAhead is how many bytes of each partition may wait to be processed.
	// Default 1 MiB.
	ReadAhead int
	// InputBytes is how many bytes of input a worker may hold, over all of its
	// partitions; see session.ReaderOptions. Default 64 MiB.
	InputBytes int
	// PurgeInterval is how often consumed records of repartition topics are
	// deleted. Default 30 s.
	PurgeInterval time.Duration
	// Replication is the replication factor of internal topics, 0 for the
	// cluster's default.
	Replication int16
	// CreateMissing makes internal topics that are missing although the
	// application has processed records before. Without it that is an error,
	// because usually they were deleted, with the state in them.
	CreateMissing bool
	// Abandon names stores and repartition topics of an earlier release that may be
	// left behind, although this one has others of the same shape.
	Abandon []string
	// Leave makes the process leave the group when it stops, so that others
	// take over at once. By default a process with a StateDir keeps its place
	// for SessionTimeout, to find it free after a restart.
	Leave bool
	// Store tunes the overlays of the stores.
	Store state.OverlayOptions
	// Availability is how state is kept at hand elsewhere.
	Availability
	// Stores say how they are kept on disk.
	Stores StoresOptions
	// Logger gets what happens; nil discards it.
	Logger *slog.Logger

	// OnUncaught decides about a worker that has failed, on its goroutine. Nil
	// always ends the run.
	OnUncaught func(error) Uncaught
	// OnJobState is called when the state of the run changes, in order, by
	// whoever changed it. It must not wait for the run.
	OnJobState func(JobState)
	// OnState is called when a worker's state changes, on its goroutine.
	OnState func(worker int, s State)
	// OnProgress is called after each commit, on the worker's goroutine.
	OnProgress func(Progress)
	// Watchers can see the run's figures. Without any, nothing is measured.
	Watchers []*Watcher
	// Around is asked for each node of each task what is to be called around it.
	Around func(node string) task.Wrapper
	// Tracer follows records; nil follows none.
	Tracer Tracer
	// Beside is what runs as long as the run does: each is called before the
	// workers start, an error ends the start, and end is called when they have
	// stopped.
	Beside []func(context.Context) (end func(), err error)
	// OnStep is called before each step of each commit, on the worker's
	// goroutine. An error from it ends the run there and then, as a crash
	// would: nothing is flushed, aborted or left. It exists for tests of crash
	// safety.
	OnStep func(worker int, s session.Step) error
}

// Steps of a commit beyond those of the session.
const (
	StepLog    session.Step = "log"    // before the stores' changes go to the changelogs
	StepStore  session.Step = "store"  // before each store accepts its changes
	StepStored session.Step = "stored" // after the last store did
)

// maxWorkers is how many may run in a process.
const maxWorkers = 1024

// Progress is what a worker has committed since it started.
type Progress struct {
	Worker    int
	Processed int64 // records consumed
	Emitted   int64 // records sent, changelog records included
	Commits   int64
	Tasks     int
	// Dropped counts the records that rules of the topology left out, per node
	// and reason.
	Dropped []task.Dropped
}

// Validate names the field that is out of its limits.
func (o Options) Validate() error {
	for _, d := range []struct {
		name string
		v    time.Duration
	}{
		{"CommitInterval", o.CommitInterval}, {"TransactionTimeout", o.TransactionTimeout},
		{"SessionTimeout", o.SessionTimeout}, {"Heartbeat", o.Heartbeat},
		{"RebalanceTimeout", o.RebalanceTimeout}, {"LookForTopics", o.LookForTopics}, {"PurgeInterval", o.PurgeInterval},
	} {
		if d.v < 0 {
			return fmt.Errorf("streams: %s is %v, must not be negative", d.name, d.v)
		}
	}
	o = o.withDefaults()
	switch {
	case o.Guarantee < session.ExactlyOnce || o.Guarantee > session.AtMostOnce:
		return fmt.Errorf("streams: Guarantee is %v, which is none", o.Guarantee)
	case o.Workers < 0 || o.Workers > maxWorkers:
		return fmt.Errorf("streams: Workers is %d, must be between 1 and %d", o.Workers, maxWorkers)
	case o.UncommittedBytes < 0:
		return fmt.Errorf("streams: UncommittedBytes is %d, must not be negative", o.UncommittedBytes)
	case o.InputBytes < 0:
		return fmt.Errorf("streams: InputBytes is %d, must not be negative", o.InputBytes)
	case o.ReadAhead < 0:
		return fmt.Errorf("streams: ReadAhead is %d, must not be negative", o.ReadAhead)
	case o.CommitInterval*2 > o.TransactionTimeout:
		return fmt.Errorf("streams: CommitInterval %v is more than half of TransactionTimeout %v", o.CommitInterval, o.TransactionTimeout)
	}
	if err := o.Availability.validate(); err != nil {
		return err
	}
	if err := o.Stores.Validate(); err != nil {
		return err
	}
	return o.Store.Validate()
}

func (o Options) withDefaults() Options {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&o.CommitInterval, 100*time.Millisecond)
	set(&o.TransactionTimeout, 10*time.Second)
	set(&o.SessionTimeout, 45*time.Second)
	set(&o.Heartbeat, time.Second)
	set(&o.RebalanceTimeout, time.Minute)
	set(&o.PurgeInterval, 30*time.Second)
	set(&o.LookForTopics, 10*time.Second)
	if o.Workers == 0 {
		o.Workers = 1
	}
	if o.UncommittedBytes == 0 {
		o.UncommittedBytes = 64 << 20
	}
	if o.Replication == 0 {
		o.Replication = -1
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
