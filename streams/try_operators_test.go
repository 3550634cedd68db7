package streams_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/streamstest"
)

// once2 is once for a function of a record and something else.
func once2[X, T any](f func(*streams.Record[string, string], X) T) func(context.Context, *streams.Record[string, string], X) (T, error) {
	first := true
	return func(ctx context.Context, r *streams.Record[string, string], x X) (v T, err error) {
		if first = !first; !first {
			return v, errRefused
		}
		return f(r, x), ctx.Err()
	}
}

func latest(s streams.Stream[string, string]) streams.Table[string, string] {
	return s.ToTable(streams.As("t"))
}

// Each function fails at its first call and is tried again; what comes out is
// what one call makes of the record k=v, at 7, with the header h=x.
var tryOperators = []struct {
	name  string
	build func(streams.Stream[string, string])
	want  string
}{
	{"peek", func(s streams.Stream[string, string]) {
		failed := false
		s.TryPeek(func(context.Context, *streams.Record[string, string]) error {
			if failed = !failed; failed {
				return errRefused
			}
			return nil
		}).To("out")
	}, "k=v@7"},
	{"split", func(s streams.Stream[string, string]) {
		s.TrySplit(streams.TryWhen(once(func(r *streams.Record[string, string]) bool { return describe(r) == "k=v@7#x" })))[0].To("out")
	}, "k=v@7"},
	{"route", func(s streams.Stream[string, string]) {
		s.TryRoute(once(func(r *streams.Record[string, string]) string { return "out" }))
	}, "k=v@7"},
	{"table filter", func(s streams.Stream[string, string]) {
		latest(s).TryFilter(once(func(r *streams.Record[string, string]) bool { return describe(r) == "k=v@7#x" })).To("out")
	}, "k=v@7"},
	{"table map values", func(s streams.Stream[string, string]) { latest(s).TryMapValues(once(describe)).To("out") }, "k=k=v@7#x@7"},
	{"table group", func(s streams.Stream[string, string]) {
		group := once(describe)
		latest(s).TryGroupBy(func(ctx context.Context, r *streams.Record[string, string]) (string, string, error) {
			k, err := group(ctx, r)
			return k, r.Value, err
		}).Reduce(func(a, b string) string { return a + b }, func(a, _ string) string { return a }).To("out")
	}, "k=v@7#x=v@7"},
	{"left join", func(s streams.Stream[string, string]) {
		t := latest(s).MapValues(strings.ToUpper)
		s.TryLeftJoinTable(t, once2(func(r *streams.Record[string, string], row streams.Maybe[string]) string { return describe(r) + row.V })).To("out")
	}, "k=k=v@7#xV@7"},
	{"table join", func(s streams.Stream[string, string]) {
		t := latest(s)
		t.TryLeftJoin(t.Filter(func(v string) bool { return v == "" }),
			once2(func(r *streams.Record[string, string], x streams.Maybe[string]) string {
				return describe(r) + "~" + x.V
			})).To("out")
	}, "k=k=v@7#x~@7"},
	{"self join", func(s streams.Stream[string, string]) {
		s.TryJoin(s, once2(func(r *streams.Record[string, string], x string) string { return describe(r) + x }), streams.Within(time.Second)).To("out")
	}, "k=k=v@7#xv@7"},
	{"sessions", func(s streams.Stream[string, string]) {
		s.GroupByKey().Sessions(time.Second).TryAggregate(func() string { return "" },
			once2(func(r *streams.Record[string, string], a string) string { return a + describe(r) }),
			func(_ context.Context, a, b string) (string, error) { return a + b, nil }).
			Map(func(_ streams.Window, k, v string) (string, string) { return k, v }).To("out")
	}, "k=k=v@7#x@7"},
	{"cogroup", func(s streams.Stream[string, string]) {
		streams.Cogrouped[string, string]{}.TryWith(s.GroupByKey(), once2(func(r *streams.Record[string, string], a string) string { return a + describe(r) })).
			Aggregate(func() string { return "" }).To("out")
	}, "k=k=v@7#x@7"},
}

func TestTryFormsOfJoinsAndTables(t *testing.T) {
	for _, c := range tryOperators {
		t.Run(c.name, func(t *testing.T) {
			app := streams.New("try", streams.OnError(streams.Always(streams.Retry(1, time.Millisecond))))
			c.build(app.Stream[string, string]("in"))
			d := streamstest.New(t, app)
			d.In[string, string]("in").At(time.UnixMilli(7), "k", "v", streams.Header{Key: "h", Value: []byte("x")})
			var got []string
			for _, line := range timed(d.Topic("out", 0)) {
				got = append(got, strings.Replace(strings.Replace(line, " ", "=", 1), " @", "@", 1))
			}
			if strings.Join(got, "; ") != c.want {
				t.Errorf("got %q, want %q\n%s", got, c.want, app.Describe())
			}
		})
	}
}
