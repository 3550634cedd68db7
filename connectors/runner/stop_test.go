package runner_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/connectors"
	"github.com/millrace/millrace/connectors/file"
	"github.com/millrace/millrace/connectors/runner"
	"github.com/millrace/millrace/connectors/sqlite"
)

// refusing is a cluster of which nothing is left: every dial is refused.
type refusing struct{}

func (refusing) Seeds() []string { return []string{"gone:9092"} }

func (refusing) Dial(context.Context, string, string) (net.Conn, error) {
	return nil, syscall.ECONNREFUSED
}

// TestStopsWithoutTheCluster: Run ends within its own stop timeout, not when the
// clients have no retries left, if the cluster was never there, or goes in the same
// moment as the connector is stopped.
func TestStopsWithoutTheCluster(t *testing.T) {
	t.Parallel()
	sink := func(t *testing.T, c connectors.Cluster) func(context.Context) error {
		path := filepath.Join(t.TempDir(), "out.db")
		s, err := runner.NewSink(runner.SinkOptions{
			Cluster: c, Topics: []string{"orders"}, Value: connectors.JSON, StopTimeout: time.Second,
			New: func(int) (connectors.TxSink, error) { return sqlite.New(sqliteConfig(path)) },
		})
		if err != nil {
			t.Fatal(err)
		}
		return s.Run
	}
	source := func(t *testing.T, c connectors.Cluster) func(context.Context) error {
		path := filepath.Join(t.TempDir(), "in.jsonl")
		if err := os.WriteFile(path, bytes.Repeat([]byte("{\"id\":1}\n"), 1<<18), 0o600); err != nil {
			t.Fatal(err)
		}
		src, err := file.New(file.Config{Name: "lines", Paths: []string{path}, UnitRecords: 1, Topic: "orders", Key: file.Field("id")})
		if err != nil {
			t.Fatal(err)
		}
		s, err := runner.NewSource(runner.SourceOptions{Cluster: c, Source: src, StopTimeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		return s.Run
	}
	for name, open := range map[string]func(*testing.T, connectors.Cluster) func(context.Context) error{"sink": sink, "source": source} {
		t.Run(name+", refused", func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			ends(t, ctx, open(t, refusing{}))
		})
		t.Run(name+", closed with it", func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond) // in the middle of its work
			defer cancel()
			b, err := broker.Start(ctx, broker.Config{}) // the same ctx: both end at once
			if err != nil {
				t.Fatal(err)
			}
			cl, err := kgo.NewClient(kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial), kgo.AllowAutoTopicCreation())
			if err != nil {
				t.Fatal(err)
			}
			defer cl.Close()
			if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "orders", Value: []byte(`{"id":1}`)}).FirstErr(); err != nil {
				t.Fatal(err)
			}
			ends(t, ctx, open(t, b))
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// ends runs a connector whose context ends by itself and wants it to be over soon
// after: StopTimeout is one second, the rest is for a loaded machine.
func ends(t *testing.T, ctx context.Context, run func(context.Context) error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	select {
	case err := <-done:
		if ctx.Err() == nil {
			t.Errorf("ended before it was stopped: %v", err)
		}
	case <-time.After(20 * time.Second):
		buf := make([]byte, 1<<20)
		t.Fatalf("goes on\n%s", buf[:runtime.Stack(buf, true)])
	}
}
