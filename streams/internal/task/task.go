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
