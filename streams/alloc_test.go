package streams_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/internal/task"
	"github.com/millrace/millrace/streams/state"
)

// single makes the only task of an application, with output thrown away.
func single(t testing.TB, app *streams.App) task.Task {
	t.Helper()
	top, err := app.Topology()
	if err != nil {
		t.Fatal(err)
	}
	if len(top.Subs) != 1 {
		t.Fatalf("%d sub-topologies, want 1:\n%s", len(top.Subs), top.Text)
	}
	stores := map[string]state.Store{}
	tk, err := top.Subs[0].New(task.Env{
		Emit: func(*task.Out) error { return nil },
		Store: func(name string) (state.Store, error) {
			if stores[name] == nil {
				stores[name] = state.NewOverlay(state.NewMemory(), state.OverlayOptions{})
			}
			return stores[name], nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return tk
}

// Each application is given string keys and values: decoding those two costs
// the two allocations that are allowed; nothing after that may cost any.
var allocCases = []struct {
	name  string
	max   float64
	build func(*streams.App)
}{
	{"map and filter", 2, func(app *streams.App) {
		app.Stream[string, string]("in").
			Map(func(k, v string) (string, string) { return v, k }).
			Filter(func(v string) bool { return v != "" }).To("out")
	}},
	{"ten steps", 2, func(app *streams.App) {
		s := app.Stream[string, string]("in")
		for range 5 {
			s = s.Filter(func(v string) bool { return v != "" }).MapValues(func(v string) string { return v })
		}
		s.To("out")
	}},
	{"fixed types", 0, func(app *streams.App) {
		app.Stream[int64, int64]("in").MapValues(func(v int64) int64 { return v + 1 }).Filter(func(v int64) bool { return v != 0 }).To("out")
	}},
	{"count", 0, func(app *streams.App) {
		app.Stream[int64, int64]("in").GroupByKey().Count(streams.As("n")).To("out")
	}},
	{"windowed sum", 0, func(app *streams.App) {
		app.Stream[int64, int64]("in").GroupByKey().Windowed(streams.Tumbling(time.Hour)).
			Aggregate(streams.Sum(func(v int64) int64 { return v }), streams.As("n")).ToStream().To("out")
	}},
	{"peek, split, merge", 0, func(app *streams.App) {
		ways := app.Stream[int64, int64]("in").Peek(func(_, _ int64) {}).Split(streams.When(func(v int64) bool { return v < 0 }))
		ways[0].Merge(ways[1]).To("out")
	}},
	{"reduce", 0, func(app *streams.App) {
		app.Stream[int64, int64]("in").GroupByKey().Reduce(func(a, b int64) int64 { return a + b }, streams.As("n")).To("out")
	}},
	{"table: map, filter", 0, func(app *streams.App) {
		app.Stream[int64, int64]("in").ToTable(streams.As("t")).MapValues(func(v int64) int64 { return v + 1 }).
			Filter(func(v int64) bool { return v != 0 }).To("out")
	}},
	{"left join", 0, func(app *streams.App) {
		app.Stream[int64, int64]("in").LeftJoinTable(app.Table[int64, int64]("t").MapValues(func(v int64) int64 { return v }),
			func(v int64, row streams.Maybe[int64]) int64 { return v + row.V }).To("out")
	}},
	{"join", 0, func(app *streams.App) {
		app.Stream[int64, int64]("in").JoinTable(app.Table[int64, int64]("t"), func(v, row int64) int64 { return v + row }).To("out")
	}},
}

func TestAllocationsPerRecord(t *testing.T) {
	for _, c := range allocCases {
		t.Run(c.name, func(t *testing.T) {
			app := streams.New("alloc")
			c.build(app)
			tk := single(t, app)
			key, value := []byte("12345678"), []byte("abcdefgh")
			if top, _ := app.Topology(); len(top.Subs[0].Sources) > 1 {
				if err := tk.Process(&task.Record{Topic: "t", TimeMs: 1, Key: key, Value: value}); err != nil {
					t.Fatal(err)
				}
			}
			r := &task.Record{Topic: "in", TimeMs: 1, Key: key, Value: value}
			got := testing.AllocsPerRun(1000, func() {
				r.Offset++
				r.TimeMs++
				if err := tk.Process(r); err != nil {
					t.Fatal(err)
				}
			})
			if got > c.max {
				t.Errorf("%v allocations per record, at most %v are allowed", got, c.max)
			}
		})
	}
}

func BenchmarkTask(b *testing.B) {
	for _, c := range allocCases {
		b.Run(c.name, func(b *testing.B) {
			app := streams.New("bench")
			c.build(app)
			tk := single(b, app)
			r := &task.Record{Topic: "in", TimeMs: 1, Key: []byte("12345678"), Value: []byte("abcdefgh")}
			b.ReportAllocs()
			for b.Loop() {
				r.TimeMs++
				if err := tk.Process(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkChain shows what one more step costs.
func BenchmarkChain(b *testing.B) {
	for _, n := range []int{0, 1, 10, 20} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			app := streams.New("bench")
			s := app.Stream[int64, int64]("in")
			for range n {
				s = s.MapValues(func(v int64) int64 { return v + 1 })
			}
			s.Filter(func(int64) bool { return false }).To("out")
			tk := single(b, app)
			r := &task.Record{Topic: "in", TimeMs: 1, Key: []byte("12345678"), Value: []byte("abcdefgh")}
			for b.Loop() {
				if err := tk.Process(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
