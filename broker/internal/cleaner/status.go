package cleaner

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/broker/internal/compact"
	"github.com/millrace/millrace/broker/internal/partition"
)

// Status is what a cleaner has done since its start, and what it could not do. All numbers but the lists only grow.
type Status struct {
	RetentionRounds int64
	RetainedBytes   int64 // removed by age or size

	CompactionRounds int64 // of all partitions
	Compactions      int64 // of a partition that was dirty enough
	Compacted        compact.Counts
	MaxDirtyRatio    float64 // of the dirtiest partition in the last round; goes up and down

	ProducerRounds   int64 // looks at the producers of all partitions
	ExpiredProducers int64
	Failures         int64 // rounds of a partition that failed

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

// job is what failed of a partition: retention and compaction fail, and succeed again, on their own.
type job struct{ partition, what string }

// status is a Status under way.
type status struct {
	mu      sync.Mutex
	now     Status // without the lists
	failing map[job]string
	pinned  map[string]int64
}

// Status is the present one.
func (c *Cleaner) Status() Status {
	s := &c.status
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.now
	for _, j := range slices.SortedFunc(maps.Keys(s.failing), job.compare) {
		out.Failing = append(out.Failing, Failing{j.partition, s.failing[j]})
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
	s.failed(l, job{name, "retention"}, err)
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
func (s *status) failed(l *slog.Logger, j job, err error) {
	if err == nil {
		if _, had := s.failing[j]; had {
			l.Info("the partition can be cleaned again", "partition", j.partition, "job", j.what)
			delete(s.failing, j)
		}
		return
	}
	s.now.Failures++
	if s.failing == nil {
		s.failing = map[job]string{}
	}
	if s.failing[j] != err.Error() {
		l.Error("the partition can't be cleaned; it is tried again in every round", "partition", j.partition, "job", j.what, "err", err)
	}
	s.failing[j] = err.Error()
}

func (a job) compare(b job) int {
	return cmp.Or(cmp.Compare(a.partition, b.partition), cmp.Compare(a.what, b.what))
}

// retentionDone ends a round in which these partitions were there: what is said of others is of deleted topics.
func (s *status) retentionDone(names map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.RetentionRounds++
	maps.DeleteFunc(s.failing, func(j job, _ string) bool { return !names[j.partition] })
	maps.DeleteFunc(s.pinned, func(name string, _ int64) bool { return !names[name] })
}

// compacted notes a partition's round of compaction.
func (s *status) compacted(l *slog.Logger, name string, c partition.Compacted, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.Compactions++
	t, n := &s.now.Compacted, c.Counts
	t.BatchesIn, t.BatchesOut = t.BatchesIn+n.BatchesIn, t.BatchesOut+n.BatchesOut
	t.BytesIn, t.BytesOut = t.BytesIn+n.BytesIn, t.BytesOut+n.BytesOut
	t.RecordsIn, t.RecordsOut = t.RecordsIn+n.RecordsIn, t.RecordsOut+n.RecordsOut
	t.Keyless += n.Keyless
	s.failed(l, job{name, "compaction"}, err)
}

func (s *status) compactionDone(ratio float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.CompactionRounds++
	s.now.MaxDirtyRatio = ratio
}

// forgot notes a round over the producers.
func (s *status) forgot(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.ProducerRounds++
	s.now.ExpiredProducers += n
}
