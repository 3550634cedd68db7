package streams

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/millrace/millrace/core/vfs"
	"github.com/millrace/millrace/streams/internal/runtime"
	"github.com/millrace/millrace/streams/internal/task"
	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/streams/state"
	"github.com/millrace/millrace/txn/session"
)

// Cluster says where brokers are and how to reach them. The embedded broker is
// one; Brokers makes one of addresses.
type Cluster interface {
	// Seeds are addresses to start from.
	Seeds() []string
	// Dial opens a connection to a broker, one of the seeds or any that they
	// name.
	Dial(ctx context.Context, network, addr string) (net.Conn, error)
}

// Brokers is the cluster at these addresses, host:port each, alone or in a list
// separated by commas: Millrace, Apache Kafka, or any other that speaks the
// protocol with transactions.
func Brokers(addrs ...string) Cluster {
	var b brokers
	for _, a := range addrs {
		for one := range strings.SplitSeq(a, ",") {
			if one = strings.TrimSpace(one); one != "" {
				b.seeds = append(b.seeds, one)
			}
		}
	}
	return b
}

type brokers struct {
	net.Dialer
	seeds []string
}

// Seeds implements Cluster.
func (b brokers) Seeds() []string { return b.seeds }

// Dial implements Cluster.
func (b brokers) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return b.DialContext(ctx, network, addr)
}

// Errors that Run may return, besides a *Failure.
var (
	// ErrFenced: another process runs under the same identity and has taken
	// over.
	ErrFenced = session.ErrFenced
	// ErrMissingTopic: an internal topic of the application is gone although it
	// has run before; see CreateMissing.
	ErrMissingTopic = runtime.ErrMissingTopic
	// ErrLostOffsets: the stores hold what was processed, but the group's
	// offsets, which say how far that is, expired or were deleted.
	ErrLostOffsets = runtime.ErrLostOffsets
	// ErrUpgrade: the release that ran last kept state that this one would lose or
	// misread; see Abandon.
	ErrUpgrade = topology.ErrUpgrade
	// ErrStaleState: a store that the release before the last one had is back, and
	// its changelog with it, which lacks what was processed in between.
	ErrStaleState = runtime.ErrStaleState
	// ErrNewerFormat: the state folder was written by a later release.
	ErrNewerFormat = state.ErrNewerFormat
	// ErrLocked: another process uses the state folder.
	ErrLocked = vfs.ErrLocked
)

// Progress is what a worker has committed since it started: Processed and
// Emitted records and Commits of a Worker, the number of its Tasks, and how many
// records were Dropped, by node and reason.
type Progress = runtime.Progress

// Dropped counts the records that a Node has left out for one Reason: "late",
// "null key", "null value", "skipped" or "dead letter"; N of them.
type Dropped = task.Dropped

// RunOpt is an option of Run and Start.
type RunOpt func(*runtime.Options)

// StateDir is the folder for stores, one below it for each application, and for
// the identity under which this process comes back after a restart: to its
// tasks at once, and with only the tail of its changelogs to read. Two
// processes need two folders. Without a folder the stores live in memory and
// each start rebuilds them from their changelogs; no guarantee depends on it.
func StateDir(dir string) RunOpt { return func(o *runtime.Options) { o.StateDir = dir } }

// Workers is how many run in this process, each with a consumer, a transaction
// and a share of the tasks. The default is 1.
func Workers(n int) RunOpt { return func(o *runtime.Options) { o.Workers = n } }

// CommitEvery is the longest time between a record and the commit of what
// followed from it. The default is 100 ms.
func CommitEvery(d time.Duration) RunOpt { return func(o *runtime.Options) { o.CommitInterval = d } }

// TransactionTimeout is after how long the cluster aborts the transaction of a
// process that has died, which others may have to wait for. Retries with their
// pauses must fit into it. The default is 10 s.
func TransactionTimeout(d time.Duration) RunOpt {
	return func(o *runtime.Options) { o.TransactionTimeout = d }
}

// SessionTimeout is after how long without a sign of life the tasks of a worker
// go to others. The default is 45 s.
func SessionTimeout(d time.Duration) RunOpt {
	return func(o *runtime.Options) { o.SessionTimeout = d }
}

// Replication is the replication factor of internal topics; without it, the
// cluster's default.
func Replication(n int16) RunOpt { return func(o *runtime.Options) { o.Replication = n } }

// CreateMissing makes internal topics that are gone although the application has
// run before, and with them starts its state anew. Without it that is an error.
func CreateMissing() RunOpt { return func(o *runtime.Options) { o.CreateMissing = true } }

// Leave makes the process leave its group when it stops, so that others take
// its tasks over at once instead of waiting for its return.
func Leave() RunOpt { return func(o *runtime.Options) { o.Leave = true } }

// Logger gets what happens: rebalances, restores, retries. The default discards
// it.
func Logger(l *slog.Logger) RunOpt { return func(o *runtime.Options) { o.Logger = l } }

// OnProgress calls f after each commit of a worker, on that worker's goroutine.
func OnProgress(f func(Progress)) RunOpt { return func(o *runtime.Options) { o.OnProgress = f } }

// Run runs the application on a cluster until ctx ends; it then commits, stops
// and returns nil. It creates its internal topics; the topics it reads must
// exist. Any number of processes may run the same application and share the
// work. The error is a *Failure if a record could not be processed, or wraps one
// of the errors of this package.
func (a *App) Run(ctx context.Context, cluster Cluster, opts ...RunOpt) error {
	t, o, err := a.prepare(ctx, cluster, opts)
	if err != nil {
		return err
	}
	if err := runtime.Run(ctx, t, cluster, o); err != nil {
		return fmt.Errorf("application %s: %w", a.id, err)
	}
	return nil
}

// prepare is what Run and Start need to know before they begin.
func (a *App) prepare(ctx context.Context, cluster Cluster, opts []RunOpt) (*topology.Topology, runtime.Options, error) {
	var o runtime.Options
	t, err := a.Topology()
	if err != nil {
		return nil, o, err
	}
	if cluster == nil || len(cluster.Seeds()) == 0 {
		return nil, o, fmt.Errorf("application %s: the cluster has no address", a.id)
	}
	for _, opt := range opts {
		opt(&o)
	}
	return t, o, a.prepareSerdes(ctx)
}
