package commitlog

import (
	"fmt"
	"math"
)

// Config is what a topic's configuration says about its log. The zero value is Kafka's defaults; a field in brackets is
// the topic setting it comes from.
type Config struct {
	// SegmentBytes is the size at which a segment is closed and the next begun [segment.bytes]. 0 is 1 GiB.
	SegmentBytes int64
	// SegmentMs is the age at which it is [segment.ms], measured by the batches' own timestamps as Kafka does. 0 is 7 days.
	SegmentMs int64
	// SegmentJitterMs is the most that is taken off SegmentMs, another part of it for each segment, so that logs that began together do
	// not all roll together [segment.jitter.ms].
	SegmentJitterMs int64
	// IndexIntervalBytes is how many bytes of batches lie between two index entries [index.interval.bytes]. 0 is 4096.
	IndexIntervalBytes int64
	// IndexBytes bounds each index file; a full one closes the segment [segment.index.bytes]. 0 is 10 MiB.
	IndexBytes int64

	// MaxMessageBytes bounds one batch as sent [max.message.bytes]. 0 is 1048588.
	MaxMessageBytes int
	// LogAppendTime replaces the records' times by the broker's [message.timestamp.type=LogAppendTime].
	LogAppendTime bool
	// TimestampBeforeMaxMs and TimestampAfterMaxMs bound how far a record's time may lie behind or ahead of the broker's
	// clock [message.timestamp.before.max.ms, message.timestamp.after.max.ms]. 0 is no limit behind, 1 hour ahead;
	// math.MaxInt64 is no limit.
	TimestampBeforeMaxMs, TimestampAfterMaxMs int64
	// Compacted asks each record for a key, and keeps the last one of each [cleanup.policy contains compact].
	Compacted bool
	Cleaning
	Durability
}

// Durability says what an acknowledgement waits for, and when a sync is asked for. The zero value waits for the sync
// [millrace.durability=fsync].
type Durability struct {
	// Relaxed acknowledges what is written, as soon as the kernel has it [millrace.durability=interval or os]. The two fields below
	// bound what a power cut can take then; without Relaxed they say nothing.
	Relaxed bool
	// FlushMs is how long something may lie unsynced before a sync is asked for [flush.ms]. 0 is for ever: until the segment is
	// full or the log closed.
	FlushMs int64
	// FlushMessages is how many records may lie unsynced, less one: an acknowledgement that would make them as many waits for the
	// sync, as all do with 1 [flush.messages]. 0 is no bound.
	FlushMessages int64
}

// Cleaning says which records may go, and when. The zero value keeps all of them.
type Cleaning struct {
	// Deletes lets whole segments go by age and size [cleanup.policy contains delete].
	Deletes bool
	// RetentionMs is the age beyond which a segment goes [retention.ms], RetentionBytes the size of the log that stays when
	// the oldest segments go [retention.bytes]. Below 0 is no limit; 0 keeps nothing, so Deletes comes with both set.
	RetentionMs, RetentionBytes int64
	// FileDeleteDelayMs is how long the files of a segment that is gone lie renamed in the folder [file.delete.delay.ms]. 0
	// deletes them when their last reader has left them.
	FileDeleteDelayMs int64

	// DirtyRatio is the share of the log that must not be compacted yet before it is compacted [min.cleanable.dirty.ratio].
	DirtyRatio float64
	// MinLagMs and MaxLagMs bound how long a record is not compacted [min.compaction.lag.ms, max.compaction.lag.ms]. A MaxLagMs
	// of 0 is no bound.
	MinLagMs, MaxLagMs int64
	// DeleteRetentionMs is how long a tombstone stays after the compaction that saw it first [delete.retention.ms].
	DeleteRetentionMs int64
}

// Limits of the settings.
const (
	minSegmentBytes = 14 // as Kafka's before 4.0; the topic's public minimum is the broker's business
	maxSegmentBytes = math.MaxInt32
)

// MinIndexBytes is the least IndexBytes: one entry of each index.
const MinIndexBytes = 12

// WithDefaults fills what is zero.
func (c Config) WithDefaults() Config {
	set := func(f *int64, v int64) {
		if *f == 0 {
			*f = v
		}
	}
	set(&c.SegmentBytes, 1<<30)
	set(&c.SegmentMs, 7*24*3600*1000)
	set(&c.IndexIntervalBytes, 4096)
	set(&c.IndexBytes, 10<<20)
	set(&c.TimestampBeforeMaxMs, math.MaxInt64)
	set(&c.TimestampAfterMaxMs, 3600*1000)
	if c.MaxMessageBytes == 0 {
		c.MaxMessageBytes = 1048588
	}
	return c
}

// Validate names the first setting that is out of its limits, by its topic-level name.
func (c Config) Validate() error {
	c = c.WithDefaults()
	for _, f := range []struct {
		name         string
		v, low, high int64
	}{
		{"segment.bytes", c.SegmentBytes, minSegmentBytes, maxSegmentBytes},
		{"segment.ms", c.SegmentMs, 1, math.MaxInt64},
		{"segment.jitter.ms", c.SegmentJitterMs, 0, math.MaxInt64},
		{"index.interval.bytes", c.IndexIntervalBytes, 1, math.MaxInt32},
		{"segment.index.bytes", c.IndexBytes, MinIndexBytes, maxSegmentBytes},
		{"max.message.bytes", int64(c.MaxMessageBytes), 1, math.MaxInt32},
		{"message.timestamp.before.max.ms", c.TimestampBeforeMaxMs, 0, math.MaxInt64},
		{"message.timestamp.after.max.ms", c.TimestampAfterMaxMs, 0, math.MaxInt64},
		{"file.delete.delay.ms", c.FileDeleteDelayMs, 0, math.MaxInt64},
		{"min.compaction.lag.ms", c.MinLagMs, 0, math.MaxInt64},
		{"max.compaction.lag.ms", c.MaxLagMs, 0, math.MaxInt64},
		{"delete.retention.ms", c.DeleteRetentionMs, 0, math.MaxInt64},
		{"flush.ms", c.FlushMs, 0, math.MaxInt64},
		{"flush.messages", c.FlushMessages, 0, math.MaxInt64},
	} {
		if f.v < f.low || f.v > f.high {
			return fmt.Errorf("%s is %d, must be between %d and %d", f.name, f.v, f.low, f.high)
		}
	}
	if !(c.DirtyRatio >= 0 && c.DirtyRatio <= 1) {
		return fmt.Errorf("min.cleanable.dirty.ratio is %v, must be between 0 and 1", c.DirtyRatio)
	}
	return nil
}
