package coord

import (
	"sync"

	"github.com/millrace/millrace/core/clock"
	"github.com/millrace/millrace/txn/producer"
)

// Runtime hosts the shards of one internal topic.
type Runtime[M Machine] struct {
	o      Options[M]
	shards []*Shard[M]
	work   workers
	start  sync.Once
	end    sync.Once
}

// NewRuntime makes the shards; they refuse with COORDINATOR_LOAD_IN_PROGRESS until
// Start has loaded them.
func NewRuntime[M Machine](o Options[M]) (*Runtime[M], error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	r := &Runtime[M]{o: o.withDefaults()}
	for i := range o.Partitions {
		r.shards = append(r.shards, &Shard[M]{index: i, o: &r.o, work: &r.work, last: -1, time: clock.NewSteady(r.o.Clock)})
	}
	return r, nil
}

// Start begins to load all shards and returns at once.
func (r *Runtime[M]) Start() {
	r.start.Do(func() {
		r.work.start(r.o.Workers, r.o.Clock)
		for _, s := range r.shards {
			r.work.push(s.load)
		}
	})
}

// Close answers everybody who waits with COORDINATOR_NOT_AVAILABLE and stops the
// workers. It does not close the partitions, which are not the runtime's.
func (r *Runtime[M]) Close() {
	r.end.Do(func() {
		for _, s := range r.shards {
			s.close()
		}
		r.work.close()
	})
}

// PartitionFor is the partition that coordinates a key.
func (r *Runtime[M]) PartitionFor(key string) int32 { return PartitionFor(key, r.o.Partitions) }

// ForKey is the shard that coordinates a key.
func (r *Runtime[M]) ForKey(key string) *Shard[M] { return r.shards[r.PartitionFor(key)] }

// Shard is the shard of a partition, nil if there is none.
func (r *Runtime[M]) Shard(index int32) *Shard[M] {
	if index < 0 || int(index) >= len(r.shards) {
		return nil
	}
	return r.shards[index]
}

// AppendMarker ends a transaction on one partition of the topic, see
// [Shard.AppendMarker].
func (r *Runtime[M]) AppendMarker(index int32, m producer.Marker, durable func(error)) error {
	s := r.Shard(index)
	if s == nil {
		return ErrNoPartition
	}
	return s.AppendMarker(m, durable)
}

// AwaitAll is [Shard.AwaitAll] of one partition.
func (r *Runtime[M]) AwaitAll(index int32, fn func(error)) {
	s := r.Shard(index)
	if s == nil {
		fn(ErrNoPartition)
		return
	}
	s.AwaitAll(fn)
}
