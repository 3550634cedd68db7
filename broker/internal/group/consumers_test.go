package group_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
)

// patience ends a test that hangs; it measures nothing.
const patience = time.Minute

// tally counts how often each value was seen.
type tally struct {
	mu    sync.Mutex
	seen  map[string]int
	added chan struct{} // closed and replaced with every change
}

func newTally() *tally { return &tally{seen: map[string]int{}, added: make(chan struct{})} }

func (c *tally) add(values []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range values {
		c.seen[v]++
	}
	close(c.added)
	c.added = make(chan struct{})
}

// await waits for n different values.
func (c *tally) await(t *testing.T, ctx context.Context, n int) {
	t.Helper()
	for {
		c.mu.Lock()
		have, added := len(c.seen), c.added
		c.mu.Unlock()
		if have >= n {
			return
		}
		select {
		case <-added:
		case <-ctx.Done():
			t.Fatalf("only %d of %d values arrived", have, n)
		}
	}
}

// exactly fails the test unless the values 0 to n-1 were seen once each.
func (c *tally) exactly(t *testing.T, n int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	lost, doubled := 0, 0
	for i := range n {
		switch c.seen[strconv.Itoa(i)] {
		case 0:
			lost++
		case 1:
		default:
			doubled++
		}
	}
	if lost+doubled > 0 || len(c.seen) != n {
		t.Errorf("%d values: %d lost, %d doubled, %d different", n, lost, doubled, len(c.seen))
	}
}

func fetched(t *testing.T, f kgo.Fetches) (values []string) {
	f.EachError(func(topic string, p int32, err error) {
		if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, kgo.ErrClientClosed) {
			t.Errorf("fetch of %s-%d: %v", topic, p, err)
		}
	})
	f.EachRecord(func(r *kgo.Record) { values = append(values, string(r.Value)) })
	return values
}

// feed writes numbers, each once.
type feed struct {
	cl   *kgo.Client
	next int
}

// some writes the next n numbers into the topic "in".
func (f *feed) some(t *testing.T, n int) {
	t.Helper()
	var records []*kgo.Record
	for range n {
		v := []byte(strconv.Itoa(f.next))
		f.next++
		records = append(records, &kgo.Record{Topic: "in", Value: v, Key: v})
	}
	if err := f.cl.ProduceSync(context.Background(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// until writes numbers until done.
func (f *feed) until(t *testing.T, ctx context.Context, done func() bool) {
	t.Helper()
	for !done() {
		if ctx.Err() != nil {
			t.Fatalf("nothing happened while %d numbers were written", f.next)
		}
		f.some(t, 50)
	}
}

// consume runs a member that commits what it has seen before it lets a rebalance
// happen, until ctx is done; then it leaves. busy says whether it has had records
// several times.
func consume(t *testing.T, ctx context.Context, b cluster, c *tally, wg *sync.WaitGroup, opts ...kgo.Opt) (busy func() bool) {
	var had atomic.Int64
	cl := client(t, b, append([]kgo.Opt{
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100 * time.Millisecond),
	}, opts...)...)
	wg.Go(func() {
		defer cl.CloseAllowingRebalance()
		for ctx.Err() == nil {
			values := fetched(t, cl.PollRecords(ctx, 50))
			if len(values) > 0 {
				if err := cl.CommitUncommittedOffsets(context.Background()); err != nil {
					t.Errorf("commit: %v", err)
				}
				c.add(values)
				had.Add(1)
			}
			cl.AllowRebalance()
		}
		if err := cl.LeaveGroupContext(context.Background()); err != nil {
			t.Errorf("leave: %v", err)
		}
	})
	return func() bool { return had.Load() > 3 }
}

// TestConsumersShareEveryRecordOnce: members come and go while records flow; every
// record is consumed once, and all is committed.
func TestConsumersShareEveryRecordOnce(t *testing.T) {
	for name, balancer := range map[string]kgo.GroupBalancer{
		"range": kgo.RangeBalancer(), "sticky": kgo.StickyBalancer(), "cooperative": kgo.CooperativeStickyBalancer(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := brokertest.Start(t)
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			cl := client(t, b)
			createTopic(t, cl, "in", 6)
			opts := []kgo.Opt{kgo.ConsumerGroup("g"), kgo.ConsumeTopics("in"), kgo.Balancers(balancer), kgo.HeartbeatInterval(50 * time.Millisecond)}
			var wg sync.WaitGroup
			seen := newTally()
			first, stopFirst := context.WithCancel(ctx)
			rest, stopRest := context.WithCancel(ctx)
			defer stopRest()
			in := &feed{cl: cl}
			in.until(t, ctx, consume(t, first, b, seen, &wg, opts...))
			in.until(t, ctx, consume(t, rest, b, seen, &wg, opts...))
			in.until(t, ctx, consume(t, rest, b, seen, &wg, opts...))
			stopFirst()
			in.until(t, ctx, consume(t, rest, b, seen, &wg, opts...))
			seen.await(t, ctx, in.next)
			stopRest()
			wg.Wait()
			seen.exactly(t, in.next)
			if sum := committedSum(t, cl, "g", "in", 6); sum != int64(in.next) {
				t.Errorf("offsets of %d records are committed, want %d", sum, in.next)
			}
		})
	}
}

// committedSum adds up a group's committed offsets.
func committedSum(t *testing.T, cl *kgo.Client, group, topic string, partitions int32) (sum int64) {
	t.Helper()
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = group
	asked := kmsg.NewOffsetFetchRequestGroupTopic()
	asked.Topic = topic
	for i := range partitions {
		asked.Partitions = append(asked.Partitions, i)
	}
	g.Topics = append(g.Topics, asked)
	r := kmsg.NewPtrOffsetFetchRequest()
	r.Groups, r.RequireStable = append(r.Groups, g), true
	resp := ask[*kmsg.OffsetFetchResponse](t, cl, 8, r)
	for _, p := range resp.Groups[0].Topics[0].Partitions {
		if p.ErrorCode != 0 || p.Offset < 0 {
			t.Errorf("partition %d: offset %d, code %d", p.Partition, p.Offset, p.ErrorCode)
			continue
		}
		sum += p.Offset
	}
	return sum
}

// TestStaticMemberRestarts: a static member goes and comes back; the other notices
// nothing, the generation stays.
func TestStaticMemberRestarts(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	b := brokertest.Start(t)
	cl := client(t, b)
	createTopic(t, cl, "in", 4)
	var mu sync.Mutex
	revoked := 0
	count := func(context.Context, *kgo.Client, map[string][]int32) { mu.Lock(); revoked++; mu.Unlock() }
	member := func(id string) *kgo.Client {
		return client(t, b, kgo.ConsumerGroup("g"), kgo.ConsumeTopics("in"), kgo.InstanceID(id), kgo.Balancers(kgo.RangeBalancer()),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.HeartbeatInterval(50*time.Millisecond), kgo.SessionTimeout(20*time.Second),
			kgo.FetchMaxWait(100*time.Millisecond), kgo.OnPartitionsRevoked(count), kgo.OnPartitionsLost(count))
	}
	one, two := member("one"), member("two")
	in := &feed{cl: cl}
	// round writes some records and lets the members see them all.
	round := func(members ...*kgo.Client) {
		t.Helper()
		in.some(t, 100)
		seen := newTally()
		round, stop := context.WithCancel(ctx)
		var wg sync.WaitGroup
		for _, m := range members {
			wg.Go(func() {
				for round.Err() == nil {
					seen.add(fetched(t, m.PollFetches(round)))
				}
			})
		}
		seen.await(t, ctx, 100)
		stop()
		wg.Wait()
		for _, m := range members {
			if err := m.CommitUncommittedOffsets(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	round(one, two)
	for { // the second member's first rebalance may come late
		_, a := one.GroupMetadata()
		_, b := two.GroupMetadata()
		if a == b && a >= 0 && len(owned(one)) == 2 && len(owned(two)) == 2 {
			break
		}
		round(one, two)
	}
	_, generation := two.GroupMetadata()
	had := fmt.Sprint(owned(one))
	mu.Lock()
	revoked = 0
	mu.Unlock()

	one.Close()
	one = member("one")
	round(one, two)

	if _, now := two.GroupMetadata(); now != generation {
		t.Errorf("generation %d, was %d: there was a rebalance", now, generation)
	}
	if now := fmt.Sprint(owned(one)); now != had {
		t.Errorf("the restarted member has %s, had %s", now, had)
	}
	mu.Lock()
	if revoked > 1 { // the closed client's own
		t.Errorf("partitions were taken away %d times", revoked)
	}
	mu.Unlock()
}

// owned are the partitions that a member consumes.
func owned(cl *kgo.Client) map[int32]bool {
	out := map[int32]bool{}
	for p := range cl.UncommittedOffsets()["in"] {
		out[p] = true
	}
	for p := range cl.CommittedOffsets()["in"] {
		out[p] = true
	}
	return out
}

// TestBrokerRestarts: members, offsets and those of an open transaction are there
// again; who was replaced before stays fenced.
func TestBrokerRestarts(t *testing.T) {
	dir := t.TempDir()
	b := startIn(t, dir, "127.0.0.1:0")
	addr := b.Addr().String()
	cl := client(t, tcp(addr))
	createTopic(t, cl, "in", 2)

	join := kmsg.NewPtrJoinGroupRequest()
	join.Group, join.SessionTimeoutMillis, join.RebalanceTimeoutMillis, join.ProtocolType = "g", 60_000, 60_000, "consumer"
	join.InstanceID = kmsg.StringPtr("one")
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte("m")}}
	first := ask[*kmsg.JoinGroupResponse](t, cl, 9, join)
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Group, sync.Generation, sync.MemberID = "g", first.Generation, first.MemberID
	sync.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: first.MemberID, MemberAssignment: []byte("work")}}
	if r := ask[*kmsg.SyncGroupResponse](t, cl, 5, sync); r.ErrorCode != 0 {
		t.Fatalf("sync: %d", r.ErrorCode)
	}
	second := ask[*kmsg.JoinGroupResponse](t, cl, 9, join)
	if second.ErrorCode != 0 || second.Generation != first.Generation || !second.SkipAssignment {
		t.Fatalf("take-over: %+v", second)
	}
	commit := kmsg.NewPtrOffsetCommitRequest()
	commit.Group, commit.Generation, commit.MemberID, commit.InstanceID = "g", second.Generation, second.MemberID, join.InstanceID
	commit.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "in", Partitions: []kmsg.OffsetCommitRequestTopicPartition{
		{Partition: 0, Offset: 5, LeaderEpoch: -1}, {Partition: 1, Offset: 6, LeaderEpoch: -1},
	}}}
	if r := ask[*kmsg.OffsetCommitResponse](t, cl, 8, commit); r.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Fatalf("commit: %+v", r)
	}
	openTransaction(t, cl, second)

	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = startIn(t, dir, addr)
	cl = client(t, tcp(addr))
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()
	beat := func(id string) int16 {
		r := kmsg.NewPtrHeartbeatRequest()
		r.Group, r.Generation, r.MemberID, r.InstanceID = "g", second.Generation, id, join.InstanceID
		return ask[*kmsg.HeartbeatResponse](t, cl, 4, r).ErrorCode
	}
	sync.MemberID = second.MemberID
	var again *kmsg.SyncGroupResponse
	for range 1000 { // REBALANCE_IN_PROGRESS while the coordinator loads
		if again = ask[*kmsg.SyncGroupResponse](t, cl, 5, sync); again.ErrorCode != kerr.RebalanceInProgress.Code {
			break
		}
	}
	if again.ErrorCode != 0 || string(again.MemberAssignment) != "work" {
		t.Errorf("sync after the restart: %+v", again)
	}
	if code := beat(second.MemberID); code != 0 {
		t.Errorf("heartbeat after the restart: %v", kerr.ErrorForCode(code))
	}
	if code := beat(first.MemberID); code != kerr.FencedInstanceID.Code {
		t.Errorf("heartbeat of the replaced member: %v", kerr.ErrorForCode(code))
	}
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = "g"
	fetch := kmsg.NewPtrOffsetFetchRequest()
	fetch.Groups, fetch.RequireStable = append(fetch.Groups, g), true
	r := ask[*kmsg.OffsetFetchResponse](t, cl, 8, fetch)
	got := ""
	for _, p := range r.Groups[0].Topics[0].Partitions {
		got += fmt.Sprintf("%d=%d/%d ", p.Partition, p.Offset, p.ErrorCode)
	}
	if want := "0=5/0 1=-1/88 "; got != want {
		t.Errorf("offsets after the restart: %s, want %s", got, want)
	}
}

// openTransaction stages an offset of partition 1 and leaves the transaction open.
func openTransaction(t *testing.T, cl *kgo.Client, member *kmsg.JoinGroupResponse) {
	t.Helper()
	init := kmsg.NewPtrInitProducerIDRequest()
	init.TransactionalID, init.TransactionTimeoutMillis = kmsg.StringPtr("tx"), 60_000
	init.ProducerID, init.ProducerEpoch = -1, -1
	var pid *kmsg.InitProducerIDResponse
	for range 1000 { // COORDINATOR_LOAD_IN_PROGRESS at first
		if pid = ask[*kmsg.InitProducerIDResponse](t, cl, 4, init); pid.ErrorCode == 0 {
			break
		}
	}
	txn := kmsg.NewPtrTxnOffsetCommitRequest()
	txn.TransactionalID, txn.Group, txn.ProducerID, txn.ProducerEpoch = "tx", "g", pid.ProducerID, pid.ProducerEpoch
	txn.Generation, txn.MemberID, txn.InstanceID = member.Generation, member.MemberID, kmsg.StringPtr("one")
	txn.Topics = []kmsg.TxnOffsetCommitRequestTopic{{Topic: "in", Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{{Partition: 1, Offset: 7, LeaderEpoch: -1}}}}
	// Version 4 has to be told of the group first, version 5 does it itself.
	if r := ask[*kmsg.TxnOffsetCommitResponse](t, cl, 4, txn); r.Topics[0].Partitions[0].ErrorCode != kerr.TransactionAbortable.Code {
		t.Errorf("TxnOffsetCommit version 4 before AddOffsetsToTxn: %d", r.Topics[0].Partitions[0].ErrorCode)
	}
	if r := ask[*kmsg.TxnOffsetCommitResponse](t, cl, 3, txn); r.Topics[0].Partitions[0].ErrorCode != kerr.InvalidTxnState.Code {
		t.Errorf("TxnOffsetCommit version 3 before AddOffsetsToTxn: %d", r.Topics[0].Partitions[0].ErrorCode)
	}
	if r := ask[*kmsg.TxnOffsetCommitResponse](t, cl, 5, txn); r.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Errorf("TxnOffsetCommit version 5: %d", r.Topics[0].Partitions[0].ErrorCode)
	}
}

func startIn(t *testing.T, dir, listen string) *broker.Broker {
	t.Helper()
	b, err := broker.Start(context.Background(), broker.Config{
		Dir: dir, Listen: listen, Logger: slog.New(slog.DiscardHandler), GroupInitialRebalanceDelay: time.Millisecond, GroupMinSessionTimeout: 10 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestTransactionsMoveOffsetsWithOutputs: sessions consume, produce and commit in
// transactions while members come, go and give up; the committed output has
// every record once, and the group's offsets are at the end.
func TestTransactionsMoveOffsetsWithOutputs(t *testing.T) {
	b := brokertest.Start(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cl := client(t, b)
	createTopic(t, cl, "in", 4)
	createTopic(t, cl, "out", 4)

	seen := newTally()
	reader := client(t, b, kgo.ConsumeTopics("out"), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100*time.Millisecond))
	reading, stopReading := context.WithCancel(ctx)
	var wg, reads sync.WaitGroup
	reads.Go(func() {
		for reading.Err() == nil {
			seen.add(fetched(t, reader.PollFetches(reading)))
		}
	})
	working, stopWorking := context.WithCancel(ctx)
	in := &feed{cl: cl}
	leaving, leave := context.WithCancel(working)
	in.until(t, ctx, session(t, leaving, b, "a", &wg))
	in.until(t, ctx, session(t, working, b, "b", &wg))
	leave()
	in.until(t, ctx, session(t, working, b, "c", &wg))
	seen.await(t, ctx, in.next)
	stopWorking()
	wg.Wait()
	stopReading()
	reads.Wait()
	seen.exactly(t, in.next)
	if sum := committedSum(t, cl, "g", "in", 4); sum != int64(in.next) {
		t.Errorf("offsets of %d records are committed, want %d", sum, in.next)
	}
}

// session consumes, transforms and produces in transactions until ctx is done.
// Every fifth transaction is aborted. busy says whether it has committed several.
func session(t *testing.T, ctx context.Context, b cluster, id string, wg *sync.WaitGroup) (busy func() bool) {
	var committed atomic.Int64
	s, err := kgo.NewGroupTransactSession(kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial), kgo.TransactionalID(id),
		kgo.ConsumerGroup("g"), kgo.ConsumeTopics("in"), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.HeartbeatInterval(50*time.Millisecond), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	wg.Go(func() {
		defer s.Close()
		for n := 0; ctx.Err() == nil; n++ {
			values := fetched(t, s.PollRecords(ctx, 500))
			if len(values) == 0 {
				continue
			}
			if err := s.Begin(); err != nil {
				t.Errorf("%s: begin: %v", id, err)
				return
			}
			for _, v := range values {
				s.Produce(context.Background(), &kgo.Record{Topic: "out", Value: []byte(v)}, nil)
			}
			done, err := s.End(context.Background(), kgo.TransactionEndTry(n%5 != 0))
			if err != nil {
				t.Errorf("%s: end: %v", id, err)
				return
			}
			if done {
				committed.Add(1)
			}
		}
	})
	return func() bool { return committed.Load() > 5 }
}
