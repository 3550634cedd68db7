package runner

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/millrace/millrace/connectors"
)

// State is the state of a connector, a task or a partition.
type State string

// The states.
const (
	Starting State = "STARTING" // preparing, joining, or claiming and opening
	Running  State = "RUNNING"
	Retrying State = "RETRYING" // the store or the cluster does not answer; Err says what
	Fenced   State = "FENCED"   // another owner has taken over; not a failure
	Failed   State = "FAILED"   // stopped by an error that a retry cannot mend
	Stopped  State = "STOPPED"
)

// Status is a snapshot of a connector. It shares nothing with the connector.
type Status struct {
	Connector string // kind, as "sqlite"
	Name      string
	State     State  // the worst state of the tasks, FAILED before RETRYING before the others
	Err       string // of a task in that state
	Guarantee connectors.Stated
	Tasks     []TaskStatus
}

// TaskStatus is the part of one task. The counters count since the start of
// this process.
type TaskStatus struct {
	Task       int
	State      State
	Err        string
	Partitions []PartitionStatus // ordered by topic and partition
	Commits    int64
	Records    int64 // stored as data
	Rejects    int64 // stored as rejects
	Retries    int64 // attempts that failed and were made again
	Opens      int64 // successful take-overs
	Fenced     int64 // calls that ended with ErrFenced
}

// PartitionStatus tells how far a partition is.
type PartitionStatus struct {
	TP       connectors.TP
	State    State
	Fence    connectors.Fence
	Position connectors.Position // as stored
	LogEnd   int64               // last stable offset (high watermark with read_uncommitted); -1 = not known
	Lag      int64               // records of the log, gaps included, that are not stored yet; -1 = not known
}

// Partition returns the status of a partition, wherever it runs.
func (s Status) Partition(tp connectors.TP) (PartitionStatus, bool) {
	for _, t := range s.Tasks {
		for _, p := range t.Partitions {
			if p.TP == tp {
				return p, true
			}
		}
	}
	return PartitionStatus{}, false
}

// CaughtUp reports whether at least n partitions run and none has a lag.
func (s Status) CaughtUp(n int) bool {
	seen := 0
	for _, t := range s.Tasks {
		for _, p := range t.Partitions {
			if p.State != Running || p.Lag != 0 {
				return false
			}
			seen++
		}
	}
	return seen >= n
}

// board holds the latest status and wakes whoever waits for a change. It is
// the only state that tasks and observers share.
type board struct {
	mu      sync.Mutex
	status  Status
	changed chan struct{} // closed and replaced at every change
}

func newBoard(s Status) *board {
	return &board{status: s, changed: make(chan struct{})}
}

// update changes the status under the lock.
func (b *board) update(f func(*Status)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(&b.status)
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *board) snapshot() (Status, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.status
	s.Guarantee.Because = slices.Clone(s.Guarantee.Because)
	s.Tasks = slices.Clone(s.Tasks)
	for i := range s.Tasks {
		s.Tasks[i].Partitions = slices.Clone(s.Tasks[i].Partitions)
	}
	s.State, s.Err = overall(s.Tasks)
	return s, b.changed
}

// await returns the first status that fits, or the last one seen and an error.
func (b *board) await(ctx context.Context, fits func(Status) bool) (Status, error) {
	for {
		s, changed := b.snapshot()
		if fits(s) {
			return s, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return s, fmt.Errorf("waiting for a status: %w (state %s %s)", ctx.Err(), s.State, s.Err)
		}
	}
}

var severity = []State{Stopped, Fenced, Running, Starting, Retrying, Failed}

// overall is the worst state of the tasks, and what the first of them says.
func overall(tasks []TaskStatus) (State, string) {
	worst, text := -1, ""
	for _, t := range tasks {
		if i := slices.Index(severity, t.State); i > worst {
			worst, text = i, t.Err
		}
	}
	if worst < 0 {
		return Starting, "" // no task yet
	}
	return severity[worst], text
}
