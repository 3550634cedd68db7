package runner_test

import (
	"context"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors"
	"github.com/millrace/millrace/connectors/runner"
	"github.com/millrace/millrace/connectors/sqlite"
)

// TestNothingStaysBehind: after Run has returned, none of its goroutines is
// left. It does not run in parallel, so that the others do not count.
func TestNothingStaysBehind(t *testing.T) {
	_, c := cluster(t, 2, "orders")
	produce(t, c, "orders", "", 0, 20, true)
	before := settled(t, 0)
	for range 3 {
		path := filepath.Join(t.TempDir(), "out.db")
		s, stop := start(t, runner.SinkOptions{
			Cluster: c, Topics: []string{"orders"}, Value: connectors.JSON, Linger: 5 * time.Millisecond, Tasks: 2,
			Group: "leak-" + filepath.Base(filepath.Dir(path)),
			New:   func(int) (connectors.TxSink, error) { return sqlite.New(sqliteConfig(path)) },
		})
		await(t, s, "20 records", func(st runner.Status) bool { return commits(st) > 0 && st.CaughtUp(2) })
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
	if after := settled(t, before); after > before {
		buf := make([]byte, 1<<20)
		t.Errorf("%d goroutines, %d before\n%s", after, before, buf[:runtime.Stack(buf, true)])
	}
}

// settled returns the number of goroutines once it is at most want, or has had
// ten seconds to get there; with want 0, once it has not changed for a while.
func settled(t *testing.T, want int) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	last, same := -1, 0
	for {
		n := runtime.NumGoroutine()
		if n == last {
			same++
		} else {
			last, same = n, 0
		}
		if want > 0 && n <= want || want == 0 && same == 10 {
			return n
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return n
		}
	}
}
