package runtime

import (
	"fmt"
	"time"

	"github.com/millrace/millrace/streams/internal/assign"
)

// Availability is how state is kept at hand elsewhere. The zero value works.
type Availability struct {
	// Standbys is how many copies each task's stores have in other processes,
	// beside the ones that it works on. Default 0.
	Standbys int
	// AcceptableLag is how many records a copy may lack to count as good as
	// complete: a task moves to a process only when its state there is. Default
	// 10,000.
	AcceptableLag int64
	// WarmUps is how many units a worker may copy at a time in order to get their
	// tasks. Default 4.
	WarmUps int
	// Rack is where this process stands; standbys are kept in other racks where
	// there are some.
	Rack string
	// Addr is where this process answers queries, for the others to know.
	Addr string
	// OnRestore is told how restores and copies go on: about once a second, and
	// when one is done. It is called on the keeper's goroutine of a worker.
	OnRestore func(Restored)
}

// Restored is how far the restore of one store is.
type Restored struct {
	Worker int
	Task   string // sub-topology and partition
	Store  string
	// Topic and Partition are what it is read from, its changelog.
	Topic     string
	Partition int32
	// Records and Bytes have been read, Remaining is how many offsets are left, as
	// far as is known. Done says that it is complete.
	Records, Bytes, Remaining int64
	Done                      bool
	// Copy says that the task runs elsewhere: then there is no end.
	Copy bool
	// Rebuilt says why the store began from nothing, "" if it did not.
	Rebuilt string
	Took    time.Duration
}

func (a Availability) validate() error {
	switch {
	case a.Standbys < 0 || a.Standbys > 16:
		return fmt.Errorf("streams: Standbys is %d, must be between 0 and 16", a.Standbys)
	case a.AcceptableLag < 0:
		return fmt.Errorf("streams: AcceptableLag is %d, must not be negative", a.AcceptableLag)
	case a.WarmUps < 0:
		return fmt.Errorf("streams: WarmUps is %d, must not be negative", a.WarmUps)
	}
	return nil
}

// rules are what this process would go by as the leader.
func (a Availability) rules() assign.Rules {
	r := assign.Rules{Standbys: a.Standbys, Close: a.AcceptableLag, WarmUps: a.WarmUps}
	if r.Close == 0 {
		r.Close = 10_000
	}
	if r.WarmUps == 0 {
		r.WarmUps = 4
	}
	return r
}
