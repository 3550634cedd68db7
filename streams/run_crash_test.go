package streams_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/core/seedtest"
	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/internal/runtime"
	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/streams/streamstest"
	"github.com/millrace/millrace/txn/session"
)

var errKilled = errors.New("killed")

// killing is one run of TestRunKilledAtAnyStep.
type killing struct {
	t       *testing.T
	ctx     context.Context
	cluster streams.Cluster
	rnd     *rand.Rand
	app     *topology.Topology
	options runtime.Options

	mu   sync.Mutex // guards what the workers' goroutines count
	left int        // steps to live
	at   []session.Step
}

// TestRunKilledAtAnyStep runs the topology of TestAnyOrderAnyCrash on a broker,
// kills it at random steps of its commits, starts it again on the same folder,
// and compares all committed output with the oracle, in order.
func TestRunKilledAtAnyStep(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const partitions, records, kills = 3, 3000, 12
	size, grace := 10*time.Millisecond, 15*time.Millisecond
	seed := seedtest.New(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	top, err := sums(size, grace).Topology()
	if err != nil {
		t.Fatal(err)
	}
	k := &killing{
		t: t, ctx: ctx, cluster: cluster(t), rnd: rand.New(rand.NewPCG(seed, 2)), app: top,
		options: runtime.Options{StateDir: t.TempDir(), Workers: 2, CommitInterval: 5 * time.Millisecond, PurgeInterval: time.Hour},
	}
	k.prepare(partitions)
	for n := range kills {
		k.feed(n*records/kills, (n+1)*records/kills)
		k.kill()
	}
	t.Logf("killed before %v", k.at)
	if len(k.at) == 0 {
		t.Error("nothing was ever killed")
	}
	out := k.finish(records)
	seen := 0
	for p := range int32(partitions) {
		o := newOracle(size, grace)
		for _, r := range out[topicPartition{"sums-by-letter-repartition", p}] {
			o.add(string(r.Key), string(r.Value), r.Time.UnixMilli())
			seen++
		}
		compare(t, p, "joined", o.joined, timed(out[topicPartition{"sums-joined", p}]))
		compare(t, p, "counts", o.counts, counts(t, out[topicPartition{"sums-counts", p}]))
		compare(t, p, "updates", o.updates, timed(out[topicPartition{"sums-updates", p}]))
		compare(t, p, "finals", o.finals, timed(out[topicPartition{"sums-finals", p}]))
	}
	if seen != records {
		t.Errorf("%d records went in, %d came through the repartition topic", records, seen)
	}
}

// prepare creates the topics and fills the table.
func (k *killing) prepare(partitions int32) {
	k.t.Helper()
	c := client(k.t, k.cluster)
	if _, err := kadm.NewClient(c).CreateTopics(k.ctx, partitions, 1, nil, "sums-in", "sums-labels", "sums-joined", "sums-counts", "sums-updates", "sums-finals"); err != nil {
		k.t.Fatal(err)
	}
	for key, l := range labels() {
		row := &kgo.Record{Topic: "sums-labels", Timestamp: time.UnixMilli(0), Key: []byte(key), Value: fmt.Appendf(nil, `{"Text":%q}`, l.Text)}
		if err := c.ProduceSync(k.ctx, row).FirstErr(); err != nil {
			k.t.Fatal(err)
		}
	}
}

// feed writes records in no good order of time.
func (k *killing) feed(from, to int) {
	k.t.Helper()
	var batch []*kgo.Record
	for i := from; i < to; i++ {
		ts := max(0, int64(2*i)-k.rnd.Int64N(60))
		batch = append(batch, &kgo.Record{Topic: "sums-in", Timestamp: time.UnixMilli(ts), Value: fmt.Appendf(nil, "%c%d#%d", 'a'+k.rnd.IntN(9), k.rnd.IntN(10), i)})
	}
	if err := client(k.t, k.cluster).ProduceSync(k.ctx, batch...).FirstErr(); err != nil {
		k.t.Fatal(err)
	}
}

// kill runs the application until a random step of a commit. A worker that
// finds nothing to do takes no steps: then time ends the run.
func (k *killing) kill() {
	k.t.Helper()
	k.left = 1 + k.rnd.IntN(30)
	o := k.options
	o.OnStep = func(_ int, s session.Step) error {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.left--; k.left > 0 {
			return nil
		}
		if k.left == 0 {
			k.at = append(k.at, s)
		}
		return fmt.Errorf("%w before %s", errKilled, s)
	}
	round, stop := context.WithTimeout(k.ctx, 2*time.Second)
	defer stop()
	if err := runtime.Run(round, k.app, k.cluster, o); err != nil && !errors.Is(err, errKilled) {
		k.t.Fatal(err)
	}
}

// finish runs the application undisturbed until everything has come out.
func (k *killing) finish(records int) map[topicPartition][]streamstest.Raw {
	k.t.Helper()
	run, stop := context.WithCancel(k.ctx)
	done := make(chan error, 1)
	go func() { done <- runtime.Run(run, k.app, k.cluster, k.options) }()
	out := read(k.ctx, k.t, client(k.t, k.cluster,
		kgo.ConsumeTopics("sums-joined", "sums-counts", "sums-updates", "sums-finals", "sums-by-letter-repartition"),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())), "sums-counts", records)
	stop()
	if err := <-done; err != nil {
		k.t.Fatal(err)
	}
	return out
}

type topicPartition struct {
	topic     string
	partition int32
}

// read consumes until a topic has n records and the others are quiet too, each
// partition in order.
func read(ctx context.Context, t *testing.T, c *kgo.Client, topic string, n int) map[topicPartition][]streamstest.Raw {
	t.Helper()
	out := map[topicPartition][]streamstest.Raw{}
	got := 0
	for quiet := 0; got < n || quiet < 2; {
		poll, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		fetches := c.PollFetches(poll)
		cancel()
		if ctx.Err() != nil {
			t.Fatalf("%s has %d of %d records: %v", topic, got, n, ctx.Err())
		}
		quiet++
		fetches.EachRecord(func(r *kgo.Record) {
			quiet = 0
			tp := topicPartition{r.Topic, r.Partition}
			out[tp] = append(out[tp], streamstest.Raw{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Time: r.Timestamp, Key: r.Key, Value: r.Value})
			if r.Topic == topic {
				got++
			}
		})
	}
	for tp := range out {
		slices.SortFunc(out[tp], func(a, b streamstest.Raw) int { return int(a.Offset - b.Offset) })
	}
	return out
}
