package runtime

import (
	"math"
	"testing"
	"time"

	"github.com/millrace/millrace/streams/internal/task"
	"github.com/millrace/millrace/txn/session"
)

// idle is a task that does nothing.
type idle struct{ task.Task }

func (idle) Process(*task.Record) error { return nil }
func (idle) StreamTimeMs() int64        { return 5000 }

// TestUnwatchedCostsNothing: a record of a run that nobody watches or follows
// allocates nothing on its way to the task, and one of a watched run nothing either.
func TestUnwatchedCostsNothing(t *testing.T) {
	rec := &session.Record{Topic: "in", Time: time.UnixMilli(4000)}
	for name, a := range map[string]*active{
		"nobody watches": {task: idle{}},
		"watched":        {task: idle{}, gauge: (&meter{}).gauge()},
	} {
		if n := testing.AllocsPerRun(1000, func() {
			if err := a.process(rec); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations per record", name, n)
		}
	}
	var m *meter
	if n := testing.AllocsPerRun(100, func() { m.gauge().ran(m.now()); m.gaveUp() }); n != 0 {
		t.Errorf("%v allocations of a meter that is not there", n)
	}
}

// TestGauge: what records were late by, and latencies of a sample that stands for
// all.
func TestGauge(t *testing.T) {
	g := (&meter{}).gauge()
	const n = 1000
	for range n {
		g.took(1000, 3000)
	}
	g.took(3000, 3000)
	g.committed(4000)
	if g.lateness.Count != n || math.Abs(g.lateness.Sum-2*n) > 1e-6 || g.lateness.Quantile(.5) != 2.5 {
		t.Errorf("lateness is %+v", g.lateness)
	}
	if g.latency.Count < n/2 || g.latency.Count > 2*n || g.latency.Quantile(.99) != 5 || g.n != 0 {
		t.Errorf("latencies of %d records are %+v", n+1, g.latency)
	}
}

func TestHistogram(t *testing.T) {
	var h Histogram
	if h.Quantile(.5) != 0 {
		t.Error("an empty histogram has a quantile")
	}
	for _, s := range []float64{0, .001, .0011, 9, 1e9} {
		h.add(s, 1)
	}
	for q, want := range map[float64]float64{.2: .001, .4: .001, .6: .0025, .8: 10, 1: 3600} {
		if got := h.Quantile(q); got != want {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	other := h
	if h.Merge(other); h.Count != 10 || h.Buckets[0] != 4 {
		t.Errorf("merged: %+v", h)
	}
}
