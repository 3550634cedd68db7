package replicas

import (
	"sync/atomic"

	"github.com/millrace/millrace/broker/internal/metadata"
	"github.com/millrace/millrace/broker/internal/partition"
	"github.com/millrace/millrace/core/vfs"
)

// replica is one partition, open or not. It belongs to every Topic that was made for
// the same topic id.
type replica struct {
	state atomic.Pointer[outcome] // set by whoever holds the manager's mutex
	// again is called when a partition is asked for that is offline for want of room.
	again func(*replica)
	topic metadata.ID
	index int32

	trying  atomic.Bool // a try to open it again is under way
	triedMs int64       // when the last one began, 0 for never; owned by who has set trying
}

// outcome is what opening led to: a partition or an error.
type outcome struct {
	p   *partition.Partition
	err error
	// passing says that the cause may be gone the next time: there was no room.
	passing bool
}

// open is the partition, nil if it is offline. It starts nothing.
func (r *replica) open() *partition.Partition { return r.state.Load().p }

// get is the partition, or why it is offline. Asking makes the manager try again if
// that can help; the answer does not wait for it.
func (r *replica) get() (*partition.Partition, error) {
	o := r.state.Load()
	if o.passing {
		r.again(r)
	}
	return o.p, o.err
}

// opened is the outcome of a try.
func opened(p *partition.Partition, err error) *outcome {
	return &outcome{p: p, err: err, passing: err != nil && vfs.NoRoom(err)}
}
