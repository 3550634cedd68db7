package replicas

import (
	"math"
	"strconv"
	"testing"

	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/broker/internal/metadata"
)

// The defaults of the table and of the log must be the same: DescribeConfigs tells
// the one, the log lives by the other.
func TestDefaultsAreTheLogs(t *testing.T) {
	got := LogConfig(&metadata.Topic{Name: "t"})
	want := commitlog.Config{}.WithDefaults()
	want.Cleaning = commitlog.Cleaning{ // Kafka's; a log without settings keeps all
		Deletes: true, RetentionMs: 7 * 24 * 3600 * 1000, RetentionBytes: -1, FileDeleteDelayMs: 60000,
		DirtyRatio: 0.5, MaxLagMs: math.MaxInt64, DeleteRetentionMs: 24 * 3600 * 1000,
	}
	if got != want {
		t.Errorf("defaults of the table %+v, of the log %+v", got, want)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
}

func TestLogConfig(t *testing.T) {
	got := LogConfig(&metadata.Topic{Name: "t", Config: map[string]string{
		"segment.bytes": "2000000", "internal.segment.bytes": "500", "segment.ms": " 1000 ", "max.message.bytes": "77",
		"cleanup.policy": "delete, compact", "message.timestamp.type": "LogAppendTime", "index.interval.bytes": "not a number",
	}})
	if got.SegmentBytes != 500 || got.SegmentMs != 1000 || got.MaxMessageBytes != 77 || !got.Compacted || !got.LogAppendTime {
		t.Errorf("%+v", got)
	}
	if got.IndexIntervalBytes != 4096 {
		t.Errorf("a value that does not parse gives %d, want the default", got.IndexIntervalBytes)
	}
	if one := LogConfig(&metadata.Topic{Config: map[string]string{"cleanup.policy": "delete"}}); one.Compacted {
		t.Error("cleanup.policy=delete is taken for compact")
	}
}

// Every value that the table allows makes a log: what was accepted once must not keep a partition from opening. And 0, where it is
// allowed, is no default.
func TestLimitsAreTheLogs(t *testing.T) {
	for _, k := range metadata.TopicConfigs() {
		for _, v := range []float64{k.Min, k.Max} {
			value := strconv.FormatFloat(v, 'f', -1, 64)
			if v >= 1<<63 {
				value = "9223372036854775807"
			}
			if v <= -(1 << 63) {
				value = "-9223372036854775807"
			}
			switch k.Type {
			case metadata.Int, metadata.Long, metadata.Double:
			default:
				continue
			}
			topic := &metadata.Topic{Name: "t", Config: map[string]string{k.Name: value, metadata.Durability: metadata.DurabilityOS}}
			if err := metadata.ValidateTopicConfig(k.Name, value); err != nil {
				t.Errorf("%s=%s: %v", k.Name, value, err)
			}
			c := LogConfig(topic)
			if err := c.Validate(); err != nil {
				t.Errorf("%s=%s is allowed, and the log says %v", k.Name, value, err)
			}
		}
	}
	zero := map[string]string{}
	for _, name := range []string{"index.interval.bytes", "max.message.bytes", "message.timestamp.before.max.ms", "message.timestamp.after.max.ms"} {
		zero[name] = "0"
	}
	c := LogConfig(&metadata.Topic{Name: "t", Config: zero}).WithDefaults()
	if c.IndexIntervalBytes > 1 || c.MaxMessageBytes > 1 || c.TimestampBeforeMaxMs > 1 || c.TimestampAfterMaxMs > 1 {
		t.Errorf("zeros are taken for defaults: %+v", c)
	}
}
