package broker_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
)

// lines is a log whose lines can be counted while it is written.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// count counts the lines that have all parts.
func (l *lines) count(parts ...string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
next:
	for line := range strings.Lines(l.text.String()) {
		for _, part := range parts {
			if !strings.Contains(line, part) {
				continue next
			}
		}
		n++
	}
	return n
}

func logTo(l *lines) brokertest.Option {
	return brokertest.Configure(func(c *broker.Config) { c.Logger = slog.New(slog.NewTextHandler(l, nil)) })
}

// A topic that is created while its folder finds no room exists, refuses records with
// a code that clients retry, and works as soon as there is room, without a restart.
func TestTopicCreatedOnFullDisk(t *testing.T) {
	for _, full := range []string{"new-0", "partition.metadata", ".log", "leader-epoch"} {
		t.Run(full, func(t *testing.T) {
			var log lines
			n := brokertest.StartNode(t, logTo(&log))
			ctx := background(t)
			heal := n.FailDisk("full", full)
			made, err := admin(t, n.Broker()).CreateTopic(ctx, 2, 1, nil, "new")
			if err != nil && !errors.Is(err, kerr.KafkaStorageError) {
				t.Fatalf("creation: %v", err)
			}
			created := err == nil
			cl := newClient(t, kgo.SeedBrokers(n.Seeds()...), kgo.Dialer(n.Dial), kgo.RecordPartitioner(kgo.ManualPartitioner()),
				kgo.MetadataMinAge(20*time.Millisecond))
			send := func(ctx context.Context, partition int32) error {
				return cl.ProduceSync(ctx, &kgo.Record{Topic: "new", Partition: partition, Value: []byte("v")}).FirstErr()
			}
			if created && full == "new-0" {
				if err := send(ctx, 1); err != nil {
					t.Errorf("the partition that has room: %v", err)
				}
				if log.count("level=ERROR", "offline until there is room", "partition=0") != 1 {
					t.Errorf("the log does not say once that the partition is offline:\n%s", log.text.String())
				}
			}
			heal()
			if !created {
				if made, err = admin(t, n.Broker()).CreateTopic(ctx, 2, 1, nil, "new"); err != nil {
					t.Fatalf("creation when there is room again: %v", err)
				}
			}
			for i := range int32(2) {
				if err := send(ctx, i); err != nil { // the client retries until the partition is open
					t.Errorf("partition %d: %v", i, err)
				}
			}
			if full == "new-0" && log.count("level=INFO", "online again", "partition=0") != 1 {
				t.Errorf("the log does not say once that the partition is online:\n%s", log.text.String())
			}
			n.Crash(t, 7)
			reader := newClient(t, kgo.SeedBrokers(n.Seeds()...), kgo.Dialer(n.Dial), kgo.ConsumeTopics("new"),
				kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
			values(t, ctx, reader, 2)
			topics, err := admin(t, n.Broker()).ListTopics(ctx, "new")
			if err != nil || topics["new"].ID != made.ID {
				t.Errorf("the topic has id %v, created was %v (%v)", topics["new"].ID, made.ID, err)
			}
		})
	}
}

// When the metadata log finds no room, topics are neither created nor deleted, the
// answers say why, and all works when there is room again.
func TestMetadataLogOnFullDisk(t *testing.T) {
	var log lines
	n := brokertest.StartNode(t, logTo(&log))
	ctx := background(t)
	adm := admin(t, n.Broker())
	if _, err := adm.CreateTopic(ctx, 1, 1, nil, "old"); err != nil {
		t.Fatal(err)
	}
	heal := n.FailDisk("full", "__cluster_metadata-0")
	refused := func(what string, err error, message string) {
		t.Helper()
		if !errors.Is(err, kerr.KafkaStorageError) {
			t.Errorf("%s: %v, want KAFKA_STORAGE_ERROR", what, err)
		}
		if !strings.Contains(message, "no space left") {
			t.Errorf("%s: the message %q does not say why", what, message)
		}
	}
	for range 3 {
		made, err := adm.CreateTopic(ctx, 1, 1, nil, "new")
		refused("CreateTopics", err, made.ErrMessage)
		gone, err := adm.DeleteTopic(ctx, "old")
		refused("DeleteTopics", err, gone.ErrMessage)
	}
	auto := kmsg.NewPtrMetadataRequest()
	auto.AllowAutoTopicCreation = true
	auto.Topics = []kmsg.MetadataRequestTopic{{Topic: kmsg.StringPtr("auto")}}
	cl := newClient(t, kgo.SeedBrokers(n.Seeds()...), kgo.Dialer(n.Dial))
	if resp, err := auto.RequestWith(ctx, cl); err != nil || resp.Topics[0].ErrorCode != kerr.KafkaStorageError.Code {
		t.Errorf("Metadata that creates: %v, %v", resp.Topics, err)
	}
	exhaustProducerIDs(t, ctx, cl)
	topics, err := adm.ListTopics(ctx)
	if err != nil || !topics.Has("old") || topics.Has("new") || topics.Has("auto") {
		t.Errorf("topics after all was refused: %v (%v)", topics.Names(), err)
	}
	if log.count("level=ERROR", "writes to the partition fail", "__cluster_metadata-0") != 1 {
		t.Errorf("the log does not say once that metadata can not be written:\n%s", log.text.String())
	}
	heal()
	if _, err := adm.CreateTopic(ctx, 1, 1, nil, "new"); err != nil {
		t.Errorf("CreateTopics when there is room again: %v", err)
	}
	if _, err := adm.DeleteTopic(ctx, "old"); err != nil {
		t.Errorf("DeleteTopics when there is room again: %v", err)
	}
	if log.count("level=INFO", "writes to the partition work again") != 1 {
		t.Errorf("the log does not say once that metadata can be written:\n%s", log.text.String())
	}
	idempotent := newClient(t, kgo.SeedBrokers(n.Seeds()...), kgo.Dialer(n.Dial))
	if err := idempotent.ProduceSync(ctx, &kgo.Record{Topic: "new", Value: []byte("v")}).FirstErr(); err != nil {
		t.Errorf("a new producer when there is room again: %v", err)
	}
}

// exhaustProducerIDs takes ids until none are left, and sees that this has a code that
// clients retry.
func exhaustProducerIDs(t *testing.T, ctx context.Context, cl *kgo.Client) {
	t.Helper()
	seen := map[int64]bool{}
	for range 3000 {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.ProducerID, req.ProducerEpoch = -1, -1
		resp, err := cl.Broker(1).Request(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		init := resp.(*kmsg.InitProducerIDResponse)
		if code := kerr.ErrorForCode(init.ErrorCode); code != nil {
			if !kerr.IsRetriable(code) {
				t.Errorf("no producer ids left: %v, which clients do not retry", code)
			}
			return
		}
		if seen[init.ProducerID] {
			t.Fatalf("producer id %d was given out twice", init.ProducerID)
		}
		seen[init.ProducerID] = true
	}
	t.Error("3000 producer ids without a block being written")
}
