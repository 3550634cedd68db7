package streams_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/serde"
)

// cluster is an embedded broker, or the cluster that MILLRACE_TEST_BROKERS
// names, which must be a fresh one.
func cluster(t *testing.T) streams.Cluster {
	if b := os.Getenv("MILLRACE_TEST_BROKERS"); b != "" {
		return streams.Brokers(b)
	}
	return brokertest.Start(t)
}

func client(t *testing.T, b streams.Cluster, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append(opts, kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// words is the application of the end-to-end tests.
func words() *streams.App {
	app := streams.New("words")
	app.Stream[string, string]("words-lines").FlatMapValues(strings.FieldsSeq).GroupBy(strings.ToLower).Count(streams.As("words")).To("words-counts")
	return app
}

// wait reads committed counts until every word has reached what it should, and
// fails if one ever goes beyond, back, or repeats.
func wait(ctx context.Context, t *testing.T, c *kgo.Client, want, seen map[string]int64) {
	t.Helper()
	for !maps.Equal(want, seen) {
		fetches := c.PollFetches(ctx)
		if err := errors.Join(ctx.Err(), fetches.Err()); err != nil {
			t.Fatalf("counts are %v, want %v: %v", seen, want, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			n, err := serde.Int64.Decode(r.Value)
			if err != nil || n != seen[string(r.Key)]+1 {
				t.Errorf("%s went from %d to %d, %v", r.Key, seen[string(r.Key)], n, err)
			}
			seen[string(r.Key)] = n
		})
	}
}

func TestRunOnAnEmbeddedBroker(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b := cluster(t)
	admin := kadm.NewClient(client(t, b))
	if _, err := admin.CreateTopics(ctx, 3, 1, nil, "words-lines", "words-counts"); err != nil {
		t.Fatal(err)
	}
	in := client(t, b)
	out := client(t, b, kgo.ConsumeTopics("words-counts"), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	dir := t.TempDir()
	want, seen := map[string]int64{}, map[string]int64{}
	for round := range 3 {
		for i := range 50 {
			line := fmt.Sprintf("Round %d line %d", round, i)
			if err := in.ProduceSync(ctx, &kgo.Record{Topic: "words-lines", Value: []byte(line)}).FirstErr(); err != nil {
				t.Fatal(err)
			}
			for w := range strings.FieldsSeq(strings.ToLower(line)) {
				want[w]++
			}
		}
		run, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() {
			done <- words().Run(run, b, streams.StateDir(dir), streams.Workers(1+round), streams.CommitEvery(20*time.Millisecond))
		}()
		wait(ctx, t, out, want, seen)
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	topics, err := admin.ListTopics(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"words-words-changelog", "words-words-lines.flat-map-values.group-by-repartition"} {
		if !slices.Contains(topics.Names(), name) || len(topics[name].Partitions) != 3 {
			t.Errorf("internal topic %s is missing or has not 3 partitions; there are %v", name, topics.Names())
		}
	}
}

func TestRunReturnsTheFailure(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b := cluster(t)
	if _, err := kadm.NewClient(client(t, b)).CreateTopics(ctx, 1, 1, nil, "numbers-in", "numbers-out"); err != nil {
		t.Fatal(err)
	}
	in := client(t, b)
	for _, v := range []string{"12345678", "short"} {
		if err := in.ProduceSync(ctx, &kgo.Record{Topic: "numbers-in", Value: []byte(v)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	app := streams.New("numbers")
	app.Stream[string, int64]("numbers-in").To("numbers-out")
	err := app.Run(ctx, b)
	var f *streams.Failure
	if !errors.As(err, &f) || f.Phase != streams.PhaseDecode || f.Node != "numbers-in" || f.Offset != 1 {
		t.Fatalf("Run returned %v", err)
	}
	if want := "decode at node numbers-in, record numbers-in-0@1: value: serde: int64 takes 8 bytes, got 5"; !strings.Contains(err.Error(), want) {
		t.Errorf("error is %q, want it to say %q", err, want)
	}
}

// TestLateRecordsAreReported: what a rule leaves out shows in the progress.
func TestLateRecordsAreReported(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b := cluster(t)
	if _, err := kadm.NewClient(client(t, b)).CreateTopics(ctx, 1, 1, nil, "late-in"); err != nil {
		t.Fatal(err)
	}
	in := client(t, b)
	for _, ts := range []int64{1000, 5000, 1500, 5500} {
		if err := in.ProduceSync(ctx, &kgo.Record{Topic: "late-in", Timestamp: time.UnixMilli(ts), Key: []byte("k"), Value: []byte("v")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	app := streams.New("late")
	app.Stream[string, string]("late-in").GroupByKey().Windowed(streams.Tumbling(time.Second)).Count(streams.As("n"), streams.InMemory())
	var last streams.Progress
	err := app.Run(ctx, b, streams.Leave(), streams.SessionTimeout(30*time.Second), streams.TransactionTimeout(20*time.Second), streams.Replication(1),
		streams.Logger(slog.New(slog.DiscardHandler)), streams.OnProgress(func(p streams.Progress) {
			if last = p; p.Processed == 4 {
				cancel()
			}
		}))
	if want := []streams.Dropped{{Node: "n", Reason: "late", N: 1}}; err != nil || !slices.Equal(last.Dropped, want) {
		t.Errorf("Run returned %v, dropped %v, want %v", err, last.Dropped, want)
	}
}

func TestRunWithoutAddress(t *testing.T) {
	if err := words().Run(t.Context(), streams.Brokers(" , ")); err == nil || !strings.Contains(err.Error(), "no address") {
		t.Errorf("Run returned %v", err)
	}
}

func TestBrokersTakesLists(t *testing.T) {
	got := streams.Brokers("k1:9092, k2:9092", "k3:9092").Seeds()
	if want := []string{"k1:9092", "k2:9092", "k3:9092"}; !slices.Equal(got, want) {
		t.Errorf("seeds are %v, want %v", got, want)
	}
}
