package streams_test

import (
	"cmp"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/core/seedtest"
	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/streamstest"
)

// order is what a clerk is told to do: a verb, and a stretch of time.
type order struct {
	Verb     string
	Key      string
	Last     string // of a range of keys
	From, To int64
	Value    string
}

// clerk does what it is told to a store and writes down the answer.
type clerk struct {
	idle[string, string]
	out *streams.Emitter[string, string]
	do  func(streams.TaskContext, order) (string, error)
}

func (c *clerk) Init(_ streams.TaskContext, out *streams.Emitter[string, string]) error {
	c.out = out
	return nil
}

func (c *clerk) Process(x streams.TaskContext, r *streams.Record[string, order]) error {
	answer, err := c.do(x, r.Value)
	c.out.Emit(r.Key, answer)
	return err
}

// at is a time, 0 the open end.
func at(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func found[V any](v V, ok bool, err error) (string, error) {
	if !ok {
		return "none", err
	}
	return fmt.Sprint(v), err
}

func one[V any](rows iter.Seq2[streams.Window, V]) (string, error) {
	var all []string
	for w, v := range rows {
		all = append(all, fmt.Sprintf("%d-%d=%v", w.StartMs(), w.EndMs(), v))
	}
	return strings.Join(all, " "), nil
}

func many[V any](rows iter.Seq2[streams.Windowed[string], V]) (string, error) {
	var all []string
	for k, v := range rows {
		all = append(all, fmt.Sprintf("%s@%d-%d=%v", k.Key, k.Window.StartMs(), k.Window.EndMs(), v))
	}
	return strings.Join(all, " "), nil
}

func windowClerk(store streams.WindowRef[string, string]) func(streams.TaskContext, order) (string, error) {
	return func(c streams.TaskContext, o order) (string, error) {
		s := store.In(c)
		switch o.Verb {
		case "put":
			return "", s.Put(o.Key, at(o.From), o.Value)
		case "delete":
			return "", s.Delete(o.Key, at(o.From))
		case "get":
			return found(s.Get(o.Key, at(o.From)))
		case "fetch":
			return one(s.Fetch(o.Key, at(o.From), at(o.To)))
		case "backward":
			return one(s.Backward(o.Key, at(o.From), at(o.To)))
		case "all":
			return many(s.All(at(o.From), at(o.To)))
		case "allbackward":
			return many(s.AllBackward(at(o.From), at(o.To)))
		}
		return many(s.Range(o.Key, o.Last, at(o.From), at(o.To)))
	}
}

func sessionClerk(store streams.SessionRef[string, string]) func(streams.TaskContext, order) (string, error) {
	return func(c streams.TaskContext, o order) (string, error) {
		s := store.In(c)
		w := streams.Window{Start: at(o.From), End: at(o.To)}
		switch o.Verb {
		case "put":
			return "", s.Put(o.Key, w, o.Value)
		case "delete":
			return "", s.Delete(o.Key, w)
		case "get":
			return found(s.Get(o.Key, w))
		case "fetch":
			return one(s.Fetch(o.Key, at(o.From), at(o.To)))
		case "backward":
			return one(s.Backward(o.Key, at(o.From), at(o.To)))
		case "all":
			return many(s.All(at(o.From), at(o.To)))
		}
		return many(s.AllBackward(at(o.From), at(o.To)))
	}
}

// timedRow is a row of the model: it is kept by its time, which is the start of a
// window and the last millisecond of a session.
type timedRow struct {
	key       string
	from, to  int64
	time, seg int64
	value     string
}

// timedModel is a window or session store as one would write it without a thought
// for cost.
type timedModel struct {
	sessions  bool
	retention int64
	segment   int64
	now       int64
	rows      []timedRow
}

func (m *timedModel) is(r timedRow, o order) bool {
	return r.key == o.Key && r.from == o.From && (!m.sessions || r.to == o.To)
}

func (m *timedModel) do(o order) string {
	m.rows = slices.DeleteFunc(m.rows, func(r timedRow) bool { return r.time <= m.now-m.retention })
	switch o.Verb {
	case "put":
		r := timedRow{key: o.Key, from: o.From, to: o.From + 10, time: o.From, value: o.Value}
		if m.sessions {
			r.to, r.time = o.To, o.To-1
		}
		r.seg = r.time / m.segment
		m.now = max(m.now, r.time)
		m.rows = slices.DeleteFunc(m.rows, func(r timedRow) bool { return m.is(r, o) })
		m.rows = append(m.rows, r)
		return ""
	case "delete":
		m.rows = slices.DeleteFunc(m.rows, func(r timedRow) bool { return m.is(r, o) })
		return ""
	case "get":
		for _, r := range m.rows {
			if m.is(r, o) {
				return r.value
			}
		}
		return "none"
	}
	return m.list(o)
}

func (m *timedModel) list(o order) string {
	slices.SortFunc(m.rows, func(a, b timedRow) int {
		return cmp.Or(cmp.Compare(a.seg, b.seg), cmp.Compare(len(a.key), len(b.key)), cmp.Compare(a.key, b.key), cmp.Compare(a.time, b.time), cmp.Compare(a.from, b.from))
	})
	alone := o.Verb == "fetch" || o.Verb == "backward"
	var all []string
	for _, r := range m.rows {
		in := r.from >= o.From && (o.To == 0 || r.from < o.To)
		if m.sessions {
			in = r.time >= o.From && (o.To == 0 || r.from < o.To)
		}
		switch {
		case !in, alone && r.key != o.Key, o.Verb == "range" && (r.key < o.Key || r.key >= o.Last):
		case alone:
			all = append(all, fmt.Sprintf("%d-%d=%s", r.from, r.to, r.value))
		default:
			all = append(all, fmt.Sprintf("%s@%d-%d=%s", r.key, r.from, r.to, r.value))
		}
	}
	if strings.HasSuffix(o.Verb, "backward") {
		slices.Reverse(all)
	}
	return strings.Join(all, " ")
}

// Window and session stores do what their model does, whatever they are told, over
// crashes and beyond their retention.
func TestTimedStoresAgainstTheirModel(t *testing.T) {
	t.Parallel()
	const retention = 3 * time.Second
	verbs := []string{"put", "put", "put", "put", "put", "delete", "get", "fetch", "backward", "all", "allbackward", "range"}
	for name, c := range map[string]struct {
		sessions bool
		verbs    []string
		build    func(app *streams.App) (func(streams.TaskContext, order) (string, error), streams.StoreRef)
	}{
		"windows": {false, verbs, func(app *streams.App) (func(streams.TaskContext, order) (string, error), streams.StoreRef) {
			s := app.WindowStore[string, string]("store", 10*time.Millisecond, retention)
			return windowClerk(s), s
		}},
		"sessions": {true, verbs[:len(verbs)-1], func(app *streams.App) (func(streams.TaskContext, order) (string, error), streams.StoreRef) {
			s := app.SessionStore[string, string]("store", retention, streams.InMemory())
			return sessionClerk(s), s
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := seedtest.New(t)
			rnd := rand.New(rand.NewPCG(seed, 2))
			app := streams.New("clerks")
			do, store := c.build(app)
			app.Stream[string, order]("in").
				Process(func() streams.Processor[string, order, string, string] { return &clerk{do: do} }, streams.Use(store)).To("out")
			d := streamstest.New(t, app)
			in, out := d.In[string, order]("in"), d.Out[string, string]("out")
			m := &timedModel{sessions: c.sessions, retention: retention.Milliseconds(), segment: retention.Milliseconds() / 2}
			base := int64(1_000_000)
			answers := 0
			for step := range 1500 {
				base += rnd.Int64N(12)
				o := order{Verb: c.verbs[rnd.IntN(len(c.verbs))], Key: strings.Repeat("k", 1+rnd.IntN(3)), Last: "kkk", Value: fmt.Sprint(step)}
				o.From = base - rnd.Int64N(4500)
				o.To = o.From + 1 + rnd.Int64N(2000)
				if rnd.IntN(10) == 0 && o.Verb != "put" && o.Verb != "delete" && o.Verb != "get" {
					o.To = 0
				}
				if rnd.IntN(60) == 0 {
					d.Crash()
				}
				in.Send("one", o)
				want := m.do(o)
				got := out.Next()
				if len(got) != 1 || got[0].Value != want {
					t.Fatalf("seed %d step %d: %+v at %d: %v, want %q", seed, step, o, m.now, got, want)
				}
				if want != "" && want != "none" {
					answers++
				}
			}
			if answers < 100 || d.Dropped("in.process", "late") == 0 {
				t.Errorf("%d answers, %d late: the test shows little", answers, d.Dropped("in.process", "late"))
			}
		})
	}
}
