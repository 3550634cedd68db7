package kill

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/core/seedtest"
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "millrace-kill-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	buildDir = dir
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// TestKilledUnderLoad: after ten kills every acknowledged record is there once and in order, every committed
// transaction is whole, and nothing of an aborted one is seen: in each durability, for what the kernel has outlives the
// process. With MILLRACE_SOAK=1 it is killed a hundred times.
func TestKilledUnderLoad(t *testing.T) {
	for mode, kills := range map[string]int{"fsync": 10, "interval": 2, "os": 3} {
		if os.Getenv("MILLRACE_SOAK") != "" {
			kills = 100
		}
		t.Run(mode, func(t *testing.T) { killedUnderLoad(t, mode, kills) })
	}
}

func killedUnderLoad(t *testing.T, mode string, kills int) {
	seed := seedtest.New(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	s := startServer(t, "--durability", mode)
	createTopics(t, s.addr)
	l := newLoad(seed)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	wait := l.run(ctx, t, s.addr)
	for range kills {
		// Under load: wait for progress since the last start, then for a random number of further acknowledgements.
		for range 1 + rng.IntN(400) {
			select {
			case <-l.acks:
			case <-time.After(time.Minute):
				t.Fatal("no acknowledgement for a minute")
			}
		}
		s.kill()
		s.start()
	}
	stop()
	wait()
	checkPlain(t, s.addr, l.plain)
	checkTransactions(t, s.addr, l.txn)
}

func createTopics(t *testing.T, addr string) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for _, topic := range []string{plainTopic, txnTopic} {
		if _, err := kadm.NewClient(cl).CreateTopic(context.Background(), 3, 1, nil, topic); err != nil {
			t.Fatal(err)
		}
	}
}

// readAll consumes a topic at read_committed up to the ends that it has now.
func readAll(t *testing.T, addr, topic string) []*kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.KeepControlRecords())
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListCommittedOffsets(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	left := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	var out []*kgo.Record
	for len(left) > 0 {
		fs := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("reading %s: partitions short of their ends: %v", topic, left)
		}
		fs.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				out = append(out, r)
			}
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
		})
	}
	return out
}

func checkPlain(t *testing.T, addr string, writers []*plainWriter) {
	t.Helper()
	next := map[int32]int64{}
	for _, r := range readAll(t, addr, plainTopic) {
		if got := string(r.Value); got != strconv.FormatInt(next[r.Partition], 10) {
			t.Fatalf("partition %d offset %d holds %s, want %d: lost, doubled or out of order", r.Partition, r.Offset, got, next[r.Partition])
		}
		next[r.Partition]++
	}
	for _, w := range writers {
		t.Logf("partition %d: %d acknowledged", w.partition, w.acked.Load())
		if w.lost.Load() != 0 {
			t.Errorf("partition %d: the client gave up on %d records", w.partition, w.lost.Load())
		}
		if next[w.partition] < w.acked.Load() {
			t.Errorf("partition %d: %d records acknowledged, %d in the log", w.partition, w.acked.Load(), next[w.partition])
		}
	}
}

func checkTransactions(t *testing.T, addr string, writers []*txnWriter) {
	t.Helper()
	type id struct{ writer, n int }
	seen := map[id]map[int]int{}
	for _, r := range readAll(t, addr, txnTopic) {
		var w, n, k int
		if _, err := fmt.Sscanf(string(r.Value), "%d/%d/%d", &w, &n, &k); err != nil {
			t.Fatalf("value %q: %v", r.Value, err)
		}
		at := id{w, n}
		if seen[at] == nil {
			seen[at] = map[int]int{}
		}
		seen[at][k]++
		if seen[at][k] > 1 {
			t.Errorf("record %d of transaction %d of writer %d is there twice", k, n, w)
		}
	}
	count := map[fate]int{}
	for _, w := range writers {
		for n, f := range w.fates {
			count[f]++
			got := len(seen[id{w.id, n}])
			switch {
			case f == committed && got != perTxn:
				t.Errorf("writer %d transaction %d committed, %d of %d records visible", w.id, n, got, perTxn)
			case f == aborted && got != 0:
				t.Errorf("writer %d transaction %d aborted, %d records visible", w.id, n, got)
			case got != 0 && got != perTxn:
				t.Errorf("writer %d transaction %d of unknown outcome shows %d of %d records", w.id, n, got, perTxn)
			}
		}
	}
	t.Logf("transactions: %d committed, %d aborted, %d unknown", count[committed], count[aborted], count[unknown])
	if count[committed] == 0 {
		t.Error("no transaction committed: the test shows nothing")
	}
}
