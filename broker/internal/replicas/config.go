package replicas

import (
	"strconv"
	"strings"

	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/broker/internal/metadata"
	"github.com/millrace/millrace/core/record"
)

// LogConfig turns a topic's configuration into its log's. Values were validated
// when they were set; one that does not parse all the same (written by another
// version) gives way to the default.
func LogConfig(t *metadata.Topic) commitlog.Config {
	long := func(name string) int64 {
		if v, err := strconv.ParseInt(strings.TrimSpace(t.Config[name]), 10, 64); err == nil {
			return v
		}
		v, _ := strconv.ParseInt(metadata.TopicConfig(name).Default, 10, 64)
		return v
	}
	c := commitlog.Config{
		SegmentBytes:         long("segment.bytes"),
		SegmentMs:            long("segment.ms"),
		IndexIntervalBytes:   long("index.interval.bytes"),
		IndexBytes:           long("segment.index.bytes"),
		MaxMessageBytes:      int(long("max.message.bytes")),
		LogAppendTime:        t.Config["message.timestamp.type"] == "LogAppendTime",
		TimestampBeforeMaxMs: long("message.timestamp.before.max.ms"),
		TimestampAfterMaxMs:  long("message.timestamp.after.max.ms"),
	}
	if _, ok := t.Config["internal.segment.bytes"]; ok {
		c.SegmentBytes = long("internal.segment.bytes")
	}
	policies, set := t.Config["cleanup.policy"]
	if !set {
		policies = metadata.TopicConfig("cleanup.policy").Default
	}
	for _, policy := range metadata.ListValues(policies) {
		c.Compacted = c.Compacted || policy == "compact"
		c.Deletes = c.Deletes || policy == "delete"
	}
	c.RetentionMs, c.RetentionBytes = long("retention.ms"), long("retention.bytes")
	c.FileDeleteDelayMs = long("file.delete.delay.ms")
	c.DirtyRatio = ratio(t, "min.cleanable.dirty.ratio")
	c.MinLagMs, c.MaxLagMs = long("min.compaction.lag.ms"), long("max.compaction.lag.ms")
	c.DeleteRetentionMs = long("delete.retention.ms")
	if c.Compacted { // what is in the active segment is not compacted, so it must not be active for too long
		c.SegmentMs = min(c.SegmentMs, c.MaxLagMs)
	}
	return c
}

func ratio(t *metadata.Topic, name string) float64 {
	if v, err := strconv.ParseFloat(strings.TrimSpace(t.Config[name]), 64); err == nil {
		return v
	}
	v, _ := strconv.ParseFloat(metadata.TopicConfig(name).Default, 64) // the table's own
	return v
}

// minInSync is a topic's min.insync.replicas.
func minInSync(t *metadata.Topic) int64 {
	if v, err := strconv.ParseInt(strings.TrimSpace(t.Config["min.insync.replicas"]), 10, 64); err == nil {
		return v
	}
	return 1
}

// storedCodec is a topic's compression.type, nil for "producer".
func storedCodec(t *metadata.Topic) *record.Codec {
	codecs := map[string]record.Codec{
		"uncompressed": record.None, "gzip": record.Gzip, "snappy": record.Snappy, "lz4": record.LZ4, "zstd": record.Zstd,
	}
	c, ok := codecs[t.Config["compression.type"]]
	if !ok {
		return nil
	}
	return &c
}
