package streams_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/streams/internal/runtime"
	"github.com/millrace/millrace/streams/streamstest"
	"github.com/millrace/millrace/txn/session"
)

var errKilled = errors.New("killed")

// TestRunKilledAtAnyStep runs the topology of TestAnyOrderAnyCrash on a broker,
// kills it at random steps of its commits, starts it again on the same folder,
// and compares all committed output with the oracle, in order.
func TestRunKilledAtAnyStep(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 2))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	b := cluster(t)
	const partitions, records, kills = 3, 3000, 12
	size, grace := 10*time.Millisecond, 15*time.Millisecond
	if _, err := kadm.NewClient(client(t, b)).CreateTopics(ctx, partitions, 1, nil, "sums-in", "sums-labels", "sums-joined", "sums-counts", "sums-updates", "sums-finals"); err != nil {
		t.Fatal(err)
	}
	table := client(t, b)
	for key, l := range labels() {
		row := &kgo.Record{Topic: "sums-labels", Timestamp: time.UnixMilli(0), Key: []byte(key), Value: fmt.Appendf(nil, `{"Text":%q}`, l.Text)}
		if err := table.ProduceSync(ctx, row).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	top, err := sums(size, grace).Topology()
	if err != nil {
		t.Fatal(err)
	}

	options := runtime.Options{StateDir: t.TempDir(), Workers: 2, CommitInterval: 5 * time.Millisecond, PurgeInterval: time.Hour}
	feed := func(from, to int) {
		in := client(t, b)
		var batch []*kgo.Record
		for i := from; i < to; i++ {
			ts := max(0, int64(2*i)-rnd.Int64N(60))
			batch = append(batch, &kgo.Record{Topic: "sums-in", Timestamp: time.UnixMilli(ts), Value: fmt.Appendf(nil, "%c%d#%d", 'a'+rnd.IntN(9), rnd.IntN(10), i)})
		}
		if err := in.ProduceSync(ctx, batch...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	var killedAt []session.Step
	for k := range kills {
		feed(k*records/kills, (k+1)*records/kills)
		left := 1 + rnd.IntN(30) // steps to live
		o := options
		steps := make(chan session.Step, 1)
		alive := make(chan struct{}, 1)
		alive <- struct{}{}
		o.OnStep = func(_ int, s session.Step) error {
			<-alive
			left--
			dead := left <= 0
			alive <- struct{}{}
			if !dead {
				return nil
			}
			select {
			case steps <- s:
			default:
			}
			return fmt.Errorf("%w before %s", errKilled, s)
		}
		// A worker that finds nothing to do takes no steps: time ends the round.
		round, stop := context.WithTimeout(ctx, 2*time.Second)
		if err := runtime.Run(round, top, b, o); err != nil && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		stop()
		select {
		case s := <-steps:
			killedAt = append(killedAt, s)
		default:
		}
	}
	t.Logf("killed before %v", killedAt)

	run, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- runtime.Run(run, top, b, options) }()
	out := read(ctx, t, client(t, b, kgo.ConsumeTopics("sums-joined", "sums-counts", "sums-updates", "sums-finals", "sums-by-letter-repartition"),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())), "sums-counts", records)
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
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
	if len(killedAt) < kills/2 {
		t.Errorf("only %d of %d kills happened", len(killedAt), kills)
	}
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
