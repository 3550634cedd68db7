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
	"github.com/millrace/millrace/streams/streamstest"
)

// meeting is one record of a side of the joins under test.
type meeting struct {
	key, value string
	ts         int64
}

// TestStrictJoinAnyCrash sends records in a random order of time, never later
// than the grace, through a strict outer join, with commits and crashes at random
// moments. Then the result is that of the relational join, each pair once and
// each record that has no partner once alone.
func TestStrictJoinAnyCrash(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { strictJoin(t, rand.New(rand.NewPCG(seed, 3))) })
	}
}

func strictJoin(t *testing.T, rnd *rand.Rand) {
	before, after, grace := rnd.Int64N(15), rnd.Int64N(15), rnd.Int64N(20)
	app := streams.New("strict")
	w := streams.Around(ms(before), ms(after), streams.Grace(ms(grace)), streams.Strict())
	app.Stream[string, string]("l").OuterJoin(app.Stream[string, string]("r"), func(l, r streams.Maybe[string]) string {
		return l.V + "+" + r.V
	}, w, streams.As("join")).To("out")
	d := streamstest.New(t, app, streamstest.ManualCommit())
	sides := map[string][]meeting{}
	now := int64(0)
	for i := range 250 {
		now += rnd.Int64N(4)
		if rnd.IntN(50) == 0 {
			now += 100 // everything that waits is due at once
		}
		m := meeting{fmt.Sprint(rnd.IntN(3)), fmt.Sprint(i), max(0, now-rnd.Int64N(grace+1))}
		topic := []string{"l", "r"}[rnd.IntN(2)]
		d.In[string, string](topic).At(time.UnixMilli(m.ts), m.key, m.value)
		d.Process() // in this order
		sides[topic] = append(sides[topic], m)
		commitOrCrash(d, rnd)
	}
	d.In[string, string]("l").At(time.UnixMilli(now+1000), "end", "end") // itself never goes out
	d.Settle()
	var got []string
	for _, r := range d.Out[string, string]("out").Records() {
		got = append(got, fmt.Sprintf("%s %s @%d", r.Key, r.Value, r.Time.UnixMilli()))
	}
	want := relationalJoin(sides["l"], sides["r"], before, after)
	slices.Sort(got)
	compare(t, 0, "results", want, got)
	if n := d.Dropped("join", "late"); n != 0 {
		t.Errorf("%d records dropped as late", n)
	}
}

func commitOrCrash(d *streamstest.Driver, rnd *rand.Rand) {
	switch rnd.IntN(10) {
	case 0:
		d.Commit()
	case 1:
		// Records that are processed again come in the order of their times: commit
		// first, so that the order stays the one the lateness was made for.
		d.Commit()
		d.Crash()
	}
}

func relationalJoin(left, right []meeting, before, after int64) (want []string) {
	met := map[string]bool{}
	for _, l := range left {
		for _, r := range right {
			if l.key == r.key && r.ts >= l.ts-before && r.ts <= l.ts+after {
				want = append(want, fmt.Sprintf("%s %s+%s @%d", l.key, l.value, r.value, max(l.ts, r.ts)))
				met[l.value], met[r.value] = true, true
			}
		}
	}
	for _, l := range left {
		if !met[l.value] {
			want = append(want, fmt.Sprintf("%s %s+ @%d", l.key, l.value, l.ts))
		}
	}
	for _, r := range right {
		if !met[r.value] {
			want = append(want, fmt.Sprintf("%s +%s @%d", r.key, r.value, r.ts))
		}
	}
	slices.Sort(want)
	return want
}

// TestSessionsAnyCrash compares final results and, in the end, the updates of
// sessions with those of a plain computation, for records that are never later
// than the grace.
func TestSessionsAnyCrash(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { sessionsAnyCrash(t, rand.New(rand.NewPCG(seed, 4))) })
	}
}

func sessionsAnyCrash(t *testing.T, rnd *rand.Rand) {
	gap, grace := 1+rnd.Int64N(15), rnd.Int64N(25)
	app := streams.New("sessions")
	table := app.Stream[string, string]("in").GroupByKey().Sessions(ms(gap), streams.Grace(ms(grace))).
		Aggregate(streams.MergeFold(func() string { return "" }, func(a, v string) string { return a + v + "," }, func(a, b string) string { return a + b }), streams.As("s"))
	show := func(w streams.Window, k, v string) (string, string) {
		return k, fmt.Sprintf("[%d,%d] %s", w.StartMs(), w.EndMs()-1, sorted(v))
	}
	table.OnClose().Map(show).To("finals")
	table.ToStream().To("updates")
	d := streamstest.New(t, app, streamstest.ManualCommit())
	var all []meeting
	now := int64(0)
	for i := range 250 {
		now += rnd.Int64N(6)
		m := meeting{fmt.Sprint(rnd.IntN(4)), fmt.Sprint(i), max(0, now-rnd.Int64N(grace+1))}
		d.In[string, string]("in").At(time.UnixMilli(m.ts), m.key, m.value)
		d.Process()
		all = append(all, m)
		commitOrCrash(d, rnd)
	}
	d.In[string, string]("in").At(time.UnixMilli(now+1000), "end", "end")
	d.Settle()
	want := expectSessions(all, gap)
	var got []string
	for _, r := range d.Out[string, string]("finals").Records() {
		got = append(got, r.Key+" "+r.Value)
	}
	slices.Sort(got)
	compare(t, 0, "finals", want, got)
	if open := openSessions(d); open != len(want)+1 {
		t.Errorf("the updates leave %d sessions, want %d", open, len(want)+1)
	}
}

// openSessions counts the sessions that the updates have not deleted.
func openSessions(d *streamstest.Driver) int {
	there := map[string]bool{}
	for _, r := range d.Topic("updates", 0) {
		delete(there, string(r.Key))
		if r.Value != nil {
			there[string(r.Key)] = true
		}
	}
	return len(there)
}

func expectSessions(all []meeting, gap int64) (want []string) {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b meeting) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.ts, b.ts)) })
	for i := 0; i < len(all); {
		j, values := i, ""
		for ; j < len(all) && all[j].key == all[i].key && (j == i || all[j].ts-all[j-1].ts <= gap); j++ {
			values += all[j].value + ","
		}
		want = append(want, fmt.Sprintf("%s [%d,%d] %s", all[i].key, all[i].ts, all[j-1].ts, sorted(values)))
		i = j
	}
	slices.Sort(want)
	return want
}

// sorted puts the parts of a list in order: sessions may merge in any.
func sorted(list string) string {
	parts := strings.Split(list, ",")
	slices.Sort(parts)
	return strings.Join(parts, ",")
}
