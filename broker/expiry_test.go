package broker_test

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/core/clock"
	"github.com/millrace/millrace/core/record"
)

// aged is a broker whose clock a test moves.
type aged struct {
	*testing.T
	b   *broker.Broker
	clk *clock.Manual
	cl  *kgo.Client
}

func startAged(t *testing.T) *aged {
	clk := clock.NewManual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	b := brokertest.Start(t, brokertest.WithClock(clk), brokertest.Configure(func(c *broker.Config) { c.TransactionMaxTimeout = 20 * 24 * time.Hour }))
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return &aged{T: t, b: b, clk: clk, cl: cl}
}

// await repeats f until it is true.
func (a *aged) await(what string, f func() bool) {
	a.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(30 * time.Second); !f(); <-tick.C {
		if time.Now().After(end) {
			a.Fatalf("it does not come to %s", what)
		}
	}
}

// pass lets time go by, and two looks at the producers with it: the first may have begun before.
func (a *aged) pass(d time.Duration) {
	a.Helper()
	const every = 10 * time.Minute
	for _, step := range []time.Duration{d - every, every} {
		before := a.b.Cleaning().ProducerRounds
		a.clk.Advance(step)
		a.await("a round over the producers", func() bool { return a.b.Cleaning().ProducerRounds > before })
	}
}

func ask1[R kmsg.Response](a *aged, req kmsg.Request) R {
	a.Helper()
	resp, err := a.cl.Request(a.Context(), req)
	if err != nil {
		a.Fatalf("%s: %v", kmsg.NameForKey(req.Key()), err)
	}
	return resp.(R)
}

// init gives a producer id, of a transactional id unless that is empty.
func (a *aged) init(id string) *kmsg.InitProducerIDResponse {
	a.Helper()
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionTimeoutMillis = int32((20 * 24 * time.Hour).Milliseconds())
	if id != "" {
		req.TransactionalID = &id
	}
	return ask1[*kmsg.InitProducerIDResponse](a, req)
}

func (a *aged) create(topic string) {
	a.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = topic, 1, 1
	v := "-1"
	c := kmsg.NewCreateTopicsRequestTopicConfig()
	c.Name, c.Value = "retention.ms", &v
	rt.Configs = append(rt.Configs, c)
	req.Topics = append(req.Topics, rt)
	if code := ask1[*kmsg.CreateTopicsResponse](a, req).Topics[0].ErrorCode; code != 0 {
		a.Fatalf("create %s: %v", topic, kerr.ErrorForCode(code))
	}
}

// produce sends one record with a sequence number; txnID is "" outside of a transaction.
func (a *aged) produce(topic, txnID string, pid int64, epoch int16, seq int32) (offset int64, code int16) {
	a.Helper()
	var b record.Builder
	b.Reset(record.BuilderOptions{Producer: &record.Producer{ID: pid, Epoch: epoch, Sequence: seq}, Transactional: txnID != ""})
	b.Append(a.clk.Now().UnixMilli(), []byte("k"), []byte("v"), nil)
	raw, err := b.Batch()
	if err != nil {
		a.Fatal(err)
	}
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = 12, -1, 1000
	if txnID != "" {
		req.TransactionID = &txnID
	}
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Records = raw
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	p := ask1[*kmsg.ProduceResponse](a, kgoPinned{req}).Topics[0].Partitions[0]
	return p.BaseOffset, p.ErrorCode
}

// kgoPinned keeps a request at its version: by topic name, where the client would take an id.
type kgoPinned struct{ *kmsg.ProduceRequest }

func (kgoPinned) MaxVersion() int16 { return 12 }

// known is what DescribeProducers says of one producer; nil if it is forgotten.
func (a *aged) known(topic string, pid int64) *kmsg.DescribeProducersResponseTopicPartitionActiveProducer {
	a.Helper()
	req := kmsg.NewPtrDescribeProducersRequest()
	rt := kmsg.NewDescribeProducersRequestTopic()
	rt.Topic, rt.Partitions = topic, []int32{0}
	req.Topics = append(req.Topics, rt)
	for _, p := range ask1[*kmsg.DescribeProducersResponse](a, req).Topics[0].Partitions[0].ActiveProducers {
		if p.ProducerID == pid {
			return &p
		}
	}
	return nil
}

// A quiet producer is forgotten after a day, not before, and what counts is its last record or marker by the broker's clock
// (KIP-854; KAFKA-9144, case T27). One with an open transaction is never forgotten.
func TestProducersExpire(t *testing.T) {
	t.Parallel()
	a := startAged(t)
	a.create("t")
	plain, open, done := a.init("").ProducerID, a.init("open"), a.init("done")
	for _, p := range []struct {
		id  string
		pid int64
	}{{"", plain}, {"open", open.ProducerID}, {"done", done.ProducerID}} {
		if _, code := a.produce("t", p.id, p.pid, 0, 0); code != 0 {
			t.Fatalf("produce: %v", kerr.ErrorForCode(code))
		}
	}
	a.pass(23 * time.Hour)
	if offset, code := a.produce("t", "", plain, 0, 0); code != 0 || offset != 0 {
		t.Fatalf("a repeat after 23 hours is stored at offset %d, code %d", offset, code)
	}
	end := kmsg.NewPtrEndTxnRequest()
	end.TransactionalID, end.ProducerID, end.ProducerEpoch, end.Commit = "done", done.ProducerID, done.ProducerEpoch, true
	if code := ask1[*kmsg.EndTxnResponse](a, end).ErrorCode; code != 0 {
		t.Fatalf("commit: %v", kerr.ErrorForCode(code))
	}
	a.pass(2 * time.Hour)
	if a.known("t", plain) != nil {
		t.Error("a producer that was quiet for 25 hours is remembered")
	}
	if p := a.known("t", done.ProducerID); p == nil {
		t.Error("a producer is forgotten 2 hours after its marker (KAFKA-9144)")
	}
	a.pass(30 * time.Hour)
	if a.known("t", done.ProducerID) != nil || a.b.Cleaning().ExpiredProducers < 2 {
		t.Errorf("producers outlive their markers by a day; %d were forgotten", a.b.Cleaning().ExpiredProducers)
	}
	if p := a.known("t", open.ProducerID); p == nil || p.CurrentTxnStartOffset < 0 {
		t.Errorf("a producer with an open transaction is forgotten: %+v", p)
	}
}

// Ids expire in sweeps, without an error in the log, and can be used again (KAFKA-14880, KAFKA-13099; case T16).
// MILLRACE_SOAK makes it a hundred thousand.
func TestTransactionalIDsExpire(t *testing.T) {
	t.Parallel()
	a := startAged(t)
	ids := 2000
	if os.Getenv("MILLRACE_SOAK") != "" {
		ids = 100_000
	}
	first := make([]int64, ids)
	each := func(f func(i int, r *kmsg.InitProducerIDResponse)) {
		t.Helper()
		var wg sync.WaitGroup
		for w := range 16 {
			wg.Go(func() {
				for i := w; i < ids; i += 16 {
					f(i, a.init(fmt.Sprint("id-", i)))
				}
			})
		}
		wg.Wait()
	}
	each(func(i int, r *kmsg.InitProducerIDResponse) {
		if first[i] = r.ProducerID; r.ErrorCode != 0 {
			t.Errorf("id-%d: %v", i, kerr.ErrorForCode(r.ErrorCode))
		}
	})
	listed := func() int {
		return len(ask1[*kmsg.ListTransactionsResponse](a, kmsg.NewPtrListTransactionsRequest()).TransactionStates)
	}
	a.clk.Jump(6 * 24 * time.Hour)
	if n := listed(); n != ids {
		t.Fatalf("after six days %d ids are listed, of %d", n, ids)
	}
	a.init("id-0") // used again, so it stays
	a.clk.Jump(26 * time.Hour)
	a.await("one id", func() bool { return listed() == 1 })
	add := kmsg.NewPtrAddPartitionsToTxnRequest()
	add.Version, add.TransactionalID, add.ProducerID = 3, "id-1", first[1]
	rt := kmsg.NewAddPartitionsToTxnRequestTopic()
	a.create("t")
	rt.Topic, rt.Partitions = "t", []int32{0}
	add.Topics = append(add.Topics, rt)
	if code := ask1[*kmsg.AddPartitionsToTxnResponse](a, add).Topics[0].Partitions[0].ErrorCode; code != kerr.InvalidProducerIDMapping.Code {
		t.Errorf("the old producer of an expired id is told %v", kerr.ErrorForCode(code))
	}
	each(func(i int, r *kmsg.InitProducerIDResponse) {
		if r.ErrorCode != 0 || i > 0 && (r.ProducerID == first[i] || r.ProducerEpoch != 0) {
			t.Errorf("id-%d comes back with producer %d epoch %d, code %d; it had %d", i, r.ProducerID, r.ProducerEpoch, r.ErrorCode, first[i])
		}
	})
}
