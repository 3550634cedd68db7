package task

import (
	"context"
	"time"

	"github.com/millrace/millrace/streams/state"
)

// Header is one record header. Keys need not be unique; order is kept.
type Header struct {
	Key   string
	Value []byte
}

// Record is one input record. Nil Key and Value are nulls.
type Record struct {
	Topic       string
	Partition   int32
	Offset      int64
	LeaderEpoch int32
	TimeMs      int64 // record timestamp, milliseconds since 1970
	Key, Value  []byte
	Headers     []Header
}

// Out is one output record. Its bytes are valid only during the call of Emit.
type Out struct {
	Topic     string
	Partition int32 // -1: by murmur2 of the key; a nil key goes round robin, as the producer does it
	TimeMs    int64
	// Key and Value: nil is null.
	Key, Value []byte
	Headers    []Header
}

// ByKey as Out.Partition lets the key decide.
const ByKey int32 = -1

// Env is what a task gets from its driver. Emit and Store are required.
type Env struct {
	AppID     string
	Partition int32
	// Progress holds what Task.Progress returned at the last commit, as found
	// in the metadata of the committed offsets of the task's source
	// partitions: any number of them, in any order, empty ones included.
	Progress []string
	// Emit hands over one output record: to a sink, a repartition topic or a
	// dead-letter topic. Not for changelogs: those come from the overlays.
	Emit func(*Out) error
	// Store returns the store with this name, seen through its overlay.
	Store func(name string) (state.Store, error)
	// Context is given to user functions; cancelled when the task is revoked
	// or the application stops. Nil means context.Background.
	Context context.Context
	// Now is the wall clock in milliseconds since 1970, for timers and functions
	// that ask. Nil means a clock that stands at 0.
	Now func() int64
	// Partitions is how many partitions a topic has that is written to. Nil: no
	// node may ask.
	Partitions func(topic string) (int32, error)
	// Commit asks for a commit soon: after the record, or the timers, at hand.
	// Nil ignores it.
	Commit func()
	// Watch makes the task count the records of each node; see Watched.
	Watch bool
	// Around, if set, is asked for each node what is to be called around it, for
	// each of its records; nil is nothing.
	Around func(node string) Wrapper
	// Wait pauses between retries of a failed function, and returns early
	// with an error when the pause would outlive the transaction or the task
	// is revoked. Nil means no pause.
	Wait func(ctx context.Context, d time.Duration) error
}

// Task is one sub-topology on one partition.
type Task interface {
	// Process runs one record to its end: all that follows from it has been
	// emitted and written to the stores when it returns.
	Process(*Record) error
	// Progress is the part of the task's memory that lives outside its stores
	// (stream time per node), as a short printable string. The driver puts it
	// into the metadata of every offset it commits for the task, in the
	// transaction of the task's outputs. It only ever grows, so any of
	// several copies may be stale: the newest wins when all are given back.
	Progress() string
	// Tick runs the timers of the wall clock that are due; nowMs is what it says.
	// NextTick is when the next one is due, math.MaxInt64 for never. Both belong
	// between two records.
	Tick(nowMs int64) error
	NextTick() int64
	// Flush sends on what nodes have held back to merge updates. It runs once
	// before each commit.
	Flush() error
	// TimeMs is the timestamp by which a record takes its turn, and which it is to
	// be processed with. Sources may take it from the record's contents. It is
	// asked for once per record, when all records before it in its partition have
	// been processed.
	TimeMs(*Record) int64
	// StreamTimeMs is the highest timestamp seen, -1 before the first record.
	StreamTimeMs() int64
	// Dropped lists how many records each node has dropped and why, since the
	// task was made, in topology order.
	Dropped() []Dropped
	// Close runs once, after the last call of Process.
	Close() error
}

// Dropped counts records that a rule of the topology leaves out.
type Dropped struct {
	Node   string
	Reason string // "late", "null key", "null value", "skipped" (error chain), "dead letter" (error chain)
	N      int64
}
