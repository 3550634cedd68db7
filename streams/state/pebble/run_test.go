package pebble_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/serde"
	"github.com/millrace/millrace/streams/state/pebble"
)

func client(t *testing.T, b streams.Cluster, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append(opts, kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

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

// heard is a log.
type heard struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (h *heard) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.buf.Write(b)
}

// take is what was said since the last call.
func (h *heard) take() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.buf.Reset()
	return h.buf.String()
}

// A job keeps its counts over a change of the engine and back, over a clean-up, and
// with damage in between; and says in its log what it rebuilds.
func TestCountsOutliveTheirStore(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	b := brokertest.Start(t)
	if _, err := kadm.NewClient(client(t, b)).CreateTopics(ctx, 2, 1, nil, "words-lines", "words-counts"); err != nil {
		t.Fatal(err)
	}
	in := client(t, b)
	out := client(t, b, kgo.ConsumeTopics("words-counts"), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	dir, log := t.TempDir(), &heard{}
	want, seen := map[string]int64{}, map[string]int64{}
	round := func(opts ...streams.RunOpt) string {
		t.Helper()
		for i := range 20 {
			line := fmt.Sprintf("many words %d", i)
			if err := in.ProduceSync(ctx, &kgo.Record{Topic: "words-lines", Value: []byte(line)}).FirstErr(); err != nil {
				t.Fatal(err)
			}
			for w := range strings.FieldsSeq(line) {
				want[w]++
			}
		}
		run, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() {
			done <- words().Run(run, b, append(opts, streams.StateDir(dir), streams.CommitEvery(20*time.Millisecond),
				streams.Logger(slog.New(slog.NewTextHandler(log, nil))))...)
		}()
		wait(ctx, t, out, want, seen)
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		return log.take()
	}
	says := func(log, what string, want bool) {
		t.Helper()
		if strings.Contains(log, what) != want {
			t.Errorf("the log has %q: %v, want %v\n%s", what, !want, want, log)
		}
	}
	onPebble := streams.Engine(pebble.New(pebble.Options{CacheBytes: 1 << 20, MemTableBytes: 1 << 20}))
	const other, damaged = "another engine", "is damaged"
	says(round(), other, false)
	says(round(onPebble), other, true)
	says(round(onPebble, streams.ReadCache(-1)), other, false)
	files, err := filepath.Glob(filepath.Join(dir, "words", "stores", "words", "*", "pebble", "MANIFEST-*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no store of Pebble: %v, %v", files, err)
	}
	for _, path := range files {
		if err := os.WriteFile(path, []byte("nonsense"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	says(round(onPebble), damaged, true)
	says(round(), other, true)
	if err := words().CleanUp(dir); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "words", "stores", "*", "*")); err != nil || len(left) > 0 {
		t.Errorf("a clean-up leaves %v, %v", left, err)
	}
	again := round()
	says(again, other, false)
	says(again, damaged, false)
}
