package coord

import (
	"errors"

	"github.com/millrace/millrace/broker/internal/partition"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/txn/producer"
)

// MarkerLog is what a partition needs to take a marker. *partition.Partition is one.
type MarkerLog interface {
	AppendMarker(m producer.Marker) (partition.Appended, error)
	// Await calls fn once, when offset is durable or never will be. fn does not
	// block and takes no lock of a shard.
	Await(offset int64, fn func(error))
	// AwaitDurable is Await for what must be synced even where the topic's acknowledgements are not.
	AwaitDurable(offset int64, fn func(error))
	// LastOffset is that of a producer's last record, -1 if it has none.
	LastOffset(producerID int64) int64
	Marks() partition.Marks
}

// Log is the partition of a shard. *partition.Partition is one.
type Log interface {
	MarkerLog
	// Append writes one batch; it is durable when Await says so.
	Append(batch []byte, o partition.AppendOptions) (partition.Appended, error)
	// Replay calls fn for each batch from the start of the log to its end.
	Replay(fn func(record.Batch) error) error
}

// ErrNoPartition says that the metadata knows no such partition: it never existed,
// or was deleted.
var ErrNoPartition = errors.New("no such partition")
