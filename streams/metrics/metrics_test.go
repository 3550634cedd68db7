package metrics_test

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"net/http/httptest"

	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/metrics"
)

// TestMetrics: what records did is in the figures of the nodes that they went
// through, once it is committed.
func TestMetrics(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b := brokertest.Start(t)
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).CreateTopics(ctx, 1, 1, nil, "in", "out"); err != nil {
		t.Fatal(err)
	}
	minute := time.UnixMilli(1_000_000_000_000).Truncate(time.Minute)
	for i, at := range []time.Duration{0, time.Second, 2 * time.Minute, 0} { // the last one is late
		r := &kgo.Record{Topic: "in", Key: []byte("k"), Value: []byte(strconv.Itoa(i)), Timestamp: minute.Add(at)}
		if err := client.ProduceSync(ctx, r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	app := streams.New("metered")
	app.Stream[string, string]("in").Filter(func(v string) bool { return v != "1" }, streams.As("not-1")).
		GroupByKey().Windowed(streams.Tumbling(time.Minute)).Count(streams.As("per-minute")).
		Map(func(w streams.Window, k string, n int64) (string, int64) { return k, n }).To("out")

	registry := prometheus.NewPedanticRegistry()
	run, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- app.Run(run, b, metrics.To(registry), streams.CommitEvery(20*time.Millisecond)) }()
	const sub = `app="metered",partition="0",sub_topology="in",worker="0"`
	want := []string{
		`millrace_streams_worker_state{app="metered",state="running",worker="0"} 1`,
		`millrace_streams_worker_records_total{app="metered",worker="0"} 4`,
		`millrace_streams_node_records_total{app="metered",node="in",partition="0",sub_topology="in",worker="0"} 4`,
		`millrace_streams_node_records_total{app="metered",node="not-1",partition="0",sub_topology="in",worker="0"} 4`,
		`millrace_streams_node_records_total{app="metered",node="per-minute",partition="0",sub_topology="in",worker="0"} 3`,
		`millrace_streams_node_records_total{app="metered",node="per-minute.map.to",partition="0",sub_topology="in",worker="0"} 2`,
		`millrace_streams_node_dropped_total{app="metered",node="per-minute",partition="0",reason="late",sub_topology="in",worker="0"} 1`,
		`millrace_streams_task_emitted_total{` + sub + `} 2`,
		`millrace_streams_input_lag_records{app="metered",partition="0",sub_topology="in",topic="in",worker="0"} 0`,
		`millrace_streams_record_lateness_seconds_count{` + sub + `} 1`,
		`millrace_streams_end_to_end_latency_seconds_count{` + sub + `} 4`,
		`millrace_streams_task_stream_time_seconds{` + sub + `} 1\.000000\d+e\+09`,
		`millrace_streams_store_rows{app="metered",partition="0",store="per-minute",sub_topology="in",worker="0"} \d+`,
		`millrace_streams_commit_seconds_bucket{app="metered",worker="0",le="3600"} [1-9]\d*`,
	}
	for missing := want; len(missing) > 0; {
		page := scrape(registry)
		missing = nil
		for _, w := range want {
			// Figures in a line may be a pattern; what is around them is not.
			pattern := strings.NewReplacer("{", `\{`, "}", `\}`).Replace(w)
			if !regexp.MustCompile("(?m)^" + pattern + "$").MatchString(page) {
				missing = append(missing, w)
			}
		}
		select {
		case <-ctx.Done():
			t.Fatalf("no %s in\n%s", strings.Join(missing, "\n"), page)
		case err := <-done:
			t.Fatal(err)
		case <-time.After(20 * time.Millisecond):
		}
	}
	if lint, err := testutil.GatherAndLint(registry); err != nil || len(lint) > 0 {
		t.Errorf("%v, %v", lint, err)
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if page := scrape(registry); page != "" {
		t.Errorf("after the end there is\n%s", page)
	}
}

func scrape(g prometheus.Gatherer) string {
	w := httptest.NewRecorder()
	promhttp.HandlerFor(g, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}
