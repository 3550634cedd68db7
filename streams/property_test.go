package streams_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/serde"
	"github.com/millrace/millrace/streams/streamstest"
)

// label is a row of a table; it travels as JSON.
type label struct{ Text string }

// labels are the rows, of very different lengths, so that a mix-up shows.
func labels() map[string]label {
	m := map[string]label{}
	for i := range 9 {
		m[string(rune('a'+i))] = label{strings.Repeat(string(rune('A'+i)), 1+i*7)}
	}
	return m
}

// The topology of the property test: a repartition, then a join with a table, a
// plain count, every update of a windowed sum and its final results.
func sums(size, grace time.Duration) *streams.App {
	app := streams.New("sums")
	table := app.Table[string, label]("sums-labels")
	keyed := app.Stream[string, string]("sums-in").SelectKey(func(v string) string { return v[:1] }, streams.As("by-letter"))
	keyed.JoinTable(table, func(v string, l label) string { return v + l.Text }).To("sums-joined")
	s := keyed.GroupByKey()
	s.Count(streams.As("n")).To("sums-counts")
	w := s.Windowed(streams.Tumbling(size, streams.Grace(grace))).
		Aggregate(streams.Sum(func(v string) int64 { return int64(v[1] - '0') }), streams.As("sum"))
	show := func(w streams.Window, k string, n int64) (string, string) {
		return k, fmt.Sprintf("%d=%d", w.StartMs(), n)
	}
	w.Map(show, streams.As("updates")).To("sums-updates")
	w.OnClose().Map(show, streams.As("finals")).To("sums-finals")
	return app
}

// oracle computes from one partition of the repartition topic, by plain loops,
// what the topology should have written.
type oracle struct {
	size, grace                     int64
	joined, counts, updates, finals []string
	labels                          map[string]label
	late                            int64
	n                               map[string]int64
	open                            map[row]sum
	stream                          int64
}

type row struct {
	start int64
	key   string
}

type sum struct{ n, ts int64 }

func newOracle(size, grace time.Duration) *oracle {
	return &oracle{size: size.Milliseconds(), grace: grace.Milliseconds(), stream: -1, labels: labels(), n: map[string]int64{}, open: map[row]sum{}}
}

func (o *oracle) add(key, value string, ts int64) {
	o.joined = append(o.joined, fmt.Sprintf("%s %s @%d", key, value+o.labels[key].Text, ts))
	o.n[key]++
	o.counts = append(o.counts, fmt.Sprintf("%s %d", key, o.n[key]))
	o.stream = max(o.stream, ts)
	at := row{ts / o.size * o.size, key}
	if o.stream >= at.start+o.size+o.grace {
		o.late++
		return
	}
	s := o.open[at]
	s = sum{s.n + int64(value[1]-'0'), max(s.ts, ts)}
	o.open[at] = s
	o.updates = append(o.updates, fmt.Sprintf("%s %d=%d @%d", key, at.start, s.n, s.ts))
	var closed []row
	for at := range o.open {
		if o.stream >= at.start+o.size+o.grace {
			closed = append(closed, at)
		}
	}
	slices.SortFunc(closed, func(a, b row) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.key, b.key)) })
	for _, at := range closed {
		o.finals = append(o.finals, fmt.Sprintf("%s %d=%d @%d", at.key, at.start, o.open[at].n, o.open[at].ts))
		delete(o.open, at)
	}
}

// TestAnyOrderAnyCrash pipes random records in, in a random order of time,
// commits and crashes at random moments, and compares everything that was
// written with the oracle, in order.
func TestAnyOrderAnyCrash(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { anyOrderAnyCrash(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func anyOrderAnyCrash(t *testing.T, rnd *rand.Rand) {
	size, grace := time.Duration(1+rnd.IntN(20))*time.Millisecond, time.Duration(rnd.IntN(30))*time.Millisecond
	partitions := int32(1 + rnd.IntN(4))
	d := streamstest.New(t, sums(size, grace), streamstest.Partitions(partitions), streamstest.ManualCommit())
	in := d.In[string, string]("sums-in")
	for key, l := range labels() {
		d.In[string, label]("sums-labels").At(time.UnixMilli(0), key, l)
	}
	d.Settle()
	var sent []string
	for now := int64(0); len(sent) < 300; now += rnd.Int64N(5) {
		if rnd.IntN(40) == 0 {
			now += rnd.Int64N(200) // a gap closes many windows at once
		}
		v := fmt.Sprintf("%c%d#%d", 'a'+rnd.IntN(5), rnd.IntN(10), len(sent))
		in.At(time.UnixMilli(max(0, now-rnd.Int64N(60))), fmt.Sprint(rnd.IntN(9)), v)
		sent = append(sent, v)
		switch rnd.IntN(12) {
		case 0:
			d.Process()
		case 1:
			d.Commit()
		case 2:
			d.Process()
			d.Crash()
		}
	}
	d.Settle()
	var passed []string
	var late int64
	for p := range partitions {
		o := newOracle(size, grace)
		for _, r := range d.Topic("sums-by-letter-repartition", p) {
			passed = append(passed, string(r.Value))
			o.add(string(r.Key), string(r.Value), r.Time.UnixMilli())
		}
		late += o.late
		compare(t, p, "joined", o.joined, timed(d.Topic("sums-joined", p)))
		compare(t, p, "counts", o.counts, counts(t, d.Topic("sums-counts", p)))
		compare(t, p, "updates", o.updates, timed(d.Topic("sums-updates", p)))
		compare(t, p, "finals", o.finals, timed(d.Topic("sums-finals", p)))
	}
	slices.Sort(sent)
	slices.Sort(passed)
	if !slices.Equal(sent, passed) {
		t.Errorf("%d records went in, the repartition topic has %d, or others", len(sent), len(passed))
	}
	// Records processed again after a crash are counted as dropped again.
	if got := d.Dropped("sum", "late"); got < late {
		t.Errorf("%d records counted as late, the oracle says %d", got, late)
	}
}

func counts(t *testing.T, in []streamstest.Raw) (lines []string) {
	for _, r := range in {
		n, err := serde.Int64.Decode(r.Value)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%s %d", r.Key, n))
	}
	return lines
}

func timed(in []streamstest.Raw) (lines []string) {
	for _, r := range in {
		lines = append(lines, fmt.Sprintf("%s %s @%d", r.Key, r.Value, r.Time.UnixMilli()))
	}
	return lines
}

func compare(t *testing.T, partition int32, what string, want, got []string) {
	t.Helper()
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			t.Errorf("partition %d: %s differ at %d of %d (want %d)\nwant %v\n got %v", partition, what, i, len(got), len(want),
				want[min(i, len(want)):min(i+5, len(want))], got[min(i, len(got)):min(i+5, len(got))])
			return
		}
	}
}
