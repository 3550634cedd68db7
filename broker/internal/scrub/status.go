package scrub

import (
	"fmt"
	"log/slog"
	"maps"
	"sync"

	"github.com/millrace/millrace/broker/internal/commitlog"
)

// Status is what a scrubber has done since its start. Numbers only grow.
type Status struct {
	Rounds   int64 // over all partitions
	Segments int64
	Bytes    int64
	Rebuilt  int64 // indexes that did not fit their log and were built again
	Failures int64 // partitions that could not be read to their end in a round
	// Damaged are the batches that did not check, by topic-partition: segment file, position, offset and reason.
	Damaged map[string][]string
	// Failing is why a partition (topic-partition) could not be read to its end the last time.
	Failing map[string]string
}

// status is a Status under way.
type status struct {
	mu   sync.Mutex
	now  Status
	seen map[string]bool // a batch that is in Damaged
}

// Status is the present one.
func (s *Scrubber) Status() Status {
	s.status.mu.Lock()
	defer s.status.mu.Unlock()
	out := s.status.now
	out.Damaged, out.Failing = maps.Clone(out.Damaged), maps.Clone(out.Failing)
	return out
}

// note takes a step over a partition.
func (s *status) note(l *slog.Logger, name string, did commitlog.Scrubbed, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := &s.now
	n.Segments, n.Bytes, n.Rebuilt = n.Segments+did.Segments, n.Bytes+did.Bytes, n.Rebuilt+did.Rebuilt
	for _, d := range did.Damage {
		text := fmt.Sprintf("%s at byte %d, offset %d: %s", d.File, d.Position, d.Offset, d.Reason)
		if key := name + text; !s.seen[key] {
			if s.seen == nil {
				s.seen, n.Damaged = map[string]bool{}, map[string][]string{}
			}
			s.seen[key] = true
			n.Damaged[name] = append(n.Damaged[name], text)
		}
	}
	switch {
	case err != nil:
		n.Failures++
		if n.Failing == nil {
			n.Failing = map[string]string{}
		}
		if n.Failing[name] != err.Error() {
			l.Error("the scrub can not read the partition; it tries again in the next round", "partition", name, "err", err)
		}
		n.Failing[name] = err.Error()
	case did.Done:
		delete(n.Failing, name)
	}
}

func (s *status) done() {
	s.mu.Lock()
	s.now.Rounds++
	s.mu.Unlock()
}
