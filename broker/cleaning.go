package broker

import (
	"fmt"
	"time"

	"github.com/millrace/millrace/broker/internal/cleaner"
	"github.com/millrace/millrace/broker/internal/replicas"
)

// startCleaner starts what removes old records, as the last part that touches the partitions.
func (b *Broker) startCleaner(s *base, m *replicas.Manager) (err error) {
	b.cleaner, err = cleaner.Start(cleaner.Options{
		Partitions: m.All(), RetentionEvery: b.config.RetentionCheckInterval, CompactEvery: b.config.CompactionInterval,
		ProducersAfter: b.config.ProducerIDExpiration, ProducersEvery: b.config.ProducerIDCheckInterval,
		TableBytes: b.config.CompactionBuffer, BytesPerSecond: b.config.CompactionBytesPerSecond, Clock: s.clock, Logger: s.logger,
	})
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	b.stack.push("cleaner", b.cleaner.Close)
	return nil
}

// Cleaning is what retention and compaction have done since the start, and what they could not do. Numbers only grow, but for
// MaxDirtyRatio.
type Cleaning struct {
	RetentionRounds int64
	RetainedBytes   int64 // removed by age or size

	CompactionRounds int64 // looks at all compacted partitions
	Compactions      int64 // of a partition that was dirty enough
	// What compaction has read, and what was left of it.
	CompactedBytesIn, CompactedBytesOut     int64
	CompactedRecordsIn, CompactedRecordsOut int64
	// MaxDirtyRatio is the share of the dirtiest partition that was not compacted yet when the last round began.
	MaxDirtyRatio float64

	ProducerRounds   int64 // looks at the producers of all partitions
	ExpiredProducers int64 // forgotten because they were quiet

	Failures int64 // rounds of a partition that failed
	// Failing is the reason why a partition (topic-partition) could not be cleaned in its last round.
	Failing map[string]string
	// Pinned are the partitions whose oldest segment is kept only by a record dated in the future, and until when.
	Pinned map[string]time.Time
}

// Cleaning tells how the cleaning of old records goes, for a monitoring system.
func (b *Broker) Cleaning() Cleaning {
	s := b.cleaner.Status()
	c := Cleaning{
		RetentionRounds: s.RetentionRounds, RetainedBytes: s.RetainedBytes, Failures: s.Failures,
		CompactionRounds: s.CompactionRounds, Compactions: s.Compactions, MaxDirtyRatio: s.MaxDirtyRatio,
		CompactedBytesIn: s.Compacted.BytesIn, CompactedBytesOut: s.Compacted.BytesOut,
		CompactedRecordsIn: s.Compacted.RecordsIn, CompactedRecordsOut: s.Compacted.RecordsOut,
		ProducerRounds: s.ProducerRounds, ExpiredProducers: s.ExpiredProducers,
		Failing: map[string]string{}, Pinned: map[string]time.Time{},
	}
	for _, f := range s.Failing {
		c.Failing[f.Partition] = f.Reason
	}
	for _, p := range s.Pinned {
		c.Pinned[p.Partition] = p.Until
	}
	return c
}
