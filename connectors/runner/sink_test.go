package runner_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/connectors"
	"github.com/millrace/millrace/connectors/runner"
	"github.com/millrace/millrace/connectors/sqlite"
)

// cluster starts a fake cluster with one topic.
func cluster(t *testing.T, partitions int32, topics ...string) (*kfake.Cluster, connectors.Cluster) {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, topics...),
		kfake.BrokerConfigs(map[string]string{"group.initial.rebalance.delay.ms": "0"}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, connectors.Brokers(c.ListenAddrs()...)
}

// produce writes n records of the form {"id": i} in one transaction, or without
// one when txn is empty; commit=false aborts.
func produce(t *testing.T, c connectors.Cluster, topic, txn string, from, n int, commit bool) {
	t.Helper()
	opts := []kgo.Opt{kgo.SeedBrokers(c.Seeds()...), kgo.Dialer(c.Dial)}
	if txn != "" {
		opts = append(opts, kgo.TransactionalID(txn))
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx := t.Context()
	if txn != "" {
		if err := cl.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
	}
	var rs []*kgo.Record
	for i := from; i < from+n; i++ {
		rs = append(rs, &kgo.Record{
			Topic: topic, Key: fmt.Appendf(nil, "k%d", i%7), Value: fmt.Appendf(nil, `{"id":%d}`, i),
			Timestamp: time.Date(2001, 1, 1, 0, 0, i, 0, time.UTC),
		})
	}
	if err := cl.ProduceSync(ctx, rs...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if txn != "" {
		if err := cl.EndTransaction(ctx, kgo.TransactionEndTry(commit)); err != nil {
			t.Fatal(err)
		}
	}
}

func sqliteConfig(path string) sqlite.Config {
	return sqlite.Config{Name: "orders", Path: path, Table: "orders", Columns: []sqlite.Column{
		{Name: "id", Type: sqlite.Integer, NotNull: true},
		{Name: "part", From: "partition", Type: sqlite.Integer},
		{Name: "off", From: "offset", Type: sqlite.Integer},
		{Name: "at", From: "timestamp", Type: sqlite.Text},
	}}
}

func start(t *testing.T, o runner.SinkOptions) (s *runner.Sink, stop func() error) {
	t.Helper()
	s, err := runner.NewSink(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stopped := false
	stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(30 * time.Second):
			return errors.New("Run did not return within 30 s")
		}
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return s, stop
}

func await(t *testing.T, s *runner.Sink, what string, fits func(runner.Status) bool) runner.Status {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	st, err := s.Await(ctx, fits)
	if err != nil {
		t.Fatalf("%s: %v\n%+v", what, err, st)
	}
	return st
}

func ids(t *testing.T, path string) map[int]int {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query("SELECT id FROM orders")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	out := map[int]int{}
	for rows.Next() {
		var id int
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		out[id]++
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// exactly reports a table that does not hold each of 0..n-1 once.
func exactly(t *testing.T, path string, n int) {
	t.Helper()
	got := ids(t, path)
	for i := range n {
		if got[i] != 1 {
			t.Errorf("id %d is there %d times", i, got[i])
		}
	}
	if len(got) != n {
		t.Errorf("%d different ids, want %d", len(got), n)
	}
}

func TestSinkStoresCommittedRecordsOnce(t *testing.T) {
	t.Parallel()
	_, c := cluster(t, 3, "orders")
	path := filepath.Join(t.TempDir(), "out.db")
	options := runner.SinkOptions{
		Cluster: c, Topics: []string{"orders"}, Value: connectors.JSON, Tasks: 2, Linger: 5 * time.Millisecond,
		New: func(int) (connectors.TxSink, error) { return sqlite.New(sqliteConfig(path)) },
	}
	produce(t, c, "orders", "", 0, 50, true)
	s, stop := start(t, options)
	stored := func(n int64) func(runner.Status) bool {
		return func(st runner.Status) bool {
			sum := int64(0)
			for _, task := range st.Tasks {
				sum += task.Records
			}
			return sum == n && st.CaughtUp(3) && st.State == runner.Running
		}
	}
	await(t, s, "first records", stored(50))
	produce(t, c, "orders", "p1", 1000, 20, false)
	produce(t, c, "orders", "p1", 50, 50, true)
	st := await(t, s, "transaction", stored(100))
	if st.Guarantee.Guarantee != connectors.ExactlyOnce || st.State != runner.Running {
		t.Errorf("status %s, guarantee %s", st.State, st.Guarantee)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if st := s.Status(); st.State != runner.Stopped {
		t.Errorf("state after stop: %s", st.State)
	}
	produce(t, c, "orders", "", 100, 20, true)
	s2, _ := start(t, options)
	await(t, s2, "restart", stored(20))
	exactly(t, path, 120)
}

// TestMissingTopic: a topic that is not there is said to be missing, and is read
// once it is there.
func TestMissingTopic(t *testing.T) {
	t.Parallel()
	fake, c := cluster(t, 1, "other")
	path := filepath.Join(t.TempDir(), "out.db")
	s, _ := start(t, runner.SinkOptions{
		Cluster: c, Topics: []string{"orders"}, Value: connectors.JSON, Linger: 5 * time.Millisecond, RetryMax: 200 * time.Millisecond,
		New: func(int) (connectors.TxSink, error) { return sqlite.New(sqliteConfig(path)) },
	})
	await(t, s, "the missing topic", func(st runner.Status) bool {
		return st.State == runner.Retrying && strings.Contains(st.Tasks[0].Err, "topic orders does not exist")
	})
	if err := fake.CreateTopic("orders", 1, nil); err != nil {
		t.Fatal(err)
	}
	produce(t, c, "orders", "", 0, 5, true)
	await(t, s, "its records", func(st runner.Status) bool { return st.Tasks[0].Records == 5 && st.Err == "" })
	exactly(t, path, 5)
}

func contains(t *testing.T, err error, want string) {
	t.Helper()
	if !errors.Is(err, connectors.ErrConfig) || !strings.Contains(err.Error(), want) {
		t.Errorf("%q is not in error %v", want, err)
	}
}
