package streamstest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/streamstest"
)

// running sums up numbers of a key: in a store, or, wrongly, in a map of its own.
type running struct {
	out    *streams.Emitter[string, int64]
	store  streams.KVRef[string, int64]
	broken map[string]int64
}

func (p *running) Init(_ streams.TaskContext, out *streams.Emitter[string, int64]) error {
	p.out = out
	return nil
}

func (p *running) Process(c streams.TaskContext, r *streams.Record[string, int64]) error {
	if p.broken != nil {
		p.broken[r.Key] += r.Value
		p.out.Emit(r.Key, p.broken[r.Key])
		return nil
	}
	kv := p.store.In(c)
	sum, _, err := kv.Get(r.Key)
	if err != nil {
		return err
	}
	p.out.Emit(r.Key, sum+r.Value)
	return kv.Put(r.Key, sum+r.Value)
}

func (p *running) Close() error { return nil }

func sums(memory func() map[string]int64) func() *streams.App {
	return func() *streams.App {
		app := streams.New("sums")
		sums := app.Store[string, int64]("sums")
		app.Stream[string, int64]("in").Process(func() streams.Processor[string, int64, string, int64] {
			return &running{store: sums, broken: memory()}
		}, streams.Use(sums)).To("out")
		return app
	}
}

func numbers(d *streamstest.Driver) {
	in := d.In[string, int64]("in")
	for i := range int64(6) {
		in.At(time.UnixMilli(i), string(rune('a'+i%2)), i)
		if i%3 == 2 {
			d.Commit()
		}
	}
}

// TestEveryCrashFindsStateOutsideOfStores: each kind of job that a crash breaks.
func TestEveryCrashFindsStateOutsideOfStores(t *testing.T) {
	ever := map[string]int64{}
	calls := int64(0)
	for name, x := range map[string]struct {
		job  func() *streams.App
		want string
	}{
		"in a store":              {sums(func() map[string]int64 { return nil }), ""},
		"in a processor":          {sums(func() map[string]int64 { return map[string]int64{} }), "a crash at step"},
		"outside of the job":      {sums(func() map[string]int64 { return ever }), "two runs without a crash differ"},
		"in a variable of it":     {variable, "a crash at step"},
		"another job each time":   {func() *streams.App { calls++; return named(calls) }, "the application is another one"},
		"chance instead of state": {func() *streams.App { return chance(&calls) }, "two runs without a crash differ"},
	} {
		for _, opts := range [][]streamstest.Option{nil, {streamstest.ManualCommit()}, {streamstest.ManualCommit(), streamstest.Partitions(3)}} {
			said := failing(func(t streamstest.TB) { streamstest.EveryCrash(t, x.job, numbers, opts...) })
			if (x.want == "") != (said == "") || !strings.Contains(said, x.want) {
				t.Errorf("state %s: said %q, want %q", name, said, x.want)
			}
		}
	}
}

// variable keeps a running sum in a variable of the function that makes the job.
func variable() *streams.App {
	app, sum := streams.New("v"), int64(0)
	app.Stream[string, int64]("in").MapValues(func(n int64) int64 { sum += n; return sum }).To("out")
	return app
}

func named(n int64) *streams.App {
	app := streams.New("n")
	app.Stream[string, int64]("in").GroupByKey().Count(streams.As(fmt.Sprint("count", n))).To("out")
	return app
}

func chance(calls *int64) *streams.App {
	app := streams.New("c")
	app.Stream[string, int64]("in").MapValues(func(int64) int64 { *calls++; return *calls }).To("out")
	return app
}

// TestEveryCrashStepsThroughHops: a crash between any two of the commits that a
// record needs to come out.
func TestEveryCrashStepsThroughHops(t *testing.T) {
	streamstest.EveryCrash(t, counts, func(d *streamstest.Driver) {
		for i, v := range []string{"a", "B", "A", "b", "a"} {
			d.In[string, string]("in").At(time.UnixMilli(int64(i)), "", v)
		}
	}, streamstest.Partitions(2))
}

// failing is what a test would fail with.
func failing(test func(streamstest.TB)) (said string) {
	defer func() {
		if v := recover(); v != nil {
			said = fmt.Sprint(v)
		}
	}()
	test(stopping{})
	return ""
}

// stopping ends a test as testing.T does: what follows a Fatalf is not run.
type stopping struct{}

func (stopping) Helper()                           {}
func (stopping) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// A job whose state is in a store gives the same results wherever it crashes; in a
// test, pass t in place of nil. A job that keeps a count in a variable does not.
func ExampleEveryCrash() {
	inputs := func(d *streamstest.Driver) {
		in := d.In[string, string]("in")
		in.Send("ann", "x")
		in.Send("ann", "y")
	}
	streamstest.EveryCrash(nil, func() *streams.App {
		app := streams.New("good")
		app.Stream[string, string]("in").GroupByKey().Count(streams.As("n")).To("out")
		return app
	}, inputs)
	fmt.Println("a count in a store: the same after every crash")

	defer func() { fmt.Println(recover()) }()
	streamstest.EveryCrash(nil, func() *streams.App {
		app, n := streams.New("bad"), 0
		app.Stream[string, string]("in").MapValues(func(v string) string { n++; return fmt.Sprint(v, n) }).To("out")
		return app
	}, inputs)
	// Output:
	// a count in a store: the same after every crash
	// a crash at step 3 of 12, once a transaction was committed: topic out, key "ann":
	//  got  "x1"@946684800000 "y1"@946684800000
	// want  "x1"@946684800000 "y2"@946684800000
}
