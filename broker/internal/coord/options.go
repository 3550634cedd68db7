package coord

import (
	"fmt"
	"log/slog"

	"github.com/millrace/millrace/core/clock"
)

// Options of a [Runtime].
type Options[M Machine] struct {
	// Topic names the internal topic, for errors and the log.
	Topic string
	// Partitions is how many it has. It never changes: it is in the hash of every
	// key.
	Partitions int32
	// Open gives the partition of a shard, at the start and again after a failed
	// sync.
	Open func(index int32) (Log, error)
	// New gives an empty machine.
	New func(index int32) M
	// Effect carries out an effect of a machine, on a worker with no lock held. It
	// does not block. nil when the machine has none.
	Effect func(s *Shard[M], effect any)
	// BaseSequence is what batches without a producer carry as their base sequence.
	// Kafka writes 0 in __consumer_offsets and -1 in __transaction_state, and nobody
	// looks at it.
	BaseSequence int32
	// MaxBatchBytes bounds a batch. 0 is 1 MB, which every topic takes.
	MaxBatchBytes int
	// Workers is how many goroutines load shards and carry out effects. 0 is 4.
	Workers int
	Clock   clock.Clock  // nil is the system's
	Logger  *slog.Logger // nil discards
}

const (
	defaultMaxBatchBytes = 1 << 20
	defaultWorkers       = 4
	// maxPartitions is Kafka's own bound of a topic in one request, far above any
	// use.
	maxPartitions = 10_000
)

// Validate names the field that is wrong.
func (o Options[M]) Validate() error {
	switch {
	case o.Topic == "":
		return fmt.Errorf("coordinator options: Topic is empty")
	case o.Partitions < 1 || o.Partitions > maxPartitions:
		return fmt.Errorf("coordinator options of %s: Partitions is %d, must be 1 to %d", o.Topic, o.Partitions, maxPartitions)
	case o.Open == nil:
		return fmt.Errorf("coordinator options of %s: Open is not set", o.Topic)
	case o.New == nil:
		return fmt.Errorf("coordinator options of %s: New is not set", o.Topic)
	case o.MaxBatchBytes < 0:
		return fmt.Errorf("coordinator options of %s: MaxBatchBytes is %d, the least is 0", o.Topic, o.MaxBatchBytes)
	case o.Workers < 0:
		return fmt.Errorf("coordinator options of %s: Workers is %d, the least is 0", o.Topic, o.Workers)
	}
	return nil
}

func (o Options[M]) withDefaults() Options[M] {
	if o.Effect == nil {
		o.Effect = func(*Shard[M], any) {}
	}
	if o.MaxBatchBytes == 0 {
		o.MaxBatchBytes = defaultMaxBatchBytes
	}
	if o.Workers == 0 {
		o.Workers = defaultWorkers
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
