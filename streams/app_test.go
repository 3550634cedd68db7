package streams_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/serde"
	"github.com/millrace/millrace/streams/streamstest"
	"github.com/millrace/millrace/streams/window"
)

func identity[T any](v T) T { return v }

// TestMistakesComeTogether: every mistake of a definition is in the one error.
func TestMistakesComeTogether(t *testing.T) {
	app := streams.New("bad app", streams.InMemory())
	s := app.Stream[string, chan int]("in")
	s.MapValues(func(chan int) string { return "" }, streams.KeySerde(serde.String)).To("out", streams.ValSerde(serde.Int64))
	n := app.Stream[string, string]("numbers")
	n.GroupByKey().Count(streams.As("same"))
	n.GroupByKey().Count(streams.As("same"))
	n.GroupByKey().Windowed(streams.Tumbling(time.Minute, streams.Grace(-1))).Count(streams.As("w"))
	n.GroupByKey().Windowed(streams.Tumbling(time.Minute, streams.As("x"))).Count(streams.As("o"))
	n.GroupByKey().Windowed(streams.Tumbling(time.Minute)).Count(streams.As("short"), streams.Retention(time.Second))
	app.Stream[streams.Windowed[string], string]("windows")
	n.Filter(func(string) bool { return true }, streams.As("a/b"))
	n.To("bad topic")
	other := streams.New("other")
	n.JoinTable(other.Table[string, string]("t"), func(v, _ string) string { return v })
	_, err := app.Topology()
	for _, want := range []string{
		`option InMemory has no effect here; possible: OnError`,
		`node in, value of type chan int: no serde for type chan int`,
		`map-values behind in: option KeySerde has no effect here; possible: As, OnError`,
		`node in.map-values.to: the value is of type string, its serde is a serde.wide[int64]`,
		`node same: name is used twice (a count and a count)`,
		`node o: option As has no effect here; possible: Grace`,
		`node w: window size 1m0s and grace -1ns must be whole milliseconds`,
		`node short: retention is 1s, at least size plus grace (1m0s) is needed`,
		`node windows, key of type window.Windowed[string]: window size unknown`,
		`node "a/b": character '/' is not allowed`,
		`node numbers.to: topic "bad topic": character ' ' is not allowed`,
		`node numbers.join-table: the table t belongs to another application`,
		`application id "bad app": character ' ' is not allowed`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q", want)
		}
	}
	if t.Failed() {
		t.Log(err)
	}
	if app.Describe() != err.Error() {
		t.Error("Describe does not show the mistakes")
	}
	if _, err := streams.New("empty").Topology(); err == nil || !strings.Contains(err.Error(), "the topology is empty") {
		t.Errorf("an empty application: %v", err)
	}
}

func TestNegativeGrace(t *testing.T) {
	app := streams.New("a")
	app.Stream[string, string]("in").GroupByKey().Windowed(streams.Tumbling(time.Minute, streams.Grace(-time.Second))).Count(streams.As("w"))
	if _, err := app.Topology(); err == nil || !strings.Contains(err.Error(), "node w: grace is -1000 ms") {
		t.Errorf("error is %v", err)
	}
}

func TestNothingIsAddedToABuiltTopology(t *testing.T) {
	app := streams.New("a")
	s := app.Stream[string, string]("in")
	s.To("out")
	if _, err := app.Topology(); err != nil {
		t.Fatal(err)
	}
	s.To("late")
	if _, err := app.Topology(); err == nil || !strings.Contains(err.Error(), "to late behind in was added after the topology had been built") {
		t.Errorf("error is %v", err)
	}
}

func TestNamesFollowThePath(t *testing.T) {
	app := streams.New("a")
	s := app.Stream[string, string]("in")
	s.Filter(func(string) bool { return true }).MapValues(identity[string]).To("x")
	s.Filter(func(string) bool { return true }).To("y")
	app.Stream[string, string]("in").Filter(func(string) bool { return true }).To("z") // the same stream
	app.Stream[string, []byte]("in").To("raw")                                         // another one
	k := s.SelectKey(identity[string])
	k.GroupByKey().Count().To("n")
	k.JoinTable(app.Table[string, string]("t"), func(v, _ string) string { return v }).To("j")
	k.To("k")
	got := app.Describe()
	for _, want := range []string{
		"    filter in.filter (", "      map-values in.filter.map-values (", "        to in.filter.map-values.to (",
		"    filter in.filter-2 (", "    filter in.filter-3 (",
		"  stream in-2 (string, []uint8) from topic in\n", "    to in-2.to (",
		"    select-key in.select-key (",
		"      repartition in.select-key.repartition (string, string) to topic a-in.select-key-repartition\n",
		"  repartitioned in.select-key.repartitioned (string, string) from topic a-in.select-key-repartition\n",
		"    count in.select-key.count (string, int64), store in.select-key.count\n",
		"    join-table in.select-key.join-table (string, string), reads store t\n",
		"      to in.select-key.to (",
		"  in.select-key.count: rows (string, int64); on disk, changelog a-in.select-key.count-changelog\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the description does not have %q", want)
		}
	}
	if n := strings.Count(got, "repartition (string, string)\n"); n != 1 {
		t.Errorf("%d repartition topics, want one that both share", n)
	}
	if t.Failed() {
		t.Log(got)
	}
}

func TestCopartition(t *testing.T) {
	build := func() *streams.App {
		app := streams.New("a")
		app.Stream[string, string]("s").JoinTable(app.Table[string, string]("t"), func(v, _ string) string { return v }).To("out")
		return app
	}
	var fatal fatals
	streamstest.New(&fatal, build(), streamstest.TopicPartitions("s", 2), streamstest.TopicPartitions("t", 3))
	if want := `sub-topology "s" joins topics that must have the same number of partitions: s has 2, t has 3`; !strings.Contains(string(fatal), want) {
		t.Errorf("error is %q, want %q", fatal, want)
	}
	app := streams.New("a")
	app.Stream[string, string]("s").SelectKey(identity[string], streams.As("k")).
		JoinTable(app.Table[string, string]("t"), func(v, row string) string { return v + row }).To("out")
	d := streamstest.New(t, app, streamstest.TopicPartitions("s", 2), streamstest.TopicPartitions("t", 5))
	for i := range 20 {
		d.In[string, string]("t").Send(fmt.Sprint(i), "!")
		d.In[string, string]("s").Send("", fmt.Sprint(i))
	}
	if got := len(d.Out[string, string]("out").Records()); got != 20 {
		t.Errorf("%d of 20 records found their row: partitions of stream and table differ", got)
	}
}

// fatals keeps what a driver would fail a test with.
type fatals string

func (f *fatals) Helper()                           {}
func (f *fatals) Fatalf(format string, args ...any) { *f += fatals(fmt.Sprintf(format, args...)) }

func TestNullsOfTypesWithoutNil(t *testing.T) {
	app := streams.New("a")
	s := app.Stream[string, string]("in")
	s.Filter(func(string) bool { return true }).To("filter")
	s.MapValues(func(v string) string { return v + "!" }).To("map-values")
	s.Map(func(k, v string) (string, string) { return k + "?", v }).To("map")
	s.FlatMapValues(strings.FieldsSeq).To("flat")
	s.SelectKey(identity[string]).To("select-key")
	s.GroupByKey().Windowed(streams.Tumbling(time.Hour)).Aggregate(streams.Sum(func(string) int64 { return 1 }), streams.As("sum")).
		Map(func(_ streams.Window, k string, n int64) (string, int64) { return k, n }).To("sum")
	d := streamstest.New(t, app)
	in := d.In[string, string]("in")
	in.Delete(d.Now(), "k")
	in.NoKey(d.Now(), "v")
	show := func(topic string) string {
		var b strings.Builder
		for _, r := range d.Topic(topic, 0) {
			part := func(p []byte) string {
				if p == nil {
					return "null"
				}
				return string(p)
			}
			b.WriteString(part(r.Key) + "=" + part(r.Value) + " ")
		}
		return b.String()
	}
	for topic, want := range map[string]string{
		"filter": "null=v ", "map-values": "k=null null=v! ", "map": "?=v ", "flat": "null=v ", "select-key": "null=null v=v ", "sum": "",
	} {
		if got := show(topic); got != want {
			t.Errorf("%s is %q, want %q", topic, got, want)
		}
	}
	if d.Dropped("sum", "null value") != 1 || d.Dropped("sum", "null key") != 1 {
		t.Error("the aggregation did not count what it dropped")
	}
}

func TestRetention(t *testing.T) {
	for _, c := range []struct {
		retention time.Duration
		rows      string
	}{
		{0, "30 40 "}, {15 * time.Millisecond, "30 40 "}, {40 * time.Millisecond, "10 20 30 40 "}, {time.Hour, "0 10 20 30 40 "},
	} {
		app := streams.New("a")
		var opts []streams.Opt
		if c.retention > 0 {
			opts = append(opts, streams.Retention(c.retention))
		}
		app.Stream[string, string]("in").GroupByKey().
			Windowed(streams.Tumbling(10*time.Millisecond, streams.Grace(5*time.Millisecond))).
			Count(append(opts, streams.As("w"))...).OnClose().ToStream().To("out")
		d := streamstest.New(t, app)
		for _, ts := range []int64{1, 12, 23, 34, 40, 44} {
			d.In[string, string]("in").At(time.UnixMilli(ts), "k", "v")
			d.Crash()
		}
		var rows strings.Builder
		for _, r := range d.Rows[[]byte, int64]("w") {
			start, _, err := window.SplitRow(r.Key)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&rows, "%d ", start)
		}
		if rows.String() != c.rows {
			t.Errorf("retention %v keeps windows %s, want %s", c.retention, rows.String(), c.rows)
		}
		out := d.Out[streams.Windowed[string], int64]("out").Keys(window.Serde(serde.String, 10*time.Millisecond)).Records()
		if len(out) != 3 {
			t.Errorf("retention %v: %d windows closed, want 3", c.retention, len(out))
		}
	}
}
