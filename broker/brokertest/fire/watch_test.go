package fire

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// patience ends a hang; it measures nothing.
const patience = 4 * time.Minute

// watcher is a committed reader of a topic, from its start.
type watcher struct {
	t    *testing.T
	cl   *kgo.Client
	mu   sync.Mutex        // guards seen
	seen map[int32][]int64 // by partition, in the order of reading
	more chan struct{}     // capacity 1: something came
	over chan struct{}
	stop context.CancelFunc
}

func watch(t *testing.T, addr, topic string) *watcher {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(250*time.Millisecond), kgo.MetadataMinAge(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	w := &watcher{t: t, cl: cl, seen: map[int32][]int64{}, more: make(chan struct{}, 1), over: make(chan struct{}), stop: stop}
	go w.read(ctx)
	t.Cleanup(w.close)
	return w
}

func (w *watcher) read(ctx context.Context) {
	defer close(w.over)
	for ctx.Err() == nil {
		fetches := w.cl.PollFetches(ctx)
		w.mu.Lock()
		fetches.EachRecord(func(r *kgo.Record) {
			n, err := strconv.ParseInt(string(r.Value), 10, 64)
			if err != nil {
				w.t.Errorf("partition %d offset %d holds %q, which nobody wrote", r.Partition, r.Offset, r.Value)
			}
			w.seen[r.Partition] = append(w.seen[r.Partition], n)
		})
		w.mu.Unlock()
		select {
		case w.more <- struct{}{}:
		default:
		}
	}
}

func (w *watcher) close() {
	w.stop()
	<-w.over
	w.cl.Close()
}

func (w *watcher) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, s := range w.seen {
		n += len(s)
	}
	return n
}

// await waits until so many records were seen.
func (w *watcher) await(n int) error {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for w.count() < n {
		select {
		case <-w.more:
		case <-limit.C:
			return fmt.Errorf("%d of %d records were seen within %v", w.count(), n, patience)
		}
	}
	return nil
}

// check compares what was seen with 0, 1, 2, … dealt out to the partitions in turn.
func check(t *testing.T, what string, seen map[int32][]int64, total, partitions int) {
	t.Helper()
	for p := range partitions {
		got, want := seen[int32(p)], (total-p+partitions-1)/partitions
		if len(got) != want {
			t.Errorf("%s: partition %d has %d records, want %d", what, p, len(got), want)
		}
		for i, n := range got {
			if n != int64(i*partitions+p) {
				t.Errorf("%s: partition %d has %d in place %d, want %d: lost, doubled or out of order", what, p, n, i, i*partitions+p)
				break
			}
		}
	}
}

// offsets are those that a group has committed, stable ones.
func offsets(t *testing.T, addr, group, topic string) map[int32]int64 {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(kadm.RequireStable(context.Background()), patience)
	defer cancel()
	found, err := kadm.NewClient(cl).FetchOffsets(ctx, group)
	if err != nil {
		t.Fatal(err)
	}
	at := map[int32]int64{}
	for p, o := range found[topic] {
		at[p] = o.At
	}
	return at
}
