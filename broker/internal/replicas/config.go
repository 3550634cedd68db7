package replicas

import (
	"math"
	"strconv"
	"strings"

	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/broker/internal/metadata"
	"github.com/millrace/millrace/core/record"
)

// LogConfig turns what a topic sets itself into its log's configuration.
func LogConfig(t *metadata.Topic) commitlog.Config { return logConfig(metadata.OwnSettings(t), t) }

// logConfig turns a topic's settings into its log's. Values were validated
// when they were set; one that does not parse all the same (written by another
// version) gives way to the default.
func logConfig(s metadata.Settings, t *metadata.Topic) commitlog.Config {
	long := func(name string) int64 {
		if v, err := strconv.ParseInt(strings.TrimSpace(s.Get(name)), 10, 64); err == nil {
			return v
		}
		v, _ := strconv.ParseInt(metadata.TopicConfig(name).Default, 10, 64) // the table's own
		return v
	}
	some := func(name string) int64 { return max(long(name), 1) } // 0 is allowed, and a default to the log
	c := commitlog.Config{
		SegmentBytes:         long("segment.bytes"),
		SegmentMs:            long("segment.ms"),
		SegmentJitterMs:      long("segment.jitter.ms"),
		IndexIntervalBytes:   some("index.interval.bytes"),
		IndexBytes:           max(long("segment.index.bytes"), commitlog.MinIndexBytes),
		MaxMessageBytes:      int(some("max.message.bytes")),
		LogAppendTime:        s.Get("message.timestamp.type") == "LogAppendTime",
		TimestampBeforeMaxMs: some("message.timestamp.before.max.ms"),
		TimestampAfterMaxMs:  some("message.timestamp.after.max.ms"),
	}
	if _, ok := t.Config["internal.segment.bytes"]; ok {
		c.SegmentBytes = long("internal.segment.bytes")
	}
	for _, policy := range metadata.ListValues(s.Get("cleanup.policy")) {
		c.Compacted = c.Compacted || policy == "compact"
		c.Deletes = c.Deletes || policy == "delete"
	}
	c.RetentionMs, c.RetentionBytes = long("retention.ms"), long("retention.bytes")
	c.FileDeleteDelayMs = long("file.delete.delay.ms")
	c.DirtyRatio = ratio(s, "min.cleanable.dirty.ratio")
	c.MinLagMs, c.MaxLagMs = long("min.compaction.lag.ms"), long("max.compaction.lag.ms")
	c.DeleteRetentionMs = long("delete.retention.ms")
	if c.Compacted { // what is in the active segment is not compacted, so it must not be active for too long
		c.SegmentMs = min(c.SegmentMs, c.MaxLagMs)
	}
	c.Durability = durability(s, t, long)
	return c
}

// durability is what the topic's acknowledgements wait for. The broker's own topics are always synced: what a coordinator has
// answered must be so.
func durability(s metadata.Settings, t *metadata.Topic, long func(string) int64) (d commitlog.Durability) {
	mode := s.Get(metadata.Durability)
	if t.Internal || mode != metadata.DurabilityInterval && mode != metadata.DurabilityOS {
		return d
	}
	d.Relaxed = true
	if d.FlushMs = max(long(metadata.FlushMs), 1); d.FlushMs == math.MaxInt64 {
		d.FlushMs = 0
	}
	if d.FlushMessages = long(metadata.FlushMessages); d.FlushMessages == math.MaxInt64 {
		d.FlushMessages = 0
	}
	return d
}

func ratio(s metadata.Settings, name string) float64 {
	if v, err := strconv.ParseFloat(strings.TrimSpace(s.Get(name)), 64); err == nil {
		return v
	}
	v, _ := strconv.ParseFloat(metadata.TopicConfig(name).Default, 64) // the table's own
	return v
}

// minInSync is a topic's min.insync.replicas.
func minInSync(s metadata.Settings) int64 {
	if v, err := strconv.ParseInt(strings.TrimSpace(s.Get("min.insync.replicas")), 10, 64); err == nil {
		return v
	}
	return 1
}

// storedCodec is a topic's compression.type, nil for "producer".
func storedCodec(s metadata.Settings) *record.Codec {
	codecs := map[string]record.Codec{
		"uncompressed": record.None, "gzip": record.Gzip, "snappy": record.Snappy, "lz4": record.LZ4, "zstd": record.Zstd,
	}
	c, ok := codecs[s.Get("compression.type")]
	if !ok {
		return nil
	}
	return &c
}

// codecLevel is the level that the topic's codec works at: 0, a fast one, where nobody sets one.
func codecLevel(s metadata.Settings) int {
	k := metadata.TopicConfig("compression." + s.Get("compression.type") + ".level")
	if k == nil {
		return 0
	}
	v := s.InForce(k)
	level, err := strconv.Atoi(strings.TrimSpace(v.Value))
	if v.Source == metadata.FromDefault || err != nil {
		return 0
	}
	return level
}
