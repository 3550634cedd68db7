package broker

import (
	"fmt"

	"github.com/millrace/millrace/broker/internal/replicas"
	"github.com/millrace/millrace/broker/internal/scrub"
)

// startScrubber starts what looks for damage on the disk, if that is wanted. In memory there is no disk.
func (b *Broker) startScrubber(s *base, m *replicas.Manager) (err error) {
	if b.config.ScrubBytesPerSecond < 0 || !s.durable {
		return nil
	}
	b.scrubber, err = scrub.Start(scrub.Options{
		Partitions: m.All(), BytesPerSecond: b.config.ScrubBytesPerSecond, Every: b.config.ScrubInterval, Clock: s.clock, Logger: s.logger,
	})
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	b.stack.push("scrubber", b.scrubber.Close)
	return nil
}

// Scrubbing is what the background scrub has looked at since the start, and what it found. Numbers only grow.
type Scrubbing struct {
	Rounds         int64 // over all partitions
	Segments       int64
	Bytes          int64
	RebuiltIndexes int64 // that did not fit their log
	Failures       int64 // partitions that could not be read to their end in a round
	// Damaged are the batches that are not as they were written any more, by topic-partition: file, position, offset, reason. They
	// are served no more.
	Damaged map[string][]string
	// Failing is why a partition (topic-partition) could not be read to its end the last time.
	Failing map[string]string
}

// Scrubbing tells how the scrub goes, for a monitoring system. It is all zero where the scrub is off.
func (b *Broker) Scrubbing() Scrubbing {
	if b.scrubber == nil {
		return Scrubbing{}
	}
	s := b.scrubber.Status()
	return Scrubbing{
		Rounds: s.Rounds, Segments: s.Segments, Bytes: s.Bytes, RebuiltIndexes: s.Rebuilt, Failures: s.Failures,
		Damaged: s.Damaged, Failing: s.Failing,
	}
}
