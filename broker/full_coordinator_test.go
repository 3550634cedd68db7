package broker_test

import (
	"context"
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/brokertest"
)

// A coordinator whose log finds no room refuses what must be written, with a code that clients retry, and answers all that it
// can from memory: it knows what it knew, and does not read its log again. When there is room it goes on by itself.
func TestCoordinatorLogsOnFullDisk(t *testing.T) {
	var log lines
	n := brokertest.StartNode(t, logTo(&log))
	ctx := background(t)
	adm := admin(t, n.Broker())
	made, err := adm.CreateTopic(ctx, 1, 1, nil, "t")
	if err != nil {
		t.Fatal(err)
	}
	cl := newClient(t, kgo.SeedBrokers(n.Seeds()...), kgo.Dialer(n.Dial))
	commit := func(offset int64) error { return commitOnce(t, ctx, cl, made.ID, offset) }
	if err := commit(7); err != nil {
		t.Fatal(err)
	}
	first := initTransactions(t, ctx, cl)
	if first.ErrorCode != 0 {
		t.Fatal(kerr.ErrorForCode(first.ErrorCode))
	}
	heal := []func(){n.FailDisk("full", "__transaction_state"), n.FailDisk("full", "__consumer_offsets")}
	for range 20 {
		if err := commit(9); !errors.Is(err, kerr.CoordinatorNotAvailable) {
			t.Errorf("OffsetCommit: %v, want COORDINATOR_NOT_AVAILABLE", err)
		}
		if r := initTransactions(t, ctx, cl); r.ErrorCode != kerr.CoordinatorNotAvailable.Code {
			t.Errorf("InitProducerId: %v, want COORDINATOR_NOT_AVAILABLE", kerr.ErrorForCode(r.ErrorCode))
		}
		got, err := adm.FetchOffsets(ctx, "g")
		if o, ok := got.Lookup("t", 0); err != nil || !ok || o.At != 7 {
			t.Errorf("OffsetFetch: %v, %v, want 7", o.At, err)
		}
		described, err := adm.DescribeTransactions(ctx, "x")
		if err != nil || described["x"].Err != nil || described["x"].ProducerEpoch != first.ProducerEpoch {
			t.Errorf("DescribeTransactions: %+v, %v", described["x"], err)
		}
	}
	for _, topic := range []string{"__transaction_state", "__consumer_offsets"} {
		if log.count("level=ERROR", "writes to the partition fail", topic) == 0 {
			t.Errorf("the log does not say that %s can not be written:\n%s", topic, log.text.String())
		}
	}
	if c := log.count("lost its log"); c > 0 {
		t.Errorf("a coordinator has read its log again %d times:\n%s", c, log.text.String())
	}
	for _, h := range heal {
		h()
	}
	if err := commit(11); err != nil {
		t.Errorf("OffsetCommit when there is room again: %v", err)
	}
	if r := initTransactions(t, ctx, cl); r.ErrorCode != 0 || r.ProducerEpoch != first.ProducerEpoch+1 {
		t.Errorf("InitProducerId when there is room again: epoch %d, %v", r.ProducerEpoch, kerr.ErrorForCode(r.ErrorCode))
	}
	n.Crash(t, 3)
	got, err := admin(t, n.Broker()).FetchOffsets(ctx, "g")
	if o, ok := got.Lookup("t", 0); err != nil || !ok || o.At != 11 {
		t.Errorf("the offset after a power cut: %v, %v, want 11", o.At, err)
	}
}

// initTransactions asks for the producer id of transactional id x, past a client that would ask again.
func initTransactions(t *testing.T, ctx context.Context, cl *kgo.Client) *kmsg.InitProducerIDResponse {
	t.Helper()
	id := "x"
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = &id, 60000, -1, -1
	resp, err := cl.Broker(1).Request(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	return resp.(*kmsg.InitProducerIDResponse)
}

// commitOnce commits an offset of t-0 for group g, past a client that would ask again.
func commitOnce(t *testing.T, ctx context.Context, cl *kgo.Client, topic [16]byte, offset int64) error {
	t.Helper()
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation = "g", -1
	rt := kmsg.NewOffsetCommitRequestTopic()
	rt.Topic, rt.TopicID = "t", topic
	rp := kmsg.NewOffsetCommitRequestTopicPartition()
	rp.Offset = offset
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := cl.Broker(1).Request(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	return kerr.ErrorForCode(resp.(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode)
}
