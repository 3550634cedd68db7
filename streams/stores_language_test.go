package streams_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/state"
	"github.com/millrace/millrace/streams/streamstest"
)

// doing is a processor of one function.
type doing struct {
	idle[string, string]
	out *streams.Emitter[string, string]
	do  func(streams.TaskContext, *streams.Emitter[string, string], *streams.Record[string, string]) error
}

func (p *doing) Init(_ streams.TaskContext, out *streams.Emitter[string, string]) error {
	p.out = out
	return nil
}

func (p *doing) Process(c streams.TaskContext, r *streams.Record[string, string]) error {
	return p.do(c, p.out, r)
}

func do(s streams.Stream[string, string], f func(streams.TaskContext, *streams.Emitter[string, string], *streams.Record[string, string]) error, opts ...streams.Opt) streams.Stream[string, string] {
	return s.Process(func() streams.Processor[string, string, string, string] { return &doing{do: f} }, opts...)
}

func valuesOf[K any](rs []streams.Record[K, string]) []string {
	var all []string
	for _, r := range rs {
		all = append(all, r.Value)
	}
	return all
}

// More keys than the cache holds: the one that is unchanged the longest goes first,
// the others at the commit; and a crash before it sends nothing twice.
func TestCachedHoldsSoManyKeys(t *testing.T) {
	t.Parallel()
	job := func() *streams.App {
		app := streams.New("cached")
		app.Stream[string, string]("in").GroupByKey().Count(streams.As("n"), streams.Cached(2)).ToStream().
			MapValues(func(n int64) string { return fmt.Sprint(n) }).To("out")
		return app
	}
	d := streamstest.New(t, job(), streamstest.ManualCommit())
	in, out := d.In[string, string]("in"), d.Out[string, string]("out")
	for _, k := range []string{"a", "b", "a", "c", "a"} { // c drives b out
		in.Send(k, "")
	}
	d.Crash()
	if got := out.Next(); len(got) > 0 {
		t.Errorf("%v came before a commit", got)
	}
	d.Commit()
	var got []string
	for _, r := range out.Next() {
		got = append(got, r.Key+r.Value)
	}
	if want := []string{"b1", "c1", "a3"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	streamstest.EveryCrash(t, job, func(d *streamstest.Driver) {
		in := d.In[string, string]("in")
		for i := range 12 {
			in.Send(string(rune('a'+i*i%5)), "")
			if i%5 == 4 {
				d.Commit()
			}
		}
		d.Commit()
	}, streamstest.ManualCommit())
}

// A row that has outlived the retention is not found any more, and soon not kept.
func TestRetentionSweepsRows(t *testing.T) {
	t.Parallel()
	app := streams.New("forgetful")
	store := app.Store[string, string]("store", streams.Retention(time.Minute))
	do(app.Stream[string, string]("in"), func(c streams.TaskContext, out *streams.Emitter[string, string], r *streams.Record[string, string]) error {
		if r.Value != "" {
			return store.In(c).Put(r.Key, r.Value)
		}
		v, ok, err := store.In(c).Get(r.Key)
		out.Emit(r.Key, fmt.Sprint(v, ok))
		return err
	}, streams.Use(store)).To("out")
	d := streamstest.New(t, app)
	in, out := d.In[string, string]("in"), d.Out[string, string]("out")
	start := time.UnixMilli(1_000_000)
	const old = 500
	for i := range old {
		in.At(start, fmt.Sprintf("old-%03d", i), "v")
	}
	ask := func(at time.Time, key, want string) {
		t.Helper()
		in.At(at, key, "")
		if got := valuesOf(out.Next()); !slices.Equal(got, []string{want}) {
			t.Errorf("at %v: %q, want %q", at, got, want)
		}
	}
	ask(start.Add(time.Minute-time.Millisecond), "old-001", "vtrue")
	ask(start.Add(time.Minute), "old-001", "false")
	// The sweep looks at 64 rows for each 16 that are written: all are looked at when
	// a third as many again were written.
	for i := range 2 * (old / 4) {
		in.At(start.Add(time.Minute), fmt.Sprintf("new-%03d", i), "v")
	}
	left := map[bool]int{}
	for _, r := range d.Rows[string, string]("store") {
		left[strings.HasPrefix(r.Key, "old")]++
	}
	if want := map[bool]int{false: 2 * (old / 4)}; !maps.Equal(left, want) {
		t.Errorf("old rows and new ones are %v, want %v", left, want)
	}
	d.Crash() // compares the store with its changelog
	ask(start.Add(time.Minute), "new-001", "vtrue")
}

func TestStreamOfTopicsGoesByTime(t *testing.T) {
	t.Parallel()
	app := streams.New("merged")
	app.StreamOf[string, string]([]string{"a", "b", "c"}).To("out")
	d := streamstest.New(t, app, streamstest.ManualCommit())
	for i, topic := range []string{"c", "a", "b", "a", "c", "b"} {
		d.In[string, string](topic).At(time.UnixMilli(int64(100-10*i/2*2)), "k", fmt.Sprint(topic, i))
	}
	out := d.Out[string, string]("out")
	d.Commit()
	// Each topic in its own order; among the next of each, the lowest time first.
	if got, want := strings.Join(valuesOf(out.Next()), " "), "b2 b5 a1 a3 c0 c4"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	bad := streams.New("none")
	bad.StreamOf[string, string](nil).To("out")
	if _, err := bad.Topology(); err == nil || !strings.Contains(err.Error(), "no topic is given") {
		t.Errorf("no topics: %v", err)
	}
}

// What is sent to a child goes there alone, what is sent to all goes everywhere.
func TestChildGetsWhatIsSentToIt(t *testing.T) {
	t.Parallel()
	app := streams.New("children")
	p := do(app.Stream[string, string]("in"), func(_ streams.TaskContext, out *streams.Emitter[string, string], r *streams.Record[string, string]) error {
		switch r.Value {
		case "left", "right":
			out.ForwardTo(r.Value, *r)
		default:
			out.Emit(r.Key, r.Value)
		}
		return nil
	})
	p.Child("left").To("left")
	p.Child("right").To("right")
	p.To("rest")
	d := streamstest.New(t, app)
	in := d.In[string, string]("in")
	for _, v := range []string{"left", "all", "right", "left"} {
		in.Send("k", v)
	}
	for topic, want := range map[string][]string{"left": {"left", "all", "left"}, "right": {"all", "right"}, "rest": {"all"}} {
		if got := valuesOf(d.Out[string, string](topic).Records()); !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q", topic, got, want)
		}
	}
	bad := streams.New("orphan")
	bad.Stream[string, string]("in").Child("x").To("out")
	if _, err := bad.Topology(); err == nil || !strings.Contains(err.Error(), "only a processor has children") {
		t.Errorf("a child of a stream: %v", err)
	}
}

// Late records are written as they came, with where from and why, once, also over
// crashes.
func TestLateToKeepsWhatIsLate(t *testing.T) {
	t.Parallel()
	job := func() *streams.App {
		app := streams.New("late")
		app.Stream[string, string]("in").GroupByKey().Windowed(streams.Tumbling(10*time.Millisecond)).
			Count(streams.As("n"), streams.LateTo("late")).OnClose().Map(shown[int64]).To("out")
		return app
	}
	inputs := func(d *streamstest.Driver) {
		in := d.In[string, string]("in")
		for _, ms := range []int64{5, 25, 9, 21, 3, 40} {
			in.At(time.UnixMilli(ms), "k", fmt.Sprint(ms), streams.Header{Key: "own", Value: []byte("kept")})
		}
	}
	d := streamstest.New(t, job())
	late := d.Out[string, string]("late")
	inputs(d)
	got := late.Records()
	if vs := valuesOf(got); !slices.Equal(vs, []string{"9", "3"}) {
		t.Fatalf("late are %q, want 9 and 3", vs)
	}
	h := map[string]string{}
	for _, x := range got[0].Headers {
		h[x.Key] = string(x.Value)
	}
	want := map[string]string{"own": "kept", "__streams.late.topic": "in", "__streams.late.partition": "0", "__streams.late.offset": "2",
		"__streams.late.node": "n", "__streams.late.stream.time": "25"}
	if !maps.Equal(h, want) || got[0].Time.UnixMilli() != 9 {
		t.Errorf("headers %v at %v, want %v", h, got[0].Time, want)
	}
	if n := d.Dropped("n", "late"); n != 2 {
		t.Errorf("%d are counted as late, want 2", n)
	}
	streamstest.EveryCrash(t, job, inputs)
}

// A store without a changelog has no topic, and begins empty after a crash.
func TestUnloggedStoreBeginsEmpty(t *testing.T) {
	t.Parallel()
	app := streams.New("unlogged")
	seen := app.Store[string, string]("seen", streams.Logged(false))
	do(app.Stream[string, string]("in"), func(c streams.TaskContext, out *streams.Emitter[string, string], r *streams.Record[string, string]) error {
		before, was, err := seen.In(c).PutIfAbsent(r.Key, r.Value)
		out.Emit(r.Key, fmt.Sprint(before, was))
		return err
	}, streams.Use(seen)).To("out")
	if text := app.Describe(); strings.Contains(text, "unlogged-seen-changelog") || !strings.Contains(text, "no changelog") {
		t.Error(text)
	}
	d := streamstest.New(t, app)
	in, out := d.In[string, string]("in"), d.Out[string, string]("out")
	in.Send("k", "1")
	in.Send("k", "2")
	d.Crash()
	in.Send("k", "3")
	if got, want := valuesOf(out.Records()), []string{"false", "1true", "false"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestChangelogConfig(t *testing.T) {
	t.Parallel()
	build := func(opts ...streams.Opt) *streams.App {
		app := streams.New("configured")
		app.Stream[string, string]("in").GroupByKey().Count(append(opts, streams.As("n"))...).To("out")
		return app
	}
	top, err := build(streams.ChangelogConfig(map[string]string{"segment.bytes": "1000000"}),
		streams.ChangelogConfig(map[string]string{"delete.retention.ms": "5000"})).Topology()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"cleanup.policy": "compact", "message.timestamp.type": "CreateTime", "segment.bytes": "1000000", "delete.retention.ms": "5000"}
	if got := top.Internal[0].Config; top.Internal[0].Name != "configured-n-changelog" || !maps.Equal(got, want) {
		t.Errorf("%s has %v, want %v", top.Internal[0].Name, got, want)
	}
	for _, c := range []struct {
		opts []streams.Opt
		want string
	}{
		{[]streams.Opt{streams.ChangelogConfig(map[string]string{"cleanup.policy": "delete"})}, "must be compacted"},
		{[]streams.Opt{streams.ChangelogConfig(map[string]string{"a": "b"}), streams.Logged(false)}, "exclude each other"},
		{[]streams.Opt{streams.StoreIn(state.GoLevelDB()), streams.InMemory()}, "exclude each other"},
	} {
		if _, err := build(c.opts...).Topology(); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "node n") {
			t.Errorf("want %q, got %v", c.want, err)
		}
	}
	app := streams.New("source")
	app.Table[string, string]("rows", streams.Logged(false)).To("out")
	if _, err := app.Topology(); err == nil || !strings.Contains(err.Error(), "is the changelog of this table") {
		t.Errorf("a table's own topic: %v", err)
	}
}

// A store that nobody uses is a Use that was forgotten.
func TestDeclaredStoreWantsAUse(t *testing.T) {
	t.Parallel()
	app := streams.New("forgotten")
	app.Store[string, string]("rows")
	app.WindowStore[string, string]("windows", time.Minute, time.Hour)
	app.SessionStore[string, string]("sessions", 0)
	app.WindowStore[string, string]("short", time.Minute, time.Second)
	app.Stream[string, string]("in").To("out")
	_, err := app.Topology()
	for _, want := range []string{"rows is declared, but no operator uses it", "windows is declared", "sessions is declared",
		"session store sessions: retention is 0s", "window store short: retention is 1s, at least the size"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no word of %q in: %v", want, err)
		}
	}
}

func TestScansOfRows(t *testing.T) {
	t.Parallel()
	app := streams.New("scans")
	store := app.Store[string, string]("store")
	do(app.Stream[string, string]("in"), func(c streams.TaskContext, out *streams.Emitter[string, string], r *streams.Record[string, string]) error {
		s := store.In(c)
		if r.Key != "?" {
			return s.Put(r.Key, r.Value)
		}
		for _, rows := range []func(func(string, string) bool){s.Range("a", "c"), s.Backward("a", "c"), s.Prefix([]byte("b")), s.Prefix([]byte{0xff}), s.All(), s.AllBackward()} {
			line := ""
			for k, v := range rows {
				line += k + "=" + v + " "
			}
			out.Emit("", strings.TrimSpace(line))
		}
		return nil
	}, streams.Use(store)).To("out")
	d := streamstest.New(t, app)
	in, out := d.In[string, string]("in"), d.Out[string, string]("out")
	for i, k := range []string{"b", "c", "a", "ba", "b\xff", "\xff", "bb"} {
		in.Send(k, fmt.Sprint(i))
	}
	d.Crash()
	in.Send("b", "new")
	in.Send("?", "")
	want := []string{
		"a=2 b=new ba=3 bb=6 b\xff=4", "b\xff=4 bb=6 ba=3 b=new a=2", "b=new ba=3 bb=6 b\xff=4", "\xff=5",
		"a=2 b=new ba=3 bb=6 b\xff=4 c=1 \xff=5", "\xff=5 c=1 b\xff=4 bb=6 ba=3 b=new a=2",
	}
	if got := valuesOf(out.Next()); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
