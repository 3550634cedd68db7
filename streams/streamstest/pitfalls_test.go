package streamstest_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/streamstest"
)

// ticking sends what its timers are called with.
type ticking struct{}

func (ticking) Init(_ streams.TaskContext, out *streams.Emitter[string, string]) error {
	for name, by := range map[string]streams.Clock{"stream": streams.StreamTime, "wall": streams.WallClock} {
		out.Every(10*time.Second, by, func(_ streams.TaskContext, at time.Time) error {
			out.Emit(name, at.Format("15:04:05.000"))
			return nil
		})
	}
	return nil
}

func (ticking) Process(streams.TaskContext, *streams.Record[string, string]) error { return nil }
func (ticking) Close() error                                                       { return nil }

// TestPitfall33 (KAFKA-12323, KAFKA-3505, KAFKA-6323, KAFKA-9584): what a timer sends
// has the time of the call, never -1; no timer is called before there is a time, or
// at once; and it does not get the headers of the record before it.
func TestPitfall33(t *testing.T) {
	t.Parallel()
	app := streams.New("a")
	app.Stream[string, string]("in").Process(func() streams.Processor[string, string, string, string] { return ticking{} }).To("out")
	d := streamstest.New(t, app, streamstest.StartAt(time.Date(2020, 1, 1, 12, 0, 3, 0, time.UTC)))
	if w := d.Written(); w != nil {
		t.Errorf("before anything there is %v", w)
	}
	at := time.Date(2001, 1, 1, 8, 0, 1, 0, time.UTC)
	expect := func(what string, want ...string) {
		t.Helper()
		var got []string
		for _, r := range d.Written() {
			got = append(got, fmt.Sprint(string(r.Key), " ", string(r.Value), " ", r.Time.Format("2006 15:04:05")))
			if len(r.Headers) > 0 {
				t.Errorf("%s: %s has the headers %v of a record", what, r.Key, r.Headers)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	in := d.In[string, string]("in")
	in.At(at, "k", "v", streams.Header{Key: "h", Value: []byte("x")})
	expect("the first record", "stream 08:00:01.000 2001 08:00:01")
	in.At(at.Add(5*time.Second), "k", "v", streams.Header{Key: "h", Value: []byte("x")})
	expect("a record on the way")
	in.At(at.Add(9*time.Second), "k", "v")
	expect("a multiple of the interval", "stream 08:00:10.000 2001 08:00:10")
	d.Advance(6 * time.Second)
	expect("12:00:09 by the clock")
	d.Advance(time.Second)
	expect("12:00:10 by the clock", "wall 12:00:10.000 2020 12:00:10")
}

// TestPitfall35 (KAFKA-19668, KAFKA-9739, KAFKA-21612): a repartition topic carries the
// types of where the user put it, and where repartitions follow each other, and their
// sources differ in size, each has as many partitions as its largest writer.
func TestPitfall35(t *testing.T) {
	t.Parallel()
	app := streams.New("a")
	one := app.Stream[string, string]("one").Map(func(k, v string) (string, int) { return v, len(v) })
	three := app.Stream[string, int]("three").Map(func(k string, v int) (string, int) { return k, v })
	one.Merge(three).
		Repartition(streams.As("first")).
		MapValues(func(n int) float64 { return float64(n) / 2 }).
		SelectKey(func(f float64) string { return fmt.Sprint(math.Floor(f)) }, streams.As("by-floor")).
		GroupByKey().Aggregate(streams.Sum(func(f float64) float64 { return f }), streams.As("sum")).To("out")
	d := streamstest.New(t, app, streamstest.TopicPartitions("one", 1), streamstest.TopicPartitions("three", 3))
	want := map[string]float64{}
	for i := range 30 {
		d.In[string, string]("one").Send("", fmt.Sprint(i*1000))
		d.In[string, int]("three").Send(fmt.Sprint(i), i)
		for _, n := range []int{len(fmt.Sprint(i * 1000)), i} {
			want[fmt.Sprint(math.Floor(float64(n)/2))] += float64(n) / 2
		}
	}
	for _, topic := range []string{"a-first-repartition", "a-by-floor-repartition"} {
		records := 0
		for p := range int32(3) {
			records += len(d.Topic(topic, p))
		}
		if records != 60 || d.Topic(topic, 3) != nil {
			t.Errorf("topic %s has %d records in three partitions", topic, records)
		}
	}
	got := map[string]float64{}
	for _, r := range d.Out[string, float64]("out").Records() {
		got[r.Key] = r.Value
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("sums are %v, want %v", got, want)
	}
}

// TestPitfall38 (KAFKA-12317, KAFKA-13024): a null key goes through what needs no key,
// and is dropped and counted, by the node that does, where one is needed.
func TestPitfall38(t *testing.T) {
	t.Parallel()
	app := streams.New("a")
	in := app.Stream[string, string]("in")
	in.Filter(func(string) bool { return true }).MapValues(func(v string) string { return v }).To("passed")
	in.SelectKey(func(v string) string { return v }).To("keyed")
	in.GroupByKey().Count(streams.As("count")).To("counts")
	in.GroupByKey().Windowed(streams.Tumbling(time.Minute)).Count(streams.As("minutes")).
		Map(func(_ streams.Window, k string, n int64) (string, int64) { return k, n }).To("per-minute")
	in.ToTable(streams.As("table")).To("rows")
	in.Repartition(streams.As("moved")).To("moved")
	t1 := app.Table[string, string]("t")
	in.JoinTable(t1, func(a, b string) string { return a + b }, streams.As("inner")).To("joined")
	in.LeftJoinTable(t1, func(a string, b streams.Maybe[string]) string { return a + b.V }, streams.As("left")).To("left")
	d := streamstest.New(t, app)
	d.In[string, string]("in").NoKey(d.Now(), "v")
	written := map[string]int{}
	for _, r := range d.Written() {
		written[r.Topic]++
	}
	if want := map[string]int{"passed": 1, "keyed": 1, "left": 1}; fmt.Sprint(written) != fmt.Sprint(want) {
		t.Errorf("written is %v, want %v", written, want)
	}
	for node, want := range map[string]int64{"count": 1, "minutes": 1, "table": 1, "inner": 1, "moved.repartition": 1, "left": 0} {
		if got := d.Dropped(node, "null key"); got != want {
			t.Errorf("node %s has dropped %d null keys, want %d", node, got, want)
		}
	}
}
