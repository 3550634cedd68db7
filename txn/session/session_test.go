package session_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/txn/session"
	"github.com/millrace/millrace/txn/session/onsarama"
)

// seeds gives a cluster: our own broker, or what MILLRACE_TEST_BROKERS names,
// where "fake" is the client library's fake.
func seeds(t *testing.T) []string {
	t.Helper()
	switch b := os.Getenv("MILLRACE_TEST_BROKERS"); b {
	case "":
		return []string{brokertest.Start(t, brokertest.OnTCP(), brokertest.Configure(func(c *broker.Config) {
			c.GroupInitialRebalanceDelay = time.Millisecond
		})).Addr().String()}
	case "fake":
	default:
		return strings.Split(b, ",")
	}
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SleepOutOfOrder())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.ListenAddrs()
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// unique makes a name that no earlier run has used, for clusters that live on.
func unique(t *testing.T, name string) string {
	return fmt.Sprintf("%s-%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), name, time.Now().UnixNano())
}

type world struct {
	t     *testing.T
	ctx   context.Context
	seeds []string
	admin *kgo.Client
	with  client
}

// client is a library that a session can be on.
type client struct {
	name string
	open func(context.Context, session.Options) (session.Loop, error)
}

var clients = []client{
	{"franz-go", func(ctx context.Context, o session.Options) (session.Loop, error) { return session.Open(ctx, o) }},
	{"sarama", func(ctx context.Context, o session.Options) (session.Loop, error) { return onsarama.Open(ctx, o) }},
}

// onEach runs a test with sessions on each library.
func onEach(t *testing.T, f func(*testing.T, *world)) {
	t.Parallel()
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.with = c
			f(t, w)
		})
	}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, ctx: within(t), seeds: seeds(t)}
	var err error
	if w.admin, err = kgo.NewClient(kgo.SeedBrokers(w.seeds...), kgo.RecordPartitioner(kgo.ManualPartitioner())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.admin.Close)
	return w
}

func (w *world) topic(name string, partitions int32) string {
	w.t.Helper()
	name = unique(w.t, name)
	req := kmsg.NewPtrCreateTopicsRequest()
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = name, partitions, 1
	req.Topics = append(req.Topics, rt)
	req.TimeoutMillis = 10_000
	resp, err := req.RequestWith(w.ctx, w.admin)
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return name
}

func (w *world) fill(topic string, partitions int32, n int) {
	w.t.Helper()
	var rs []*kgo.Record
	for i := range n {
		rs = append(rs, &kgo.Record{Topic: topic, Partition: int32(i) % partitions, Value: fmt.Appendf(nil, "%06d", i)})
	}
	if err := w.admin.ProduceSync(w.ctx, rs...).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
}

// committed reads a topic to its end as of now, waiting for open transactions.
func (w *world) committed(topic string, partitions int32) []string {
	w.t.Helper()
	return w.read(topic, partitions, session.End)
}

// visible is how many records a committed reader sees of a topic now.
func (w *world) visible(topic string, partitions int32) int {
	w.t.Helper()
	return len(w.read(topic, partitions, session.StableEnd))
}

func (w *world) read(topic string, partitions int32, to session.Bound) []string {
	w.t.Helper()
	c, err := session.Connect(w.ctx, session.ClusterOptions{Seeds: w.seeds})
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	var parts []session.TopicPartition
	for p := range partitions {
		parts = append(parts, session.TopicPartition{Topic: topic, Partition: p})
	}
	ends, err := c.List(w.ctx, to, parts)
	if err != nil {
		w.t.Fatal(err)
	}
	r := c.NewReader(session.ReaderOptions{})
	defer r.Close()
	var got []string
	for _, p := range parts {
		f := r.Add(p, 0)
		for f.Position() < ends[p] {
			rec, ok := f.Head()
			if ok {
				got = append(got, string(rec.Value))
				f.Pop()
				continue
			}
			if f.Err() != nil {
				w.t.Fatal(f.Err())
			}
			if f.Position() >= ends[p] {
				break
			}
			select {
			case <-r.Arrived():
			case <-w.ctx.Done():
				w.t.Fatalf("%s/%d: stuck at %d of %d, stable end %d", topic, p.Partition, f.Position(), ends[p], f.End())
			}
		}
	}
	slices.Sort(got)
	return got
}

func (w *world) open(o session.Options) session.Loop {
	w.t.Helper()
	o.Seeds = w.seeds
	if o.Heartbeat == 0 {
		o.Heartbeat = 50 * time.Millisecond
	}
	s, err := w.with.open(w.ctx, o)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// want are the values that fill wrote.
func want(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("%06d", i))
	}
	return all
}

// step polls once and copies what came to the topic; a poll that finds nothing
// within a moment is no error.
func step(ctx context.Context, s session.Loop, to string) (int, error) {
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	records, err := s.Poll(short)
	if errors.Is(err, context.DeadlineExceeded) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n := 0
	for r := range records {
		if err := s.Send(ctx, &session.Record{Topic: to, Partition: r.Partition, Value: r.Value}); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func TestConsumeProcessProduceCommit(t *testing.T) { onEach(t, testConsumeProcessProduceCommit) }

func testConsumeProcessProduceCommit(t *testing.T, w *world) {
	in, out := w.topic("in", 3), w.topic("out", 3)
	w.fill(in, 3, 1000)
	group := unique(t, "g")
	o := session.Options{Group: group, TransactionalID: group, Topics: []string{in}, MaxRecords: 150}
	s := w.open(o)
	n, commits := 0, 0
	for n < 1000 {
		k, err := step(w.ctx, s, out)
		if err != nil {
			t.Fatal(err)
		}
		n += k
		commits++
		if commits == 3 {
			if err := s.Abort(w.ctx); err != nil {
				t.Fatal(err)
			}
			n -= k
			continue
		}
		if err := s.Commit(w.ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(w.ctx); err != nil {
		t.Fatal(err)
	}
	if got := w.committed(out, 3); !slices.Equal(got, want(1000)) {
		t.Errorf("%d records, want 1000 different ones", len(got))
	}
	// A second session finds nothing left to do.
	s = w.open(o)
	if k, err := step(w.ctx, s, out); k != 0 || err != nil {
		t.Errorf("after a restart %d records came again, error %v", k, err)
	}
	if err := s.Close(w.ctx); err != nil {
		t.Fatal(err)
	}
}

func TestCrashAtEveryStepOfTheCommit(t *testing.T) {
	for _, at := range []session.Step{session.StepFlush, session.StepOffsets, session.StepEnd, session.StepDone} {
		t.Run(string(at), func(t *testing.T) {
			onEach(t, func(t *testing.T, w *world) { testCrashAt(t, w, at) })
		})
	}
}

func testCrashAt(t *testing.T, w *world, at session.Step) {
	in, out := w.topic("in", 2), w.topic("out", 2)
	w.fill(in, 2, 200)
	group := unique(t, "g")
	commits := 0
	o := session.Options{Group: group, TransactionalID: group, Instance: group, Topics: []string{in}, MaxRecords: 40}
	crash := o
	crash.OnStep = func(s session.Step) error {
		if s == session.StepFlush {
			commits++
		}
		if commits == 3 && s == at {
			return errors.New("crash")
		}
		return nil
	}
	s := w.open(crash)
	var err error
	for err == nil {
		if _, err = step(w.ctx, s, out); err == nil {
			err = s.Commit(w.ctx)
		}
	}
	if commits != 3 {
		t.Fatalf("crashed at commit %d: %v", commits, err)
	}
	// The process is gone: nothing of it is closed in order.
	s = w.open(o)
	for idle := false; !idle || w.visible(out, 2) < 200; {
		k, err := step(w.ctx, s, out)
		if err == nil {
			err = s.Commit(w.ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		idle = k == 0
	}
	if err := s.Close(w.ctx); err != nil {
		t.Fatal(err)
	}
	if got := w.committed(out, 2); !slices.Equal(got, want(200)) {
		t.Errorf("%d records, want 200 different ones", len(got))
	}
}

func TestZombieIsFenced(t *testing.T) { onEach(t, testZombieIsFenced) }

func testZombieIsFenced(t *testing.T, w *world) {
	in, out := w.topic("in", 1), w.topic("out", 1)
	w.fill(in, 1, 100)
	group := unique(t, "g")
	o := session.Options{Group: group, TransactionalID: group, Instance: group, Topics: []string{in}, MaxRecords: 100}
	zombie := w.open(o)
	n := 0
	for n == 0 {
		k, err := step(w.ctx, zombie, out)
		if err != nil {
			t.Fatal(err)
		}
		n += k
	}
	successor := w.open(o)
	for n := 0; n < 100; {
		k, err := step(w.ctx, successor, out)
		if err == nil {
			err = successor.Commit(w.ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		n += k
	}
	if err := zombie.Commit(w.ctx); !errors.Is(err, session.ErrFenced) {
		t.Errorf("the zombie's commit: %v, want ErrFenced", err)
	}
	if _, err := zombie.Poll(w.ctx); !errors.Is(err, session.ErrFenced) {
		t.Errorf("the zombie's poll: %v, want ErrFenced", err)
	}
	for _, s := range []session.Loop{zombie, successor} {
		if err := s.Close(w.ctx); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.committed(out, 1); !slices.Equal(got, want(100)) {
		t.Errorf("%d records, want 100 different ones", len(got))
	}
}

func TestRebalanceCommitsBeforeItGivesUp(t *testing.T) {
	onEach(t, testRebalanceCommitsBeforeItGivesUp)
}

func testRebalanceCommitsBeforeItGivesUp(t *testing.T, w *world) {
	in, out := w.topic("in", 4), w.topic("out", 4)
	w.fill(in, 4, 2000)
	group := unique(t, "g")
	options := func(id string) session.Options {
		return session.Options{Group: group, TransactionalID: group + id, Topics: []string{in}, MaxRecords: 50}
	}
	a := w.open(options("a"))
	for range 5 {
		if _, err := step(w.ctx, a, out); err != nil {
			t.Fatal(err)
		}
	}
	type result struct {
		n   int
		err error
	}
	run := func(s session.Loop, results chan<- result) {
		var r result
		for r.err == nil && w.visible(out, 4) < 2000 {
			k, err := step(w.ctx, s, out)
			if err == nil {
				err = s.Commit(w.ctx)
			}
			r.n, r.err = r.n+k, err
		}
		results <- r
	}
	results := make(chan result, 2)
	b := w.open(options("b"))
	go run(a, results)
	go run(b, results)
	for range 2 {
		if r := <-results; r.err != nil {
			t.Error(r.err)
		}
	}
	for _, s := range []session.Loop{a, b} {
		if err := s.Close(w.ctx); err != nil {
			t.Error(err)
		}
	}
	if got := w.committed(out, 4); !slices.Equal(got, want(2000)) {
		t.Errorf("%d records, want 2000 different ones", len(got))
	}
}

func TestOffsetsMoveWithoutOutput(t *testing.T) { onEach(t, testOffsetsMoveWithoutOutput) }

func testOffsetsMoveWithoutOutput(t *testing.T, w *world) {
	in := w.topic("in", 1)
	w.fill(in, 1, 10)
	group := unique(t, "g")
	s := w.open(session.Options{Group: group, TransactionalID: group, Topics: []string{in}})
	records, err := s.Poll(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for range records {
		n++
	}
	if err := s.Commit(w.ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(w.ctx); err != nil {
		t.Fatal(err)
	}
	c, err := session.Connect(w.ctx, session.ClusterOptions{Seeds: w.seeds})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	part := session.TopicPartition{Topic: in}
	got, err := c.CommittedOffsets(w.ctx, group, []session.TopicPartition{part})
	if err != nil || got[part].Next != int64(n) {
		t.Errorf("committed %v, %v; want %d", got, err, n)
	}
}

func TestOptionsValidate(t *testing.T) {
	t.Parallel()
	good := session.Options{
		ClusterOptions: session.ClusterOptions{Seeds: []string{"x:1"}}, Group: "g", TransactionalID: "t", Topics: []string{"a"},
	}
	if err := good.Validate(); err != nil {
		t.Errorf("good options: %v", err)
	}
	for _, c := range []struct {
		field  string
		change func(*session.Options)
	}{
		{"Seeds", func(o *session.Options) { o.Seeds = nil }},
		{"Group", func(o *session.Options) { o.Group = "" }},
		{"Topics", func(o *session.Options) { o.Topics = nil }},
		{"TransactionalID", func(o *session.Options) { o.TransactionalID = "" }},
		{"Timeout", func(o *session.Options) { o.TransactionTimeout = -1 }},
		{"MaxRecords", func(o *session.Options) { o.MaxRecords = -1 }},
	} {
		o := good
		c.change(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), c.field) {
			t.Errorf("%s: %v", c.field, err)
		}
	}
}
