package streams_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/serde"
	"github.com/millrace/millrace/streams/streamstest"
	"github.com/millrace/millrace/streams/window"
)

// once fails its first call, so that each Try form shows that it can be tried
// again, and what it is given.
func once[T any](f func(*streams.Record[string, string]) T) func(context.Context, *streams.Record[string, string]) (T, error) {
	first := true
	return func(ctx context.Context, r *streams.Record[string, string]) (v T, err error) {
		if first = !first; !first {
			return v, errRefused
		}
		return f(r), ctx.Err()
	}
}

func describe(r *streams.Record[string, string]) string {
	return fmt.Sprintf("%s=%s@%d#%s", r.Key, r.Value, r.Time.UnixMilli(), r.Headers.Get("h"))
}

var tryForms = []struct {
	name  string
	build func(streams.Stream[string, string], *streams.App)
	want  string
}{
	{"filter", func(s streams.Stream[string, string], _ *streams.App) {
		s.TryFilter(once(func(r *streams.Record[string, string]) bool { return describe(r) == "k=v@7#x" })).To("out")
	}, "k=v@7#x"},
	{"map values", func(s streams.Stream[string, string], _ *streams.App) {
		s.TryMapValues(once(describe)).To("out")
	}, "k=k=v@7#x@7#x"},
	{"map", func(s streams.Stream[string, string], _ *streams.App) {
		s.TryMap(once(func(r *streams.Record[string, string]) streams.Record[string, string] {
			return streams.Record[string, string]{Key: r.Value, Value: describe(r)}
		})).To("out")
	}, "v=k=v@7#x@7#x"},
	{"map with time and headers", func(s streams.Stream[string, string], _ *streams.App) {
		s.TryMap(once(func(r *streams.Record[string, string]) streams.Record[string, string] {
			return streams.Record[string, string]{Key: r.Key, Value: r.Value, Time: r.Time.Add(time.Second), Headers: streams.Headers{{Key: "h", Value: []byte("y")}}}
		})).To("out")
	}, "k=v@1007#y"},
	{"map without headers", func(s streams.Stream[string, string], _ *streams.App) {
		s.TryMap(once(func(r *streams.Record[string, string]) streams.Record[string, string] {
			return streams.Record[string, string]{Key: r.Key, Value: r.Value, Headers: streams.Headers{}}
		})).To("out")
	}, "k=v@7#"},
	{"flat map values", func(s streams.Stream[string, string], _ *streams.App) {
		s.TryFlatMapValues(func(_ context.Context, r *streams.Record[string, string]) iter.Seq2[string, error] {
			return func(yield func(string, error) bool) { _ = yield(r.Key, nil) && yield(r.Value, nil) }
		}).To("out")
	}, "k=k@7#x k=v@7#x"},
	{"select key", func(s streams.Stream[string, string], _ *streams.App) {
		s.TrySelectKey(once(describe)).To("out")
	}, "k=v@7#x=v@7#x"},
	{"group by and aggregate", func(s streams.Stream[string, string], _ *streams.App) {
		s.TryGroupBy(once(func(r *streams.Record[string, string]) string { return r.Value })).
			TryAggregate(func() string { return ">" }, func(ctx context.Context, r *streams.Record[string, string], a string) (string, error) {
				return a + describe(r), ctx.Err()
			}, streams.InMemory()).To("out")
	}, "v=>v=v@7#x@7#x"},
	{"windowed aggregate and map", func(s streams.Stream[string, string], _ *streams.App) {
		s.GroupByKey().Windowed(streams.Tumbling(5*time.Millisecond)).
			TryAggregate(func() string { return ">" }, func(_ context.Context, r *streams.Record[string, string], a string) (string, error) {
				return a + describe(r), nil
			}).TryMap(func(_ context.Context, w streams.Window, r *streams.Record[string, string]) (streams.Record[string, string], error) {
			return streams.Record[string, string]{Key: fmt.Sprint(w.StartMs(), "-", w.EndMs()), Value: describe(r)}, nil
		}).To("out")
	}, "5-10=k=>k=v@7#x@7#x@7#x"},
	{"join table", func(s streams.Stream[string, string], app *streams.App) {
		s.TryJoinTable(app.Table[string, string]("t"), func(_ context.Context, r *streams.Record[string, string], row string) (string, error) {
			return describe(r) + "+" + row, nil
		}).To("out")
	}, "k=k=v@7#x+row@7#x"},
}

func TestTryForms(t *testing.T) {
	for _, c := range tryForms {
		t.Run(c.name, func(t *testing.T) {
			app := streams.New("try", streams.OnError(streams.Always(streams.Retry(1, 0))))
			c.build(app.Stream[string, string]("in"), app)
			d := streamstest.New(t, app)
			d.In[string, string]("t").At(time.UnixMilli(1), "k", "row")
			d.In[string, string]("in").At(time.UnixMilli(7), "k", "v", streams.Header{Key: "h", Value: []byte("x")})
			var got []string
			for _, r := range d.Out[string, string]("out").Next() {
				got = append(got, describe(&r))
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("out is %q, want %q", got, c.want)
			}
		})
	}
}

// TestTryFormsAndNull: a null value of a type without nil reaches no function.
func TestTryFormsAndNull(t *testing.T) {
	never := func(context.Context, *streams.Record[string, string]) (string, error) {
		t.Error("a function was called for null")
		return "", nil
	}
	app := streams.New("try")
	s := app.Stream[string, string]("in")
	s.TryFilter(func(ctx context.Context, r *streams.Record[string, string]) (bool, error) {
		_, err := never(ctx, r)
		return true, err
	}).To("filter")
	s.TryMap(func(ctx context.Context, r *streams.Record[string, string]) (streams.Record[string, string], error) {
		_, err := never(ctx, r)
		return *r, err
	}).To("map")
	s.TryFlatMapValues(func(ctx context.Context, r *streams.Record[string, string]) iter.Seq2[string, error] {
		_, err := never(ctx, r)
		return func(yield func(string, error) bool) { yield("", err) }
	}).To("flat")
	s.TryMapValues(never).To("map-values")
	s.TrySelectKey(never).To("select-key")
	d := streamstest.New(t, app)
	d.In[string, string]("in").Delete(d.Now(), "k")
	for topic, want := range map[string]int{"filter": 0, "map": 0, "flat": 0, "map-values": 1, "select-key": 1} {
		if got := len(d.Topic(topic, 0)); got != want {
			t.Errorf("%d records in %s, want %d", got, topic, want)
		}
	}
}

func TestWindowKey(t *testing.T) {
	app := streams.New("w")
	keyed := app.Stream[string, string]("in").GroupByKey().Windowed(streams.Tumbling(time.Second)).Count(streams.As("n")).ToStream().Rekey(streams.WindowKey)
	keyed.To("out")
	// A windowed key is a key like any other, once its size is known.
	keyed.GroupByKey(streams.KeySerde(window.Serde(serde.String, time.Second))).Count(streams.As("again")).To("again")
	d := streamstest.New(t, app, streamstest.Partitions(3))
	in := d.In[string, string]("in")
	in.At(time.UnixMilli(1500), "k", "v")
	in.At(time.UnixMilli(1600), "k", "v")
	out := d.Out[streams.Windowed[string], int64]("again").Keys(window.Serde(serde.String, time.Second)).Records()
	if len(out) != 2 || out[1].Value != 2 || out[1].Key != window.Key(window.Between(1000, 2000), "k") {
		t.Errorf("out is %v", out)
	}
	if n := len(d.Out[[]byte, int64]("out").Records()); n != 2 {
		t.Errorf("%d records in out", n)
	}
}
