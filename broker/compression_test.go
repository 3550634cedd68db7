package broker_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/core/record"
)

// A topic with a compression.type of its own stores every batch in it; records,
// headers, duplicates and refusals are as without.
func TestTopicCompression(t *testing.T) {
	b := brokertest.Start(t, brokertest.OnTCP())
	ctx := background(t)
	adm := admin(t, b)
	codecs := map[string]record.Codec{"uncompressed": record.None, "gzip": record.Gzip, "snappy": record.Snappy, "lz4": record.LZ4, "zstd": record.Zstd}
	for name, codec := range codecs {
		topic := "t-" + name
		if _, err := adm.CreateTopic(ctx, 1, 1, map[string]*string{"compression.type": &name}, topic); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, sent := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.ZstdCompression()} {
			cl := newClient(t, kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial), kgo.ProducerBatchCompression(sent))
			for range 3 {
				r := &kgo.Record{Topic: topic, Key: []byte("k"), Value: []byte(strings.Repeat(fmt.Sprint(n), 500)),
					Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("x")}}}
				if err := cl.ProduceSync(ctx, r).FirstErr(); err != nil || r.Offset != int64(n) {
					t.Fatalf("%s: offset %d, %v", name, r.Offset, err)
				}
				n++
			}
		}
		p := call(t, b, fetchRequest(topic, 0, 0, 1<<20)).(*kmsg.FetchResponse).Topics[0].Partitions[0]
		rest := p.RecordBatches
		for len(rest) > 0 {
			batch, more, err := record.Next(rest)
			if err != nil {
				t.Fatal(err)
			}
			if got := batch.Attributes().Codec(); got != codec {
				t.Errorf("%s: a batch is stored in %v", name, got)
			}
			if err := batch.CheckCRC(); err != nil {
				t.Error(err)
			}
			rest = more
		}
		reader := newClient(t, kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		for i := 0; i < n; {
			for r := range reader.PollFetches(ctx).RecordsAll() {
				if string(r.Value) != strings.Repeat(fmt.Sprint(i), 500) || string(r.Key) != "k" || len(r.Headers) != 1 {
					t.Errorf("%s: record %d is %q", name, i, r.Value[:min(len(r.Value), 9)])
				}
				i++
			}
		}
	}

	batch := idempotentBatch(77, 0, 0, "a", "b")
	first := produce(t, b, "t-gzip", 0, append([]byte(nil), batch...))
	if again := produce(t, b, "t-gzip", 0, append([]byte(nil), batch...)); again != first {
		t.Errorf("a repeated batch is at %d, the first at %d", again, first)
	}
	damaged := append([]byte(nil), batch...)
	damaged[len(damaged)-1] ^= 1
	resp := call(t, b, produceRequest(9, -1, "t-gzip", 0, damaged)).(*kmsg.ProduceResponse)
	if code := resp.Topics[0].Partitions[0].ErrorCode; code != 2 {
		t.Errorf("a damaged batch: error %d, want CORRUPT_MESSAGE", code)
	}
	large := []byte(strings.Repeat("x", 1<<20+1000))
	cl := newClient(t, kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerBatchMaxBytes(4<<20))
	err := cl.ProduceSync(ctx, &kgo.Record{Topic: "t-gzip", Value: large}).FirstErr()
	if err == nil || !strings.Contains(err.Error(), "MESSAGE_TOO_LARGE") {
		t.Errorf("a batch that is too large as it was sent: %v", errors.Unwrap(err))
	}
}
