package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/connectors"
	"github.com/millrace/millrace/connectors/file"
	"github.com/millrace/millrace/connectors/runner"
)

// committed reads a topic's committed records until the end it has now.
func committed(t *testing.T, c connectors.Cluster, topic string, want int) []*kgo.Record {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Seeds()...), kgo.Dialer(c.Dial), kgo.ConsumeTopics(topic),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var out []*kgo.Record
	for len(out) < want && ctx.Err() == nil {
		out = append(out, cl.PollFetches(ctx).Records()...)
	}
	return out
}

func TestSourceReadsAFileOnce(t *testing.T) {
	t.Parallel()
	_, c := cluster(t, 1, "lines")
	path := filepath.Join(t.TempDir(), "in.jsonl")
	var b strings.Builder
	for i := range 250 {
		fmt.Fprintf(&b, "{\"id\":%d,\"at\":\"2001-01-02 03:04:%02d\"}\n", i, i%60)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func() *runner.Source {
		src, err := file.New(file.Config{
			Name: "lines", Paths: []string{path}, Topic: "lines", UnitRecords: 20,
			Key: file.Field("id"), Time: file.TimeField("at", time.DateTime, nil),
		})
		if err != nil {
			t.Fatal(err)
		}
		s, err := runner.NewSource(runner.SourceOptions{Cluster: c, Source: src})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	// The first run stops in the middle, the second goes on to the end.
	first, cancel := context.WithCancel(t.Context())
	units := 0
	ctx := connectors.WithPoints(first, func(_ context.Context, point string) error {
		if point == runner.PointUpstream {
			if units++; units == 5 {
				cancel()
			}
		}
		return nil
	})
	if err := open().Run(ctx); err != nil {
		t.Fatal(err)
	}
	second := open()
	if err := second.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := second.Status().Tasks[0].Records; n != 150 {
		t.Errorf("the second run sent %d records, want 150", n)
	}
	third := open()
	if err := third.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := third.Status().Tasks[0].Records; n != 0 {
		t.Errorf("a third run sent %d records", n)
	}
	records := committed(t, c, "lines", 250)
	if len(records) != 250 {
		t.Fatalf("%d records, want 250", len(records))
	}
	for i, r := range records {
		var v struct{ ID int }
		if err := json.Unmarshal(r.Value, &v); err != nil || v.ID != i || string(r.Key) != fmt.Sprint(i) {
			t.Fatalf("record %d: key %q value %q (%v)", i, r.Key, r.Value, err)
		}
		if want := time.Date(2001, 1, 2, 3, 4, i%60, 0, time.UTC); !r.Timestamp.Equal(want) {
			t.Fatalf("record %d: time %v, want %v", i, r.Timestamp, want)
		}
	}
}

// TestSourceDoesNotWaitForOtherSources: positions of all sources share a topic. A transaction that another one has left
// open there, as a killed process does, must not keep this one from starting.
func TestSourceDoesNotWaitForOtherSources(t *testing.T) {
	t.Parallel()
	_, c := cluster(t, 1, "lines")
	path := filepath.Join(t.TempDir(), "in.jsonl")
	if err := os.WriteFile(path, []byte("{\"id\":1}\n{\"id\":2}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(name string) *runner.Source {
		src, err := file.New(file.Config{Name: name, Paths: []string{path}, Topic: "lines", UnitRecords: 1})
		if err != nil {
			t.Fatal(err)
		}
		s, err := runner.NewSource(runner.SourceOptions{Cluster: c, Source: src})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		return s
	}
	run("first")
	dead, err := kgo.NewClient(kgo.SeedBrokers(c.Seeds()...), kgo.Dialer(c.Dial), kgo.TransactionalID("dead"), kgo.TransactionTimeout(10*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer dead.Close()
	if err := dead.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	open := &kgo.Record{Topic: runner.DefaultPositionTopic, Key: []byte("open"), Value: []byte("for long")}
	if err := dead.ProduceSync(t.Context(), open).FirstErr(); err != nil {
		t.Fatal(err)
	}
	run("second")
	if n := run("first").Status().Tasks[0].Records; n != 0 {
		t.Errorf("the first source, started again behind an open transaction, sent %d records twice", n)
	}
	if n := run("second").Status().Tasks[0].Records; n != 0 {
		t.Errorf("the second source, whose positions lie behind an open transaction, sent %d records twice", n)
	}
}
