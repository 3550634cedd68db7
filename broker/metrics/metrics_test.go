package metrics_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/broker/metrics"
)

// made is a broker in a bad state.
type made struct{ loading bool }

func (made) Partitions() []broker.PartitionFigures {
	return []broker.PartitionFigures{
		{Topic: "a", Partition: 0, LastStable: 5, HighWatermark: 8, LogEnd: 10, Bytes: 100, Segments: 1},
		{Topic: "a", Partition: 1, LastStable: 7, HighWatermark: 7, LogEnd: 7, Bytes: 70, Segments: 2},
		{Topic: "b", Partition: 0, LastStable: 1, HighWatermark: 1, LogEnd: 1, Bytes: 10, Segments: 1},
	}
}

func (made) Offline() map[string]string { return map[string]string{"c-0": "fsync failed"} }

func (made) Cleaning() broker.Cleaning {
	return broker.Cleaning{
		RetainedBytes: 11, Compactions: 2, CompactedBytesIn: 30, CompactedBytesOut: 10, MaxDirtyRatio: 0.25, Failures: 3,
		Failing: map[string]string{"a-1": "no room"}, Pinned: map[string]time.Time{"b-0": {}}, ExpiredProducers: 4,
	}
}

func (made) Scrubbing() broker.Scrubbing {
	return broker.Scrubbing{Rounds: 2, Bytes: 500, Damaged: map[string][]string{"a-0": {"one", "two"}}, Failing: map[string]string{"b-0": "EIO"}}
}

func (made) Requests() map[string]int64 { return map[string]int64{"Produce": 9, "Fetch": 3} }
func (made) Connections() int           { return 6 }

func (m made) Transactions(context.Context) (broker.TransactionFigures, error) {
	if m.loading {
		return broker.TransactionFigures{}, errors.New("loading")
	}
	return broker.TransactionFigures{
		Ongoing: 3, Ending: 1, OldestOngoing: 90 * time.Second,
		Hanging: []broker.OpenTransaction{{Topic: "a", Partition: 0}, {Topic: "a", Partition: 1}},
	}, nil
}

func TestPage(t *testing.T) {
	want, err := os.Open("testdata/page.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer want.Close()
	if err := testutil.CollectAndCompare(metrics.New(made{}), want); err != nil {
		t.Error(err)
	}
	lint, err := testutil.CollectAndLint(metrics.New(made{}))
	if err != nil || len(lint) > 0 {
		t.Errorf("%v, %v", lint, err)
	}
	down := "# HELP millrace_coordinators_up 1 when the transaction coordinators answered this scrape.\n" +
		"# TYPE millrace_coordinators_up gauge\nmillrace_coordinators_up 0\n"
	if err := testutil.CollectAndCompare(metrics.New(made{loading: true}), strings.NewReader(down),
		"millrace_coordinators_up", "millrace_transactions_ongoing"); err != nil {
		t.Error(err)
	}
}

// TestBroker: an open transaction is ongoing and holds readers up, and hangs for nobody.
func TestBroker(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t)
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial), kgo.TransactionalID("t"), kgo.AllowAutoTopicCreation())
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Value: []byte("x")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	page := func() string {
		t.Helper()
		r := prometheus.NewPedanticRegistry()
		if err := r.Register(metrics.New(b)); err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		promhttp.HandlerFor(r, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		return w.Body.String()
	}
	expect := func(page string, lines ...string) {
		t.Helper()
		for _, l := range lines {
			if !regexp.MustCompile(`(?m)^millrace_` + l + `$`).MatchString(page) {
				t.Errorf("no %s in\n%s", l, page)
			}
		}
	}
	open := page()
	expect(open, `transactions_ongoing 1`, `log_unstable_records\{topic="orders"\} 1`, `log_end_offset_total\{topic="orders"\} 1`,
		`requests_total\{api="Produce"\} [1-9]\d*`, `connections [1-9]\d*`)
	if strings.Contains(open, "transactions_hanging{") {
		t.Errorf("an open transaction hangs:\n%s", open)
	}
	if err := cl.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	// The marker is in the log when the client has its answer.
	expect(page(), `transactions_ongoing 0`, `log_end_offset_total\{topic="orders"\} 2`)
}
