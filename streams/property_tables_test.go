package streams_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/streamstest"
)

// relations is a topology of tables made of tables: what their outputs hold in
// the end must be what their definition says of the inputs' last rows, whatever
// the order and whatever crashed in between.
func relations() *streams.App {
	app := streams.New("rel")
	l, r := app.Table[string, text]("rel-l"), app.Table[string, text]("rel-r")
	l.Filter(even).To("rel-filtered")
	l.MapValues(bang).Join(r.Filter(even), func(a, b text) text { return str(*a + *b) }, streams.As("inner")).
		GroupBy(func(k string, v text) (string, int64) { return k[:1], int64(len(*v)) }, streams.As("by-letter")).
		Aggregate(streams.Total(func(n int64) int64 { return n }), streams.As("total")).To("rel-total")
	o := l.OuterJoin(r, func(a, b streams.Maybe[text]) text { return str(or(a.V, "~") + or(b.V, "~")) }, streams.As("outer"))
	o.To("rel-outer")
	o.GroupBy(func(_ string, v text) (int64, string) { return int64(len(*v)), "" }, streams.As("by-length")).
		Count(streams.As("lengths")).To("rel-lengths")
	app.Stream[string, text]("rel-s").JoinTable(o, func(v, row text) text { return str(*v + *row) }).ToTable(streams.As("latest")).To("rel-latest")
	return app
}

func even(v text) bool { return len(*v)%2 == 0 }

// lastRows is the table that a topic holds.
func lastRows[V any](d *streamstest.Driver, topic string) map[string]V {
	rows := map[string]V{}
	for _, r := range d.Out[string, V](topic).Records() {
		rows[r.Key] = r.Value
	}
	return rows
}

// expectRelations computes what relations should hold.
func expectRelations(l, r map[string]string) (filtered, outer map[string]string, total, lengths map[string]int64) {
	filtered, outer, total, lengths = map[string]string{}, map[string]string{}, map[string]int64{}, map[string]int64{}
	for i := range 30 {
		k := fmt.Sprintf("%c%d", 'a'+i%3, i)
		a, hasL := l[k]
		b, hasR := r[k]
		if hasL && even(&a) {
			filtered[k] = a
		}
		if hasL && hasR && even(&b) {
			total[k[:1]] += int64(len(a) + 1 + len(b))
		}
		if !hasL && !hasR {
			continue
		}
		if !hasL {
			a = "~"
		}
		if !hasR {
			b = "~"
		}
		outer[k] = a + b
		lengths[fmt.Sprint(len(a+b))]++
	}
	return filtered, outer, total, lengths
}

func TestTablesOfTablesAnyCrash(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { tablesOfTables(t, rand.New(rand.NewPCG(seed, 2))) })
	}
}

func tablesOfTables(t *testing.T, rnd *rand.Rand) {
	d := streamstest.New(t, relations(), streamstest.Partitions(int32(1+rnd.IntN(4))), streamstest.ManualCommit())
	rows := map[string]map[string]string{"rel-l": {}, "rel-r": {}}
	for range 400 {
		topic := []string{"rel-l", "rel-r"}[rnd.IntN(2)]
		i := rnd.IntN(30)
		key, at := fmt.Sprintf("%c%d", 'a'+i%3, i), time.UnixMilli(rnd.Int64N(1000))
		if rnd.IntN(4) == 0 {
			d.In[string, text](topic).Delete(at, key)
			delete(rows[topic], key)
		} else {
			v := "123456789"[:1+rnd.IntN(9)]
			d.In[string, text](topic).At(at, key, str(v))
			rows[topic][key] = v
		}
		switch rnd.IntN(10) {
		case 0:
			d.Commit()
		case 1:
			d.Process()
			d.Crash()
		case 2:
			d.Settle()
		}
	}
	d.Settle()
	for i := range 30 {
		d.In[string, text]("rel-s").At(time.UnixMilli(1), fmt.Sprintf("%c%d", 'a'+i%3, i), str("s"))
	}
	d.Settle()
	filtered, outer, total, lengths := expectRelations(rows["rel-l"], rows["rel-r"])
	same(t, "filtered", texts(lastRows[text](d, "rel-filtered")), filtered)
	same(t, "outer", texts(lastRows[text](d, "rel-outer")), outer)
	same(t, "total", positive(lastRows[int64](d, "rel-total")), total)
	looked := map[string]string{}
	for k, v := range outer {
		looked[k] = "s" + v
	}
	same(t, "looked up", texts(lastRows[text](d, "rel-latest")), looked)
	got := map[string]int64{}
	for _, r := range d.Out[int64, int64]("rel-lengths").Records() {
		got[fmt.Sprint(r.Key)] = r.Value
	}
	same(t, "lengths", positive(got), lengths)
}

func texts(in map[string]text) map[string]string {
	out := map[string]string{}
	for k, v := range in {
		if v != nil {
			out[k] = *v
		}
	}
	return out
}

func positive(in map[string]int64) map[string]int64 {
	out := map[string]int64{}
	for k, v := range in {
		if v != 0 {
			out[k] = v
		}
	}
	return out
}

func same[V comparable](t *testing.T, what string, got, want map[string]V) {
	t.Helper()
	var diff []string
	for k := range want {
		if got[k] != want[k] {
			diff = append(diff, fmt.Sprintf("%s is %v, want %v", k, got[k], want[k]))
		}
	}
	for k := range got {
		if _, ok := want[k]; !ok {
			diff = append(diff, fmt.Sprintf("%s is %v, should not be there", k, got[k]))
		}
	}
	slices.Sort(diff)
	for _, d := range diff {
		t.Errorf("%s: %s", what, d)
	}
}
