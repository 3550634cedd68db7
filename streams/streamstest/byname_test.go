package streamstest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/streamstest"
)

// router counts its records in a store and sends each to one of two nodes.
type router struct {
	seen streams.KVRef[string, int64]
	out  *streams.Emitter[string, string]
}

func (p *router) Init(_ streams.TaskContext, out *streams.Emitter[string, string]) error {
	p.out = out
	return nil
}

func (p *router) Process(c streams.TaskContext, r *streams.Record[string, string]) error {
	kv := p.seen.In(c)
	n, _, err := kv.Get(r.Key)
	if err != nil {
		return err
	}
	child := "odd"
	if n++; n%2 == 0 {
		child = "even"
	}
	p.out.ForwardTo(child, streams.Record[string, string]{Key: r.Key, Value: fmt.Sprint(r.Value, n)})
	return kv.Put(r.Key, n)
}

func (p *router) Close() error { return nil }

func byName() *streams.App {
	app := streams.New("a")
	seen := app.Store[string, int64]("seen")
	app.AddSource[string, string]("in", []string{"one", "two"})
	app.AddProcessor("route", func() streams.Processor[string, string, string, string] { return &router{seen: seen} }, []string{"in"}, streams.Use(seen))
	app.AddSink[string, string]("odd", "odds", []string{"route"})
	app.AddSink[string, string]("even", "evens", []string{"route"})
	app.AddSink[string, string]("copy", "copies", []string{"in"})
	return app
}

// TestTopologyByNames: nodes put together by their names do as those of the DSL.
func TestTopologyByNames(t *testing.T) {
	t.Parallel()
	streamstest.EveryCrash(t, byName, func(d *streamstest.Driver) {
		d.In[string, string]("one").Send("k", "x")
		d.In[string, string]("two").Send("k", "y")
	})
	d := streamstest.New(t, byName())
	d.In[string, string]("one").Send("k", "x")
	d.In[string, string]("two").Send("k", "y")
	d.In[string, string]("two").Send("k", "z")
	var got []string
	for _, r := range d.Written() {
		got = append(got, r.Topic+"="+string(r.Value))
	}
	if want := "odds=x1 copies=x evens=y2 copies=y odds=z3 copies=z"; strings.Join(got, " ") != want {
		t.Errorf("written is %v, want %s", got, want)
	}
	if text := byName().Describe(); !strings.Contains(text, "process route") || !strings.Contains(text, "reads store seen") || strings.Contains(text, "repartition") {
		t.Errorf("described as\n%s", text)
	}
}

func TestTopologyByNamesMistakes(t *testing.T) {
	t.Parallel()
	app := streams.New("a")
	app.AddSource[string, int]("numbers", []string{"n"})
	app.AddSource[string, int]("nothing", nil)
	app.AddSink[string, string]("out", "out", []string{"numbers", "nobody"})
	app.AddSink[string, int]("alone", "alone", nil)
	app.AddSource[string, int]("numbers", []string{"m"})
	_, err := app.Topology()
	for _, want := range []string{
		"source nothing: no topic is given",
		"node out: it takes (string, string), its parent numbers sends [string,int]",
		"node out: its parent nobody has not been added before it, or sends nothing",
		"node alone: it has no parent",
		"node numbers: name is used twice",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

// TestPitfall32 (ksql#4579): late rows do not vanish without a trace: the counter, and
// the topic for them, have as many as came late.
func TestPitfall32(t *testing.T) {
	t.Parallel()
	app := streams.New("a")
	app.Stream[string, string]("in").GroupByKey().Windowed(streams.Tumbling(time.Minute, streams.Grace(10*time.Second))).
		Count(streams.As("n"), streams.LateTo("late")).
		Map(func(_ streams.Window, k string, n int64) (string, int64) { return k, n }).To("out")
	d := streamstest.New(t, app)
	start := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	late := 0
	for i, at := range []time.Duration{0, 69999 * time.Millisecond, 59 * time.Second, 70 * time.Second, 59 * time.Second, 60 * time.Second, 0} {
		d.In[string, string]("in").At(start.Add(at), "k", fmt.Sprint(i))
		if at < time.Minute && i > 3 { // stream time has reached the window's end plus grace
			late++
		}
	}
	topic := 0
	for _, r := range d.Written() {
		if r.Topic == "late" {
			topic++
		}
	}
	if n := d.Dropped("n", "late"); n != int64(late) || topic != late || late != 2 {
		t.Errorf("%d records came late: %d are counted, %d are in the topic", late, n, topic)
	}
}
