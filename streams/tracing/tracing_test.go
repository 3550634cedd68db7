package tracing_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/tracing"
)

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	spanID  = "00f067aa0ba902b7"
)

// run lets a job with a repartition process two records, one of them with a trace,
// and returns what came out, by value, the spans, and those that user code saw.
func run(t *testing.T, opts ...tracing.Option) (out map[string]*kgo.Record, spans []sdk.ReadOnlySpan, seen map[string]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b := brokertest.Start(t)
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial), kgo.ConsumeTopics("out"),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).CreateTopics(ctx, 1, 1, nil, "in", "out"); err != nil {
		t.Fatal(err)
	}
	traced := []kgo.RecordHeader{{Key: "mine", Value: []byte("kept")}, {Key: "traceparent", Value: []byte("00-" + traceID + "-" + spanID + "-01")}}
	if err := client.ProduceSync(ctx, &kgo.Record{Topic: "in", Value: []byte("traced"), Headers: traced}, &kgo.Record{Topic: "in", Value: []byte("plain")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	seen = map[string]string{}
	app := streams.New("followed")
	app.Stream[string, string]("in").SelectKey(func(v string) string { return v }, streams.As("by-value")).
		Repartition(streams.As("moved")).
		TryMapValues(func(ctx context.Context, r *streams.Record[string, string]) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			seen[r.Value] = trace.SpanContextFromContext(ctx).SpanID().String()
			return r.Value, nil
		}).To("out")
	recorder := tracetest.NewSpanRecorder()
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder))
	work, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		done <- app.Run(work, b, streams.CommitEvery(20*time.Millisecond), tracing.With(provider, opts...))
	}()
	out = map[string]*kgo.Record{}
	for len(out) < 2 {
		fetches := client.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) { out[string(r.Value)] = r })
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return out, recorder.Ended(), seen
}

func header(r *kgo.Record, key string) (values []string) {
	for _, h := range r.Headers {
		if h.Key == key {
			values = append(values, string(h.Value))
		}
	}
	return values
}

// TestTrace: from the record's sender over both tasks to the record that comes out
// it is one trace, each span below the one before.
func TestTrace(t *testing.T) {
	t.Parallel()
	out, spans, seen := run(t)
	if len(spans) != 4 {
		t.Fatalf("%d spans, want one for each record in each task", len(spans))
	}
	below := map[string]sdk.ReadOnlySpan{} // by its parent
	for _, s := range spans {
		below[s.Parent().SpanID().String()] = s
	}
	first := below[spanID]
	if first == nil || first.Name() != "process in" || first.SpanContext().TraceID().String() != traceID {
		t.Fatalf("the first span is %v", first)
	}
	second := below[first.SpanContext().SpanID().String()]
	if second == nil || second.Name() != "process followed-moved-repartition" {
		t.Fatalf("the second span is %v", second)
	}
	id := second.SpanContext().SpanID().String()
	if seen["traced"] != id {
		t.Errorf("user code saw span %s, want %s", seen["traced"], id)
	}
	if got := header(out["traced"], "traceparent"); len(got) != 1 || got[0] != "00-"+traceID+"-"+id+"-01" {
		t.Errorf("traceparent of what came out is %v", got)
	}
	if got := header(out["traced"], "mine"); len(got) != 1 || got[0] != "kept" {
		t.Errorf("the header of the sender's is %v", got)
	}
	if got := header(out["plain"], "traceparent"); len(got) != 1 || strings.Contains(got[0], traceID) {
		t.Errorf("traceparent of the other record is %v", got)
	}
}

func TestOnlyTraced(t *testing.T) {
	t.Parallel()
	out, spans, seen := run(t, tracing.OnlyTraced())
	if len(spans) != 2 {
		t.Errorf("%d spans, want two, of the record with a trace", len(spans))
	}
	if got := header(out["plain"], "traceparent"); got != nil {
		t.Errorf("traceparent of the record without a trace is %v", got)
	}
	if seen["plain"] != strings.Repeat("0", 16) {
		t.Errorf("user code saw span %s", seen["plain"])
	}
}
