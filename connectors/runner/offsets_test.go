package runner_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors"
	"github.com/millrace/millrace/connectors/runner"
	"github.com/millrace/millrace/connectors/sqlite"
)

// TestSetPositions is the way out of a recreated topic, and a repetition that
// was asked for, while the connector runs.
func TestSetPositions(t *testing.T) {
	t.Parallel()
	fake, c := cluster(t, 1, "orders")
	path := filepath.Join(t.TempDir(), "out.db")
	options := runner.SinkOptions{
		Cluster: c, Topics: []string{"orders"}, Value: connectors.JSON, Linger: 5 * time.Millisecond,
		New: func(int) (connectors.TxSink, error) { return sqlite.New(sqliteConfig(path)) },
	}
	tp := connectors.TP{Topic: "orders"}
	at := func(next int64) func(runner.Status) bool {
		return func(st runner.Status) bool {
			p, ok := st.Partition(tp)
			return ok && p.State == runner.Running && p.Position.Next == next
		}
	}
	produce(t, c, "orders", "", 0, 30, true)
	s, stop := start(t, options)
	await(t, s, "30 records", at(30))
	opens := s.Status().Tasks[0].Opens

	// Ten records again, while it runs: it is fenced, opens again and goes on.
	back := []connectors.StoredPosition{{TP: tp, Position: connectors.Position{Next: 20}}}
	if err := runner.SetPositions(t.Context(), options, back); err != nil {
		t.Fatal(err)
	}
	produce(t, c, "orders", "", 30, 1, true) // a running task finds out at its next commit
	await(t, s, "again to the end", func(st runner.Status) bool { return at(31)(st) && st.Tasks[0].Opens > opens })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	got := ids(t, path)
	for i := range 31 {
		want := 1
		if i >= 20 && i < 30 {
			want = 2
		}
		if got[i] != want {
			t.Errorf("id %d is there %d times, want %d", i, got[i], want)
		}
	}

	// Another topic of the same name: refused until the position is given up.
	if err := errors.Join(fake.DeleteTopic("orders"), fake.CreateTopic("orders", 1, nil)); err != nil {
		t.Fatal(err)
	}
	produce(t, c, "orders", "", 100, 5, true)
	refused, err := runner.NewSink(options)
	if err != nil {
		t.Fatal(err)
	}
	if err := refused.Run(t.Context()); !errors.Is(err, connectors.ErrTopicRecreated) {
		t.Fatalf("got error %v, want one that matches ErrTopicRecreated", err)
	}
	anew := []connectors.StoredPosition{{TP: tp, Position: connectors.NoPosition}}
	if err := runner.SetPositions(t.Context(), options, anew); err != nil {
		t.Fatal(err)
	}
	s, _ = start(t, options)
	await(t, s, "the new topic", at(5))
	got = ids(t, path)
	for i := 100; i < 105; i++ {
		if got[i] != 1 {
			t.Errorf("id %d is there %d times, want 1", i, got[i])
		}
	}
}

// TestLatestIsStoredAtOnce: records that come between the first start and a
// crash before the first commit belong to "from now on".
func TestLatestIsStoredAtOnce(t *testing.T) {
	t.Parallel()
	_, c := cluster(t, 1, "orders")
	path := filepath.Join(t.TempDir(), "out.db")
	options := runner.SinkOptions{
		Cluster: c, Topics: []string{"orders"}, Value: connectors.JSON, Linger: 5 * time.Millisecond, Start: runner.Latest,
		New: func(int) (connectors.TxSink, error) { return sqlite.New(sqliteConfig(path)) },
	}
	produce(t, c, "orders", "", 1000, 10, true)
	s, stop := start(t, options)
	await(t, s, "the end", func(st runner.Status) bool { return st.CaughtUp(1) })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	produce(t, c, "orders", "", 0, 7, true)
	s, _ = start(t, options)
	await(t, s, "what came meanwhile", func(st runner.Status) bool { return st.Tasks[0].Records == 7 })
	exactly(t, path, 7)
}

func TestOptionsValidate(t *testing.T) {
	t.Parallel()
	_, err := runner.NewSink(runner.SinkOptions{Tasks: 2000, MaxRecords: -1, RetryMin: time.Hour, RetryMax: time.Second, Topics: []string{""}})
	for _, want := range []string{"Cluster: required", "New: required", "Topics[0]: empty", "Tasks: 2000 is outside 1..1024", "MaxRecords: -1", "RetryMin: 1h0m0s is above RetryMax 1s"} {
		contains(t, err, want)
	}
	_, err = runner.NewSource(runner.SourceOptions{Tasks: -1})
	for _, want := range []string{"Cluster: required", "Source: required", "Tasks: -1 is outside 1..1024"} {
		contains(t, err, want)
	}
}
