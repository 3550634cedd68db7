package broker_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
)

// offsetAt asks ListOffsets for one time of t-0.
func offsetAt(t *testing.T, b *broker.Broker, version int16, ts int64, isolation int8) kmsg.ListOffsetsResponseTopicPartition {
	t.Helper()
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version, req.ReplicaID, req.IsolationLevel = version, -1, isolation
	rt := kmsg.NewListOffsetsRequestTopic()
	rt.Topic = "t"
	rp := kmsg.NewListOffsetsRequestTopicPartition()
	rp.CurrentLeaderEpoch, rp.Timestamp = -1, ts
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return call(t, b, req).(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
}

// TestOffsetsOfEveryKind: what ListOffsets answers for each special time, as a broker that keeps all segments on its own disk: the earliest
// local offset is the earliest, and nothing is in another tier or waits to go there.
func TestOffsetsOfEveryKind(t *testing.T) {
	b := brokertest.Start(t, brokertest.OnTCP())
	ctx := background(t)
	createTopic(t, b, "t", 1)
	base := time.Now().Add(-time.Hour).Truncate(time.Second)
	at := func(second int) int64 { return base.Add(time.Duration(second) * time.Second).UnixMilli() }
	cl := newClient(t, kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial))
	for _, second := range []int{1, 2, 9, 4, 9, 5} { // the greatest is twice there: offsets 2 and 4
		r := &kgo.Record{Topic: "t", Timestamp: base.Add(time.Duration(second) * time.Second)}
		if err := cl.ProduceSync(ctx, r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := admin(t, b).DeleteRecords(ctx, deleteTo("t", 1)); err != nil {
		t.Fatal(err)
	}
	open := newClient(t, kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial), kgo.TransactionalID("x"))
	if err := open.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := open.ProduceSync(ctx, &kgo.Record{Topic: "t", Timestamp: base.Add(20 * time.Second)}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	const committed = 1
	for _, c := range []struct {
		what      string
		version   int16
		ts        int64
		isolation int8
		code      int16
		offset    int64
		timestamp int64
	}{
		{"latest", 11, -1, 0, 0, 7, -1},
		{"latest, before the open transaction", 11, -1, committed, 0, 6, -1},
		{"earliest", 11, -2, 0, 0, 1, -1},
		{"greatest time", 11, -3, 0, 0, 6, at(20)},
		{"greatest time, before the open transaction", 11, -3, committed, 0, 2, at(9)},
		{"earliest local", 11, -4, 0, 0, 1, -1},
		{"latest in another tier", 11, -5, 0, 0, -1, -1},
		{"earliest that waits for another tier", 11, -6, 0, 0, -1, -1},
		{"greatest time, before it was known", 6, -3, 0, 35, -1, -1},
		{"earliest local, before it was known", 7, -4, 0, 35, -1, -1},
		{"another tier, before it was known", 8, -5, 0, 35, -1, -1},
		{"waiting for another tier, before it was known", 10, -6, 0, 35, -1, -1},
		{"no such time", 11, -7, 0, 35, -1, -1},
		{"the first at or after a time", 11, at(3), 0, 0, 2, at(9)},
		{"a time below the log start", 11, 0, 0, 0, 1, at(2)},
		{"a time that only an open transaction has", 11, at(10), committed, 0, -1, -1},
		{"a time behind all", 11, at(21), 0, 0, -1, -1},
	} {
		got := offsetAt(t, b, c.version, c.ts, c.isolation)
		if got.ErrorCode != c.code || got.Offset != c.offset || got.Timestamp != c.timestamp {
			t.Errorf("%s: error %d, offset %d, time %d, want %d, %d, %d", c.what, got.ErrorCode, got.Offset, got.Timestamp, c.code, c.offset, c.timestamp)
		}
	}
	if err := open.EndTransaction(ctx, kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
}

// deleteTo are the offsets of DeleteRecords for partition 0 of a topic.
func deleteTo(topic string, offset int64) kadm.Offsets {
	o := kadm.Offsets{}
	o.AddOffset(topic, 0, offset, -1)
	return o
}
