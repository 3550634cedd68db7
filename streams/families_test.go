package streams_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/millrace/millrace/streams"
)

// family is an application of one family of operators with state, for the tests that
// kill it. Its topics begin with its name; l and r are inputs.
type family struct {
	name  string
	build func(app *streams.App, topic func(string) string)
	// outputs are topics and what of them does not depend on how the partitions of
	// the inputs take turns.
	outputs map[string]judged
	// right is the share of records for r in percent, deletions that of null values.
	right, deletions int
	// first: r is there before l, as a global table.
	first bool
}

// judged says what of a topic is compared.
type judged int

const (
	updates judged = iota // each record, in order per key
	results               // all records, in any order
	rows                  // the last value of each key
)

// given is one input record. A nil value is null.
type given struct {
	topic, key string
	value      []byte
	ts         int64
}

// inputs are n records in no good order of time, and some at the end that close what
// is open in all partitions.
func (f *family) inputs(rnd *rand.Rand, n int) (main, closing []given) {
	for i := range n {
		g := given{f.topic("l"), "k" + strconv.Itoa(rnd.IntN(9)), fmt.Appendf(nil, "%c%d", 'a'+rnd.IntN(5), i), max(0, int64(5*i)-rnd.Int64N(60))}
		if f.first && i < n/4 || !f.first && rnd.IntN(100) < f.right {
			g.topic = f.topic("r")
			if rnd.IntN(2) == 0 {
				g.key = string(rune('a' + rnd.IntN(5))) // what values of l refer to
			}
		}
		if rnd.IntN(100) < f.deletions {
			g.value = nil
		}
		main = append(main, g)
	}
	for i := range 8 {
		closing = append(closing, given{f.topic("l"), fmt.Sprint("z", i), []byte("zz"), (2 * time.Hour).Milliseconds()})
	}
	return main, closing
}

func (f *family) topic(name string) string { return f.name + "-" + name }

func (f *family) app() *streams.App {
	app := streams.New(f.name)
	f.build(app, f.topic)
	return app
}

// shown is a row of a window's table.
func shown[V any](w streams.Window, k string, v V) (string, string) {
	return fmt.Sprintf("%s [%d,%d)", k, w.StartMs(), w.EndMs()), fmt.Sprint(v)
}

// aggregated writes the updates and the final results of windows.
func aggregated[V any](w streams.WTable[string, V], topic func(string) string) {
	w.Map(shown[V]).To(topic("updates"))
	w.OnClose().Map(shown[V]).To(topic("finals"))
}

func both(l, r string) string { return l + "+" + r }

func maybe(m streams.Maybe[string]) string {
	if !m.OK {
		return "~"
	}
	return m.V
}

const long = time.Hour // grace that nothing is too late for

var around = streams.Within(30*time.Millisecond, streams.Grace(long), streams.Strict())

var windowsOut = map[string]judged{"updates": updates, "finals": updates}

var families = []*family{
	{name: "hopping", outputs: windowsOut, build: func(app *streams.App, topic func(string) string) {
		w := streams.Hopping(40*time.Millisecond, 20*time.Millisecond, streams.Grace(30*time.Millisecond))
		aggregated(app.Stream[string, string](topic("l")).GroupByKey().Windowed(w).Count(streams.As("n")), topic)
	}},
	{name: "sliding", outputs: windowsOut, build: func(app *streams.App, topic func(string) string) {
		w := streams.Sliding(40*time.Millisecond, streams.Grace(30*time.Millisecond))
		aggregated(app.Stream[string, string](topic("l")).GroupByKey().Windowed(w).Count(streams.As("n")), topic)
	}},
	{name: "sessions", outputs: windowsOut, build: func(app *streams.App, topic func(string) string) {
		join := func(a, b string) string { return a + "," + b }
		agg := streams.MergeFold(func() string { return "" }, join, join)
		aggregated(app.Stream[string, string](topic("l")).GroupByKey().Sessions(50*time.Millisecond, streams.Grace(30*time.Millisecond)).
			Aggregate(agg, streams.As("s")), topic)
	}},
	{name: "inner", right: 50, outputs: map[string]judged{"out": results, "self": results}, build: func(app *streams.App, topic func(string) string) {
		l, r := app.Stream[string, string](topic("l")), app.Stream[string, string](topic("r"))
		l.Join(r, both, around, streams.As("join")).To(topic("out"))
		l.Join(l, both, around, streams.As("self-join")).To(topic("self"))
	}},
	{name: "left", right: 50, outputs: map[string]judged{"out": results}, build: func(app *streams.App, topic func(string) string) {
		l, r := app.Stream[string, string](topic("l")), app.Stream[string, string](topic("r"))
		l.LeftJoin(r, func(l string, r streams.Maybe[string]) string { return l + "+" + maybe(r) }, around, streams.As("join")).To(topic("out"))
	}},
	{name: "outer", right: 50, outputs: map[string]judged{"out": results}, build: func(app *streams.App, topic func(string) string) {
		l, r := app.Stream[string, string](topic("l")), app.Stream[string, string](topic("r"))
		l.OuterJoin(r, func(l, r streams.Maybe[string]) string { return maybe(l) + "+" + maybe(r) }, around, streams.As("join")).To(topic("out"))
	}},
	{name: "tables", right: 50, deletions: 25, outputs: map[string]judged{"inner": rows, "left": rows, "outer": rows},
		build: func(app *streams.App, topic func(string) string) {
			l, r := app.Table[string, string](topic("l")), app.Table[string, string](topic("r"))
			l.Join(r, both, streams.As("inner")).To(topic("inner"))
			l.LeftJoin(r, func(l string, r streams.Maybe[string]) string { return l + "+" + maybe(r) }, streams.As("left")).To(topic("left"))
			l.OuterJoin(r, func(l, r streams.Maybe[string]) string { return maybe(l) + "+" + maybe(r) }, streams.As("outer")).To(topic("outer"))
		}},
	{name: "foreign", right: 40, deletions: 25, outputs: map[string]judged{"inner": rows, "left": rows},
		build: func(app *streams.App, topic func(string) string) {
			l, r := app.Table[string, string](topic("l")), app.Table[string, string](topic("r"))
			l.JoinFK(r, func(_, v string) string { return v[:1] }, both, streams.As("inner")).To(topic("inner"))
			fk := func(_, v string) streams.Maybe[string] { return streams.Maybe[string]{V: v[:1], OK: v[0] != 'a'} }
			l.LeftJoinFK(r, fk, func(l string, r streams.Maybe[string]) string { return l + "+" + maybe(r) }, streams.As("left")).To(topic("left"))
		}},
	{name: "regrouped", deletions: 25, outputs: map[string]judged{"count": rows, "total": rows}, build: func(app *streams.App, topic func(string) string) {
		g := app.Table[string, string](topic("l")).GroupBy(func(k, v string) (string, string) { return v[:1], v + k }, streams.As("g"))
		g.Count(streams.As("count")).To(topic("count"))
		g.Aggregate(streams.Total(func(v string) int64 { return int64(len(v)) }), streams.As("total")).To(topic("total"))
	}},
	{name: "cogroup", right: 50, outputs: map[string]judged{"out": rows, "windows": rows}, build: func(app *streams.App, topic func(string) string) {
		l, r := app.Stream[string, string](topic("l")).GroupByKey(), app.Stream[string, string](topic("r")).GroupByKey()
		c := l.Cogroup(func(a int64, v string) int64 { return a + int64(len(v)) }).With(r, func(a int64, v string) int64 { return a + 1000*int64(v[0]) })
		c.Aggregate(func() int64 { return 1 }, streams.As("sum")).To(topic("out"))
		c.Windowed(streams.Tumbling(50*time.Millisecond, streams.Grace(long))).Aggregate(func() int64 { return 1 }, streams.As("windows")).
			Map(shown[int64]).To(topic("windows"))
	}},
	{name: "suppress", outputs: map[string]judged{"held": updates, "closed": updates}, build: func(app *streams.App, topic func(string) string) {
		g := app.Stream[string, string](topic("l")).GroupByKey()
		g.Count(streams.As("n")).Suppress(50*time.Millisecond, streams.As("held"), streams.MaxRecords(6)).To(topic("held"))
		g.Windowed(streams.Tumbling(40*time.Millisecond, streams.Grace(20*time.Millisecond))).Count(streams.As("w")).Filter(func(n int64) bool { return n != 2 }).
			SuppressUntilClose(streams.As("until")).Map(shown[int64]).To(topic("closed"))
	}},
	{name: "processor", outputs: map[string]judged{"out": updates}, build: func(app *streams.App, topic func(string) string) {
		p := reminder{timers: app.Timers[string]("due", streams.StreamTime), kv: app.Store[string, string]("kv"),
			versions: app.VersionedStore[string, string]("versions", long)}
		app.Stream[string, string](topic("l")).Process(func() streams.Processor[string, string, string, string] { x := p; return &x },
			streams.Use(p.timers, p.kv, p.versions)).To(topic("out"))
	}},
	{name: "versioned", right: 30, outputs: map[string]judged{"out": results}, build: func(app *streams.App, topic func(string) string) {
		r := app.Table[string, string](topic("r"), streams.Versioned(24*time.Hour))
		app.Stream[string, string](topic("l")).LeftJoinTable(r, func(l string, r streams.Maybe[string]) string { return l + "+" + maybe(r) },
			streams.Grace(long), streams.As("join")).To(topic("out"))
	}},
	{name: "global", first: true, outputs: map[string]judged{"out": updates, "n": updates}, build: func(app *streams.App, topic func(string) string) {
		s := app.Stream[string, string](topic("l")).LeftJoinGlobal(app.GlobalTable[string, string](topic("r")),
			func(_, v string) string { return v[:1] }, func(l string, r streams.Maybe[string]) string { return l + "+" + maybe(r) })
		s.To(topic("out"))
		s.GroupByKey().Count(streams.As("count")).To(topic("n"))
	}},
	{name: "cached", outputs: map[string]judged{"count": rows, "letters": rows, "lengths": rows}, build: func(app *streams.App, topic func(string) string) {
		l := app.Stream[string, string](topic("l"))
		n := l.GroupByKey().Count(streams.As("n"), streams.Cached(4))
		n.To(topic("count"))
		n.GroupBy(func(_ string, n int64) (string, int64) { return strconv.FormatInt(n%7, 10), n }, streams.As("by-rest")).
			Count(streams.As("lengths"), streams.Cached(100)).To(topic("lengths"))
		l.GroupBy(func(v string) string { return v[:1] }, streams.As("by-letter")).Count(streams.As("letters"), streams.Cached(100)).To(topic("letters"))
	}},
}

// reminder tells of a key, once stream time is 40 ms past its last record, what the
// last was and what it was 30 ms before.
type reminder struct {
	timers   streams.TimersRef[string]
	kv       streams.KVRef[string, string]
	versions streams.VersionedRef[string, string]
	out      *streams.Emitter[string, string]
}

func (p *reminder) Init(_ streams.TaskContext, out *streams.Emitter[string, string]) error {
	p.out = out
	out.OnTimer(p.timers, func(c streams.TaskContext, k string, due time.Time) error {
		v, _, err := p.kv.In(c).Get(k)
		if err != nil {
			return err
		}
		old, from, ok, err := p.versions.In(c).GetAsOf(k, due.Add(-70*time.Millisecond))
		if err != nil {
			return err
		}
		out.Emit(k, fmt.Sprintf("%s is quiet at %d, was %s from %d, %v", v, due.UnixMilli(), old, from.UnixMilli(), ok))
		return p.kv.In(c).Delete(k)
	})
	return nil
}

func (p *reminder) Process(c streams.TaskContext, r *streams.Record[string, string]) error {
	if _, _, err := p.versions.In(c).Put(r.Key, r.Value, r.Time); err != nil {
		return err
	}
	v, _, err := p.kv.In(c).Get(r.Key)
	if err != nil {
		return err
	}
	p.out.Emit(r.Key, v+","+r.Value)
	if err := p.kv.In(c).Put(r.Key, v+","+r.Value); err != nil {
		return err
	}
	return p.timers.In(c).Set(r.Key, r.Time.Add(40*time.Millisecond))
}

func (p *reminder) Close() error { return nil }
