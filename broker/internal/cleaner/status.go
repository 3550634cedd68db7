package cleaner

import (
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/broker/internal/partition"
)

// Status is what a cleaner has done since its start, and what it could not do. All numbers but the lists only grow.
type Status struct {
	RetentionRounds int64
	RetainedBytes   int64 // removed by age or size
	Failures        int64 // rounds of a partition that failed

	// Failing are the partitions whose last round failed, by name.
	Failing []Failing
	// Pinned are the partitions whose oldest segment is kept by nothing but a record dated in the future, by name.
	Pinned []Pinned
}

// Failing is a partition that can't be cleaned.
type Failing struct {
	Partition string // topic-partition
	Reason    string
}

// Pinned is a partition whose retention waits for a record dated in the future.
type Pinned struct {
	Partition string // topic-partition
	Until     time.Time
}

// status is a Status under way.
type status struct {
	mu      sync.Mutex
	now     Status // without the lists
	failing map[string]string
	pinned  map[string]int64
}

// Status is the present one.
func (c *Cleaner) Status() Status {
	s := &c.status
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.now
	for _, name := range slices.Sorted(maps.Keys(s.failing)) {
		out.Failing = append(out.Failing, Failing{name, s.failing[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(s.pinned)) {
		out.Pinned = append(out.Pinned, Pinned{name, time.UnixMilli(s.pinned[name]).UTC()})
	}
	return out
}

func (s *status) retained(l *slog.Logger, name string, r partition.Retained, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.RetainedBytes += r.Bytes
	s.failed(l, name, err)
	if r.PinnedBy == 0 {
		delete(s.pinned, name)
		return
	}
	if s.pinned == nil {
		s.pinned = map[string]int64{}
	}
	if s.pinned[name] != r.PinnedBy {
		l.Warn("a record dated in the future keeps its segment, and all behind it, from expiring",
			"partition", name, "dated", time.UnixMilli(r.PinnedBy).UTC())
	}
	s.pinned[name] = r.PinnedBy
}

// failed notes how a round of a partition ended. mu is held.
func (s *status) failed(l *slog.Logger, name string, err error) {
	if err == nil {
		if _, had := s.failing[name]; had {
			l.Info("the partition can be cleaned again", "partition", name)
			delete(s.failing, name)
		}
		return
	}
	s.now.Failures++
	if s.failing == nil {
		s.failing = map[string]string{}
	}
	if s.failing[name] != err.Error() {
		l.Error("the partition can't be cleaned; it is tried again in every round", "partition", name, "err", err)
	}
	s.failing[name] = err.Error()
}
