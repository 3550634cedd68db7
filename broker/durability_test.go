package broker_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
)

// promises is what a client knows of a node whose power goes now and then.
type promises struct {
	t     *testing.T
	node  *brokertest.Node
	mode  string
	rng   *rand.Rand
	plain []string // acknowledged to "plain", in order
	txns  map[string]bool
	n     int
	lost  int // acknowledged records that power cuts took
}

const durabilityOps = 12 // between two power cuts

// TestPowerCutInEachDurability: what was acknowledged under fsync is there; under interval and os a power cut takes a suffix and
// never anything before it; a committed transaction is whole in every durability, and an aborted one is never seen. Where something
// may be gone, the leader epoch tells clients.
func TestPowerCutInEachDurability(t *testing.T) {
	for _, mode := range []string{"fsync", "interval", "os"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			const seed = 7
			p := &promises{t: t, mode: mode, rng: rand.New(rand.NewPCG(seed, 1)), txns: map[string]bool{}}
			p.node = brokertest.StartNode(t, brokertest.Configure(func(c *broker.Config) { c.Durability = mode }))
			p.topics()
			for cut := range 8 {
				p.work()
				end := int64(len(p.plain))
				p.node.Crash(t, p.rng.Uint64())
				p.check()
				p.checkEpochs(int32(cut+1), end)
			}
			p.node.Restart(t)
			p.check()
			p.checkEpochs(8, int64(len(p.plain))) // a clean stop raises none
			if mode == "fsync" && p.lost > 0 {
				t.Errorf("%d acknowledged records are lost", p.lost)
			}
			if mode == "os" && p.lost == 0 {
				t.Error("the power cuts have taken nothing: the test has not seen what it is for")
			}
			t.Logf("seed %d: %d acknowledged records lost in 8 power cuts", seed, p.lost)
		})
	}
}

func (p *promises) client(opts ...kgo.Opt) *kgo.Client {
	return newClient(p.t, append(opts, kgo.SeedBrokers(p.node.Seeds()...), kgo.Dialer(p.node.Dial), kgo.ProducerLinger(0), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
}

func (p *promises) topics() {
	p.t.Helper()
	cl := p.client()
	defer cl.Close()
	r, err := kadm.NewClient(cl).CreateTopics(background(p.t), 1, 1, nil, "plain", "left", "right")
	if err = errors.Join(err, r.Error()); err != nil {
		p.t.Fatal(err)
	}
}

// work writes records and transactions, one after the other.
func (p *promises) work() {
	p.t.Helper()
	ctx := background(p.t)
	plain := p.client()
	defer plain.Close()
	txn := p.client(kgo.TransactionalID("txn"))
	defer txn.Close()
	for range durabilityOps {
		p.n++
		if p.rng.IntN(3) > 0 {
			value := strconv.Itoa(p.n)
			if err := plain.ProduceSync(ctx, &kgo.Record{Topic: "plain", Value: []byte(value)}).FirstErr(); err != nil {
				p.t.Fatal(err)
			}
			p.plain = append(p.plain, value)
			continue
		}
		p.transact(ctx, txn)
	}
}

// transact writes two records to each of two topics, and commits or aborts.
func (p *promises) transact(ctx context.Context, cl *kgo.Client) {
	p.t.Helper()
	if err := cl.BeginTransaction(); err != nil {
		p.t.Fatal(err)
	}
	var records []*kgo.Record
	for i := range 4 {
		records = append(records, &kgo.Record{Topic: []string{"left", "right"}[i%2], Value: fmt.Appendf(nil, "%d/%d", p.n, i)})
	}
	if err := cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
		p.t.Fatal(err)
	}
	commit := p.rng.IntN(3) > 0
	if err := cl.EndTransaction(ctx, kgo.TransactionEndTry(commit)); err != nil {
		p.t.Fatal(err)
	}
	p.txns[strconv.Itoa(p.n)] = commit
}

// check reads what is there.
func (p *promises) check() {
	p.t.Helper()
	left := p.read("plain")
	if len(left) > len(p.plain) || !slices.Equal(left, p.plain[:len(left)]) {
		p.t.Fatalf("read %v\nacknowledged were %v", left, p.plain)
	}
	p.lost += len(p.plain) - len(left)
	p.plain = left
	seen := map[string]int{}
	for _, value := range append(p.read("left"), p.read("right")...) {
		id, _, _ := strings.Cut(value, "/")
		seen[id]++
	}
	for id, committed := range p.txns {
		if want := map[bool]int{true: 4}[committed]; seen[id] != want {
			p.t.Errorf("transaction %s, committed: %v, shows %d of 4 records", id, committed, seen[id])
		}
	}
}

// read reads a topic to its last stable offset, which must be its end soon: all transactions are over.
func (p *promises) read(topic string) (out []string) {
	p.t.Helper()
	ctx := background(p.t)
	cl := p.client(kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, topic)
	if err != nil {
		p.t.Fatal(err)
	}
	end, _ := ends.Lookup(topic, 0)
	for next := int64(0); next < end.Offset; {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			p.t.Fatalf("%s from %d to %d: %v", topic, next, end.Offset, err)
		}
		for r := range fetches.RecordsAll() {
			if !r.Attrs.IsControl() {
				out = append(out, string(r.Value))
			}
			next = r.Offset + 1
		}
	}
	return out
}

// checkEpochs: after so many starts that followed no clean stop the partitions of a relaxed durability have that leader epoch, and a
// client that asks with the epoch before learns that it ended where the records of today do.
func (p *promises) checkEpochs(starts int32, acknowledged int64) {
	p.t.Helper()
	req := kmsg.NewPtrOffsetForLeaderEpochRequest()
	req.ReplicaID = -1
	rt := kmsg.NewOffsetForLeaderEpochRequestTopic()
	rt.Topic = "plain"
	rp := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
	rp.CurrentLeaderEpoch, rp.LeaderEpoch = -1, 1000
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	cl := p.client()
	defer cl.Close()
	latest := func(epoch int32) kmsg.OffsetForLeaderEpochResponseTopicPartition {
		req.Topics[0].Partitions[0].LeaderEpoch = epoch
		resp, err := req.RequestWith(background(p.t), cl)
		if err != nil {
			p.t.Fatal(err)
		}
		return resp.Topics[0].Partitions[0]
	}
	want := starts
	if p.mode == "fsync" {
		want = 0
	}
	now := latest(want)
	if now.ErrorCode != 0 || now.LeaderEpoch != want || now.EndOffset != int64(len(p.plain)) {
		p.t.Errorf("after %d unclean starts epoch %d is answered with %+v, want the end %d", starts, want, now, len(p.plain))
	}
	if want == 0 {
		return
	}
	if before := latest(want - 1); before.EndOffset > int64(len(p.plain)) || before.EndOffset > acknowledged {
		p.t.Errorf("epoch %d ended at %d, records there are %d", want-1, before.EndOffset, len(p.plain))
	}
}

// A change to fsync raises the leader epochs of the topics that it is about, and of no other; a change of something else raises none.
func TestStricterDurabilityRaisesTheEpoch(t *testing.T) {
	b := brokertest.Start(t, brokertest.OnTCP(), brokertest.Configure(func(c *broker.Config) { c.Durability = "os" }))
	createTopic(t, b, "plain", 2)
	createTopic(t, b, "own", 1)
	mustAlter(t, b, topicKind, "own", "=millrace.durability interval")
	epochs := func() string {
		topics, err := admin(t, b).ListTopics(background(t), "plain", "own") // a new client: one remembers what it has listed
		if err != nil {
			t.Fatal(err)
		}
		plain := topics["plain"].Partitions
		return fmt.Sprint(plain[0].LeaderEpoch, plain[1].LeaderEpoch, topics["own"].Partitions[0].LeaderEpoch)
	}
	for _, step := range []struct {
		kind         kmsg.ConfigResourceType
		name, change string
		want         string
	}{
		{topicKind, "plain", "=retention.ms 5000000", "0 0 0"},
		{topicKind, "plain", "=millrace.durability interval", "0 0 0"},
		{topicKind, "plain", "=millrace.durability fsync", "1 1 0"},
		{topicKind, "plain", "=millrace.durability fsync", "1 1 0"},
		{topicKind, "plain", "!millrace.durability", "1 1 0"}, // relaxed again
		{brokerKind, "", "=millrace.durability fsync", "2 2 0"},
		{topicKind, "own", "!millrace.durability", "2 2 1"},
	} {
		mustAlter(t, b, step.kind, step.name, step.change)
		if got := epochs(); got != step.want {
			t.Errorf("after %s of %q the epochs are %s, want %s", step.change, step.name, got, step.want)
		}
	}
	if code, message := alter(t, b, altering(topicKind, "own", "=retention.ms 1")); code != 0 {
		t.Error(code, message)
	}
	produce(t, b, "plain", 0, idempotentBatch(5, 0, 0, "still served")) // under the new epoch
}
