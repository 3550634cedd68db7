package streams_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/serde"
	"github.com/millrace/millrace/streams/streamstest"
)

var errRefused = errors.New("refused")

func values[K any](in []streams.Record[K, string]) (out []string) {
	for _, r := range in {
		out = append(out, r.Value)
	}
	return out
}

func TestFailureNamesRecordAndNode(t *testing.T) {
	app := streams.New("f")
	app.Stream[string, string]("in").
		TryFilter(func(_ context.Context, r *streams.Record[string, string]) (bool, error) {
			if r.Value == "bad" {
				return false, errRefused
			}
			return true, nil
		}, streams.As("check")).To("out")
	d := streamstest.New(t, app)
	in := d.In[string, string]("in")
	in.Send("a", "good")
	err := in.Try(d.Now(), "a", "bad")
	var f *streams.Failure
	if !errors.As(err, &f) || !errors.Is(err, errRefused) {
		t.Fatalf("error is %v", err)
	}
	want := streams.Failure{Phase: streams.PhaseProcess, Node: "check", Topic: "in", Offset: 1, Attempt: 1, Err: errRefused}
	if *f != want {
		t.Errorf("failure is %+v, want %+v", *f, want)
	}
	if want := "process at node check, record in-0@1: refused"; err.Error() != want {
		t.Errorf("error is %q, want %q", err, want)
	}
	if again := in.Try(d.Now(), "a", "good"); !errors.Is(again, errRefused) {
		t.Errorf("the application went on after it had failed: %v", again)
	}
}

// flaky fails the first n calls for each value.
func flaky(n int, calls *[]string) func(context.Context, *streams.Record[string, string]) (string, error) {
	failed := map[string]int{}
	return func(_ context.Context, r *streams.Record[string, string]) (string, error) {
		*calls = append(*calls, r.Value)
		if failed[r.Value] < n {
			failed[r.Value]++
			return "", fmt.Errorf("%w, call %d", errRefused, failed[r.Value])
		}
		return r.Value + "!", nil
	}
}

func TestRetry(t *testing.T) {
	for _, c := range []struct {
		name     string
		failures int
		decision streams.Decision
		calls    int
		out      string // of one record
		skipped  int64
		waited   time.Duration
		err      string
	}{
		{"helps", 2, streams.Retry(3, time.Second), 3, "x!", 0, 2 * time.Second, ""},
		{"exactly enough", 3, streams.Retry(3, time.Second), 4, "x!", 0, 3 * time.Second, ""},
		{"then fail", 9, streams.Retry(2, time.Second), 3, "", 0, 2 * time.Second, "process at node in.map-values, record in-0@0 (attempt 3): refused, call 3"},
		{"then skip", 9, streams.Retry(1, 0).Then(streams.Skip()), 2, "", 1, 0, ""},
		{"then slower", 3, streams.Retry(2, time.Second).Then(streams.Retry(2, time.Minute)), 4, "x!", 0, 62 * time.Second, ""},
		{"none", 1, streams.Retry(0, time.Second), 1, "", 0, 0, "process at node in.map-values, record in-0@0: refused, call 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var calls []string
			app := streams.New("f", streams.OnError(streams.Always(c.decision)))
			app.Stream[string, string]("in").TryMapValues(flaky(c.failures, &calls)).To("out")
			d := streamstest.New(t, app)
			start := d.Now()
			err := d.In[string, string]("in").Try(start, "k", "x")
			if got := fmt.Sprint(err); err != nil && got != c.err || err == nil && c.err != "" {
				t.Errorf("error is %q, want %q", got, c.err)
			}
			if len(calls) != c.calls {
				t.Errorf("%d calls, want %d", len(calls), c.calls)
			}
			if got := strings.Join(values(d.Out[string, string]("out").Records()), " "); got != c.out {
				t.Errorf("out is %q, want %q", got, c.out)
			}
			if got := d.Dropped("in.map-values", "skipped"); got != c.skipped {
				t.Errorf("%d skipped, want %d", got, c.skipped)
			}
			if got := d.Now().Sub(start); got != c.waited {
				t.Errorf("waited %v, want %v", got, c.waited)
			}
		})
	}
}

func TestHandlerSeesAttempts(t *testing.T) {
	var attempts []int
	app := streams.New("f", streams.OnError(func(_ context.Context, f streams.Failure) streams.Decision {
		attempts = append(attempts, f.Attempt)
		if f.Attempt == 3 {
			return streams.Skip()
		}
		return streams.Retry(10, 0)
	}))
	var calls []string
	app.Stream[string, string]("in").TryMapValues(flaky(9, &calls)).To("out")
	d := streamstest.New(t, app)
	d.In[string, string]("in").Send("k", "x")
	if !slices.Equal(attempts, []int{1, 2, 3}) {
		t.Errorf("attempts were %v", attempts)
	}
}

// TestPanicsEndTheirBranch: a panic in a pure function is a failure of its node;
// siblings, the other values of a flat map, and windows that close are not
// harmed.
func TestPanicsEndTheirBranch(t *testing.T) {
	app := streams.New("f", streams.OnError(streams.Always(streams.Retry(3, time.Hour).Then(streams.Skip()))))
	pieces := app.Stream[string, string]("in").FlatMapValues(strings.FieldsSeq)
	pieces.To("before")
	boom := func(v string) string {
		if v == "boom" {
			panic("boom")
		}
		return v + "!"
	}
	pieces.MapValues(strings.ToLower).MapValues(boom, streams.As("boom")).MapValues(strings.ToUpper).To("out")
	pieces.To("after")
	w := pieces.GroupByKey().Windowed(streams.Tumbling(10 * time.Millisecond)).Count()
	w.Map(func(_ streams.Window, k string, n int64) (string, string) { return k, boom("boom") }, streams.As("updates")).To("updates")
	w.OnClose().Map(func(w streams.Window, k string, n int64) (string, string) {
		if k == "a" {
			panic(errRefused)
		}
		return k, fmt.Sprint(w.StartMs(), "=", n)
	}, streams.As("closed")).To("closed")
	d := streamstest.New(t, app)
	start := d.Now()
	in := d.In[string, string]("in")
	in.At(time.UnixMilli(1), "a", "x boom y")
	in.At(time.UnixMilli(2), "b", "z")
	in.At(time.UnixMilli(30), "c", "end")
	for topic, want := range map[string]string{
		"before": "x boom y z end", "after": "x boom y z end", "out": "X! Y! Z! END!", "updates": "", "closed": "0=1",
	} {
		if got := strings.Join(values(d.Out[string, string](topic).Records()), " "); got != want {
			t.Errorf("%s is %q, want %q", topic, got, want)
		}
	}
	for node, want := range map[string]int64{"boom": 1, "updates": 5, "closed": 1} {
		if got := d.Dropped(node, "skipped"); got != want {
			t.Errorf("node %s skipped %d, want %d", node, got, want)
		}
	}
	if d.Now() != start {
		t.Error("a panic was tried again")
	}
}

func TestPanicCarriesItsStack(t *testing.T) {
	app := streams.New("f")
	app.Stream[string, string]("in").Filter(func(string) bool { panic(errRefused) }).To("out")
	d := streamstest.New(t, app)
	err := d.In[string, string]("in").Try(d.Now(), "k", "x")
	var p *streams.Panic
	if !errors.As(err, &p) || !errors.Is(err, errRefused) || !strings.Contains(string(p.Stack), "TestPanicCarriesItsStack") {
		t.Errorf("error is %v, stack %s", err, p.Stack)
	}
}

func TestHandlerThatPanics(t *testing.T) {
	app := streams.New("f", streams.OnError(func(context.Context, streams.Failure) streams.Decision { panic("handler") }))
	app.Stream[string, int64]("in").To("out")
	d := streamstest.New(t, app)
	err := d.In[string, string]("in").Raw(d.Now(), nil, []byte("short"))
	if err == nil || !strings.Contains(err.Error(), "got 5 (and its error handler panicked: handler)") {
		t.Errorf("error is %v", err)
	}
}

// broken fails to encode some values and panics on others.
var broken = serde.Of(func(dst []byte, v string) ([]byte, error) {
	switch v {
	case "error":
		return dst, errRefused
	case "panic":
		panic(errRefused)
	}
	return append(dst, v...), nil
}, func(b []byte) (string, error) {
	if string(b) == "panic in" {
		panic(errRefused)
	}
	return string(b), nil
})

// TestSerdesThatFail: encoding at a sink, at a repartition topic, in a store;
// decoding at a source.
func TestSerdesThatFail(t *testing.T) {
	app := streams.New("f", streams.OnError(streams.Always(streams.DeadLetter("dead"))))
	app.RegisterSerde(broken)
	s := app.Stream[string, string]("in")
	s.To("out")
	s.SelectKey(func(v string) string { return v }, streams.As("rekeyed")).GroupByKey().Count().To("counts")
	s.GroupByKey(streams.KeySerde(serde.String)).
		Aggregate(streams.Fold(func() string { return "" }, func(_, v string) string { return v }), streams.As("last")).To("last")
	d := streamstest.New(t, app)
	in := d.In[string, string]("in").Values(serde.String)
	for _, v := range []string{"a", "error", "panic", "panic in", "b"} {
		in.Send("k", v)
	}
	for topic, want := range map[string]string{"out": "a b", "last": "a b"} {
		if got := strings.Join(values(d.Out[string, string](topic).Values(serde.String).Records()), " "); got != want {
			t.Errorf("%s is %q, want %q", topic, got, want)
		}
	}
	if got := len(d.Out[string, int64]("counts").Records()); got != 2 {
		t.Errorf("%d counts, want 2", got)
	}
	var dead []string
	for _, r := range d.Out[string, string]("dead").Values(serde.String).Records() {
		dead = append(dead, r.Headers.Get("__streams.errors.phase")+" "+r.Headers.Get("__streams.errors.node")+" "+r.Value)
	}
	want := []string{
		"encode in.to error", "encode rekeyed.repartition error", "process last error",
		"encode in.to panic", "encode rekeyed.repartition panic", "process last panic",
		"decode in panic in",
	}
	if !slices.Equal(dead, want) {
		t.Errorf("dead letters are\n%v, want\n%v", strings.Join(dead, "\n"), strings.Join(want, "\n"))
	}
}

// TestFlatMapFailsAsAWhole: an error in the sequence passes nothing on, so that
// a retry does not repeat the first values.
func TestFlatMapFailsAsAWhole(t *testing.T) {
	calls := 0
	app := streams.New("f", streams.OnError(streams.Always(streams.Retry(1, 0))))
	app.Stream[string, string]("in").TryFlatMapValues(func(_ context.Context, r *streams.Record[string, string]) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			calls++
			if yield(r.Value+"1", nil) && calls == 1 {
				yield("", errRefused)
				return
			}
			yield(r.Value+"2", nil)
		}
	}).To("out")
	d := streamstest.New(t, app)
	d.In[string, string]("in").Send("k", "x")
	if got := strings.Join(values(d.Out[string, string]("out").Records()), " "); got != "x1 x2" {
		t.Errorf("out is %q", got)
	}
}

// TestAggregateFailsAsAWhole: an adder that changed the aggregate in place and
// then failed leaves the row alone.
func TestAggregateFailsAsAWhole(t *testing.T) {
	fail := true
	app := streams.New("f", streams.OnError(streams.Always(streams.Retry(1, 0))))
	app.Stream[string, string]("in").GroupByKey().TryAggregate(
		func() map[string]int { return map[string]int{} },
		func(_ context.Context, r *streams.Record[string, string], a map[string]int) (map[string]int, error) {
			a[r.Value]++
			if fail = !fail; !fail {
				return a, errRefused
			}
			return a, nil
		}).To("out")
	d := streamstest.New(t, app)
	in := d.In[string, string]("in")
	in.Send("k", "x")
	in.Send("k", "x")
	got := d.Out[string, map[string]int]("out").Records()
	if len(got) != 2 || got[1].Value["x"] != 2 {
		t.Errorf("out is %v", got)
	}
}
