package broker_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/core/vfs"
)

// altering makes the request that changes one resource.
func altering(kind kmsg.ConfigResourceType, name string, changes ...string) *kmsg.IncrementalAlterConfigsRequest {
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Version = 1
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kind, name
	ops := map[string]kmsg.IncrementalAlterConfigOp{
		"=": kmsg.IncrementalAlterConfigOpSet, "!": kmsg.IncrementalAlterConfigOpDelete,
		"+": kmsg.IncrementalAlterConfigOpAppend, "-": kmsg.IncrementalAlterConfigOpSubtract,
	}
	for _, change := range changes { // "=key value", "!key", "+key value", "-key value"
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		key, value, given := strings.Cut(change[1:], " ")
		c.Name, c.Op = key, ops[change[:1]]
		if given {
			c.Value = &value
		}
		r.Configs = append(r.Configs, c)
	}
	req.Resources = append(req.Resources, r)
	return req
}

func alter(t *testing.T, b *broker.Broker, req *kmsg.IncrementalAlterConfigsRequest) (code int16, message string) {
	t.Helper()
	r := call(t, b, req).(*kmsg.IncrementalAlterConfigsResponse).Resources[0]
	if r.ErrorMessage != nil {
		message = *r.ErrorMessage
	}
	return r.ErrorCode, message
}

func mustAlter(t *testing.T, b *broker.Broker, kind kmsg.ConfigResourceType, name string, changes ...string) {
	t.Helper()
	if code, message := alter(t, b, altering(kind, name, changes...)); code != 0 {
		t.Fatalf("%v of %s: %d %s", changes, name, code, message)
	}
}

// configured is a setting as DescribeConfigs tells it: value, source, and every synonym as name=value/source.
func configured(t *testing.T, b *broker.Broker, kind kmsg.ConfigResourceType, name, key string) string {
	t.Helper()
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Version, req.IncludeSynonyms = 4, true
	req.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kind, ResourceName: name, ConfigNames: []string{key}}}
	r := call(t, b, req).(*kmsg.DescribeConfigsResponse).Resources[0]
	if r.ErrorCode != 0 || len(r.Configs) > 1 {
		t.Fatalf("%s of %s: %+v", key, name, r)
	}
	if len(r.Configs) == 0 {
		return ""
	}
	c := r.Configs[0]
	out := fmt.Sprintf("%s/%d", *c.Value, c.Source)
	for _, s := range c.ConfigSynonyms {
		out += fmt.Sprintf(" %s=%s/%d", s.Name, *s.Value, s.Source)
	}
	return out
}

const (
	topicKind  = kmsg.ConfigResourceTypeTopic
	brokerKind = kmsg.ConfigResourceTypeBroker
)

// TestAlterConfigs: what each operation makes of a topic's settings, what is refused with which code and leaves all as it was, and
// that a restart finds it again.
func TestAlterConfigs(t *testing.T) {
	fs := vfs.NewMem()
	b := brokertest.Start(t, brokertest.OnTCP(), brokertest.OnFS(fs))
	createTopic(t, b, "t", 1)
	for _, step := range []struct {
		changes []string
		key     string
		want    string // "" asks for a refusal with code and message
		code    int16
		message string
	}{
		{[]string{"=retention.ms 1000"}, "retention.ms", "1000/1 retention.ms=1000/1 log.retention.ms=604800000/5", 0, ""},
		{[]string{"!retention.ms"}, "retention.ms", "604800000/5 log.retention.ms=604800000/5", 0, ""},
		{[]string{"!retention.ms"}, "retention.ms", "604800000/5 log.retention.ms=604800000/5", 0, ""}, // nothing to delete
		{[]string{"+cleanup.policy compact"}, "cleanup.policy", "delete,compact/1 cleanup.policy=delete,compact/1 log.cleanup.policy=delete/5", 0, ""},
		{[]string{"+cleanup.policy compact"}, "cleanup.policy", "delete,compact/1 cleanup.policy=delete,compact/1 log.cleanup.policy=delete/5", 0, ""},
		{[]string{"-cleanup.policy delete"}, "cleanup.policy", "compact/1 cleanup.policy=compact/1 log.cleanup.policy=delete/5", 0, ""},
		{[]string{"-cleanup.policy compact"}, "cleanup.policy", "/1 cleanup.policy=/1 log.cleanup.policy=delete/5", 0, ""}, // keep for ever
		{[]string{"!cleanup.policy", "=segment.bytes 2000000"}, "segment.bytes", "2000000/1 segment.bytes=2000000/1 log.segment.bytes=1073741824/5", 0, ""},
		{[]string{"=millrace.durability interval"}, "millrace.durability", "interval/1 millrace.durability=interval/1 millrace.durability=fsync/5", 0, ""},
		{[]string{"!no.such"}, "flush.ms", "1000/5 log.flush.interval.ms=1000/5", 0, ""}, // interval has a default of its own

		{[]string{"=retention.ms"}, "", "", 42, "Null value not supported for : retention.ms"},
		{[]string{"=retention.ms 1", "!retention.ms"}, "", "", 42, "Error due to duplicate config keys"},
		{[]string{"=no.such 1"}, "", "", 40, "Unknown topic config name: no.such"},
		{[]string{"=segment.bytes 5"}, "", "", 40, "Invalid value 5 for configuration segment.bytes: Value must be at least 1048576"},
		{[]string{"=retention.ms 7", "=segment.ms soon"}, "", "", 40, "Invalid value soon for configuration segment.ms: Not a number of type LONG"},
		{[]string{"+retention.ms 7"}, "", "", 40, "Can't APPEND to key retention.ms because its type is not LIST."},
		{[]string{"-no.such 7"}, "", "", 40, "Can't SUBTRACT to key no.such because its type is not LIST."},
		{[]string{"+cleanup.policy shred"}, "", "", 40, "Invalid value delete,shred for configuration cleanup.policy: String must be one of: compact, delete"},
		{[]string{"=millrace.durability never"}, "", "", 40, "Invalid value never for configuration millrace.durability: String must be one of: fsync, interval, os"},
		{[]string{"=min.compaction.lag.ms 10", "=max.compaction.lag.ms 5"}, "", "", 40, "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)"},
	} {
		code, message := alter(t, b, altering(topicKind, "t", step.changes...))
		if code != step.code || message != step.message {
			t.Errorf("%v: %d %q, want %d %q", step.changes, code, message, step.code, step.message)
		}
		if step.code == 0 {
			if got := configured(t, b, topicKind, "t", step.key); got != step.want {
				t.Errorf("%v: %s is %q, want %q", step.changes, step.key, got, step.want)
			}
		}
	}
	if got := configured(t, b, topicKind, "t", "retention.ms"); got != "604800000/5 log.retention.ms=604800000/5" {
		t.Errorf("a request that was refused has changed retention.ms to %s", got)
	}
	dry := altering(topicKind, "t", "=retention.ms 5")
	dry.ValidateOnly = true
	if code, message := alter(t, b, dry); code != 0 || strings.HasPrefix(configured(t, b, topicKind, "t", "retention.ms"), "5/") {
		t.Errorf("validate only: %d %s, %s", code, message, configured(t, b, topicKind, "t", "retention.ms"))
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = brokertest.Start(t, brokertest.OnTCP(), brokertest.OnFS(fs))
	for key, want := range map[string]string{"segment.bytes": "2000000/1", "millrace.durability": "interval/1", "cleanup.policy": "delete/5"} {
		if got := configured(t, b, topicKind, "t", key); !strings.HasPrefix(got, want) {
			t.Errorf("after a restart %s is %s, want %s", key, got, want)
		}
	}
}

// TestAlterConfigsOfSeveralResources: each is decided on its own; one that is named twice is refused both times.
func TestAlterConfigsOfSeveralResources(t *testing.T) {
	b := brokertest.Start(t, brokertest.OnTCP())
	createTopic(t, b, "a", 1)
	createTopic(t, b, "b", 1)
	req := altering(topicKind, "a", "=retention.ms 1")
	for _, other := range []*kmsg.IncrementalAlterConfigsRequest{
		altering(topicKind, "none", "=retention.ms 1"), altering(topicKind, "b", "=retention.ms 2"), altering(topicKind, "a/b", "=retention.ms 1"),
		altering(topicKind, "x", "=retention.ms 1"), altering(topicKind, "x", "=retention.ms 1"), altering(kmsg.ConfigResourceTypeBrokerLogger, "1", "=a INFO"),
	} {
		req.Resources = append(req.Resources, other.Resources...)
	}
	var codes []int16
	for _, r := range call(t, b, req).(*kmsg.IncrementalAlterConfigsResponse).Resources {
		codes = append(codes, r.ErrorCode)
	}
	if want := []int16{0, 3, 0, 17, 42, 42, 42}; !slices.Equal(codes, want) {
		t.Errorf("codes %v, want %v", codes, want)
	}
	if a, b := configured(t, b, topicKind, "a", "retention.ms"), configured(t, b, topicKind, "b", "retention.ms"); a[:2] != "1/" || b[:2] != "2/" {
		t.Errorf("a %s, b %s", a, b)
	}
}

// TestReplaceConfigs: AlterConfigs sets what it names and resets the rest.
func TestReplaceConfigs(t *testing.T) {
	b := brokertest.Start(t, brokertest.OnTCP())
	createTopic(t, b, "t", 1)
	mustAlter(t, b, topicKind, "t", "=retention.ms 1000", "=segment.ms 5000")
	replace := func(kind kmsg.ConfigResourceType, name string, dry bool, kv ...string) int16 {
		req := kmsg.NewPtrAlterConfigsRequest()
		req.Version, req.ValidateOnly = 2, dry
		r := kmsg.NewAlterConfigsRequestResource()
		r.ResourceType, r.ResourceName = kind, name
		for i := 0; i < len(kv); i += 2 {
			c := kmsg.NewAlterConfigsRequestResourceConfig()
			c.Name = kv[i]
			if kv[i+1] != "null" {
				c.Value = &kv[i+1]
			}
			r.Configs = append(r.Configs, c)
		}
		req.Resources = append(req.Resources, r)
		return call(t, b, req).(*kmsg.AlterConfigsResponse).Resources[0].ErrorCode
	}
	for _, c := range []struct {
		kv   []string
		dry  bool
		code int16
	}{
		{[]string{"segment.ms", "null"}, false, 42}, {[]string{"a", "1", "a", "1"}, false, 42}, {[]string{"a", "1"}, false, 40},
		{[]string{"segment.ms", "7000"}, true, 0},
	} {
		if code := replace(topicKind, "t", c.dry, c.kv...); code != c.code {
			t.Errorf("%v: %d, want %d", c.kv, code, c.code)
		}
	}
	if got := configured(t, b, topicKind, "t", "segment.ms"); got[:6] != "5000/1" {
		t.Errorf("what was refused or only tried has changed segment.ms to %s", got)
	}
	if code := replace(topicKind, "t", false, "segment.ms", "6000"); code != 0 {
		t.Fatal(code)
	}
	if ms, retention := configured(t, b, topicKind, "t", "segment.ms"), configured(t, b, topicKind, "t", "retention.ms"); ms[:6] != "6000/1" || !strings.HasPrefix(retention, "604800000/5") {
		t.Errorf("segment.ms %s, retention.ms %s", ms, retention)
	}
	if code := replace(brokerKind, "", false, "log.segment.ms", "6000"); code != 42 { // no such name: log.roll.ms
		t.Error(code)
	}
}

// TestBrokerConfigs: what topics take over from the brokers, in order of precedence, and what a running broker does not change.
func TestBrokerConfigs(t *testing.T) {
	fs := vfs.NewMem()
	b := brokertest.Start(t, brokertest.OnTCP(), brokertest.OnFS(fs), brokertest.Configure(func(c *broker.Config) { c.FlushInterval = 300 * time.Millisecond }))
	createTopic(t, b, "t", 1)
	if got := configured(t, b, topicKind, "t", "flush.ms"); got != "300/4 log.flush.interval.ms=300/4 log.flush.interval.ms=9223372036854775807/5" {
		t.Errorf("flush.ms as the broker was started: %s", got)
	}
	mustAlter(t, b, brokerKind, "", "=log.retention.ms 100", "=log.cleanup.policy compact", "=log.flush.interval.ms 200")
	mustAlter(t, b, brokerKind, "1", "=log.retention.ms 200")
	if got, want := configured(t, b, topicKind, "t", "retention.ms"), "200/2 log.retention.ms=200/2 log.retention.ms=100/3 log.retention.ms=604800000/5"; got != want {
		t.Errorf("retention.ms is %s, want %s", got, want)
	}
	if got := configured(t, b, topicKind, "t", "flush.ms"); !strings.HasPrefix(got, "200/3 ") {
		t.Errorf("flush.ms is %s", got)
	}
	mustAlter(t, b, topicKind, "t", "=retention.ms 300")
	if got := configured(t, b, topicKind, "t", "retention.ms"); !strings.HasPrefix(got, "300/1 retention.ms=300/1 log.retention.ms=200/2") {
		t.Errorf("retention.ms is %s", got)
	}
	if got := configured(t, b, brokerKind, "1", "log.retention.ms"); !strings.HasPrefix(got, "200/2 ") {
		t.Errorf("the broker says log.retention.ms is %s", got)
	}
	if got := configured(t, b, brokerKind, "", "log.retention.ms"); got != "100/3 log.retention.ms=100/3" {
		t.Errorf("all brokers say log.retention.ms is %s", got)
	}
	if got := configured(t, b, brokerKind, "", "log.segment.bytes"); got != "" {
		t.Errorf("what was not set for all brokers is described: %s", got)
	}
	for _, topic := range []string{"__consumer_offsets", "__transaction_state"} {
		if got := configured(t, b, topicKind, topic, "retention.ms"); !strings.HasPrefix(got, "604800000/5") {
			t.Errorf("%s has taken over retention.ms %s", topic, got)
		}
		for _, change := range []string{"=millrace.durability os", "=cleanup.policy delete", "=max.message.bytes 100", "=retention.ms 1"} {
			if code, message := alter(t, b, altering(topicKind, topic, change)); code != kerr.PolicyViolation.Code {
				t.Errorf("%s of %s: %d %s", change, topic, code, message)
			}
		}
		mustAlter(t, b, topicKind, topic, "=segment.ms 100000")
	}
	for change, want := range map[string]string{
		"=log.dirs /x":          "Cannot update these configs dynamically: [log.dirs]",
		"=no.such 1":            "Cannot update these configs dynamically: [no.such]",
		"=log.retention.ms abc": "Invalid value abc for configuration log.retention.ms: Not a number of type LONG",
	} {
		if code, message := alter(t, b, altering(brokerKind, "1", change)); code != 42 || message != want {
			t.Errorf("%s: %d %s, want 42 %s", change, code, message, want)
		}
	}
	for name, want := range map[string]string{"7": "Unexpected broker id, expected 1, but received 7", "x": "Node id must be an integer, but it is: x"} {
		if code, message := alter(t, b, altering(brokerKind, name, "=log.retention.ms 1")); code != 42 || message != want {
			t.Errorf("broker %s: %d %s, want 42 %s", name, code, message, want)
		}
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = brokertest.Start(t, brokertest.OnTCP(), brokertest.OnFS(fs))
	createTopic(t, b, "new", 1)
	if got := configured(t, b, topicKind, "new", "cleanup.policy"); got != "compact/3 log.cleanup.policy=compact/3 log.cleanup.policy=delete/5" {
		t.Errorf("after a restart a new topic has cleanup.policy %s", got)
	}
	mustAlter(t, b, brokerKind, "", "!log.cleanup.policy", "!log.retention.ms")
	mustAlter(t, b, brokerKind, "1", "!log.retention.ms")
	if got := configured(t, b, topicKind, "new", "retention.ms"); !strings.HasPrefix(got, "604800000/5") {
		t.Errorf("retention.ms is %s when nobody says it any more", got)
	}
}

// TestAlterationsTakeEffect: partitions that are in use go by a new setting from the answer on.
func TestAlterationsTakeEffect(t *testing.T) {
	b := brokertest.Start(t, brokertest.OnTCP(), brokertest.CleanEvery(5*time.Millisecond))
	ctx := background(t)
	adm := admin(t, b)
	cl := newClient(t, kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerLinger(0), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	send := func(r *kgo.Record) error {
		r.Topic = "t"
		return cl.ProduceSync(ctx, r).FirstErr()
	}
	batchBytes := func(offset int64) int { // of the batch there, as stored
		p := call(t, b, fetchRequest("t", 0, offset, 1)).(*kmsg.FetchResponse).Topics[0].Partitions[0]
		return len(p.RecordBatches)
	}
	createTopic(t, b, "t", 1)
	large := func() *kgo.Record { return &kgo.Record{Key: []byte("k"), Value: make([]byte, 5000)} }
	if err := send(large()); err != nil {
		t.Fatal(err)
	}

	mustAlter(t, b, topicKind, "t", "=max.message.bytes 1000")
	if err := send(large()); !errors.Is(err, kerr.MessageTooLarge) {
		t.Errorf("max.message.bytes 1000, a record of 5,000: %v", err)
	}
	mustAlter(t, b, topicKind, "t", "!max.message.bytes", "=compression.type gzip")
	if err := send(large()); err != nil {
		t.Fatal(err)
	}
	if plain, packed := batchBytes(0), batchBytes(1); plain < 5000 || packed > 1000 {
		t.Errorf("stored in %d bytes before compression.type=gzip and in %d after", plain, packed)
	}
	text := []byte(strings.Repeat("not the same all the time, but the same again and again: ", 80))
	for i := range text {
		text[i] += byte(i * i % 5)
	}
	var sizes []int
	for _, level := range []string{"1", "9"} {
		mustAlter(t, b, topicKind, "t", "=compression.gzip.level "+level)
		r := &kgo.Record{Key: []byte("k"), Value: text}
		if err := send(r); err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, batchBytes(r.Offset))
	}
	if sizes[1] >= sizes[0] {
		t.Errorf("gzip at level 1 stores %d bytes, at level 9 %d", sizes[0], sizes[1])
	}
	mustAlter(t, b, topicKind, "t", "=message.timestamp.after.max.ms 1000")
	if err := send(&kgo.Record{Key: []byte("k"), Timestamp: time.Now().Add(time.Minute)}); !errors.Is(err, kerr.InvalidTimestamp) {
		t.Errorf("a record of in a minute: %v", err)
	}
	mustAlter(t, b, topicKind, "t", "!message.timestamp.after.max.ms", "=message.timestamp.before.max.ms 1000")
	if err := send(&kgo.Record{Key: []byte("k"), Timestamp: time.Now().Add(-time.Minute)}); !errors.Is(err, kerr.InvalidTimestamp) {
		t.Errorf("a record of a minute ago: %v", err)
	}
	mustAlter(t, b, topicKind, "t", "!message.timestamp.before.max.ms", "=message.timestamp.type LogAppendTime")
	old := &kgo.Record{Key: []byte("k"), Timestamp: time.UnixMilli(5)}
	if err := send(old); err != nil {
		t.Fatal(err)
	}
	if found, err := adm.ListOffsetsAfterMilli(ctx, time.Now().Add(-time.Hour).UnixMilli(), "t"); err != nil {
		t.Error(err)
	} else if o, _ := found.Lookup("t", 0); o.Offset > old.Offset || o.Timestamp < 1_000_000 {
		t.Errorf("message.timestamp.type=LogAppendTime: %+v", o)
	}
	mustAlter(t, b, topicKind, "t", "+cleanup.policy compact")
	if err := send(&kgo.Record{Value: []byte("no key")}); !errors.Is(err, kerr.InvalidRecord) {
		t.Errorf("a record without a key in a compacted topic: %v", err)
	}
	mustAlter(t, b, topicKind, "t", "=min.insync.replicas 2")
	req := produceRequest(9, -1, "t", 0, idempotentBatch(700, 0, 0, "a"))
	if code := call(t, b, req).(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode; code != kerr.NotEnoughReplicas.Code {
		t.Errorf("min.insync.replicas 2 on one node: %d", code)
	}
	mustAlter(t, b, topicKind, "t", "!min.insync.replicas", "=cleanup.policy delete", "=segment.ms 1", "=retention.ms 1", "=file.delete.delay.ms 0")
	awaitStart(t, adm, "t", old.Offset+1)
}

// awaitStart waits until retention has moved a topic's start.
func awaitStart(t *testing.T, adm *kadm.Client, topic string, want int64) {
	t.Helper()
	ctx := background(t)
	for {
		starts, err := adm.ListStartOffsets(ctx, topic)
		if err != nil {
			t.Fatal(err)
		}
		if o, _ := starts.Lookup(topic, 0); o.Offset >= want {
			return
		}
		time.Sleep(5 * time.Millisecond) // asks again; the context bounds it
	}
}
