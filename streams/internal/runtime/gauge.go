package runtime

import (
	"sync/atomic"
	"time"
)

// meter is where a worker keeps its figures. All methods do nothing on nil, which
// is what a run has that nobody watches. All but shown belong to the worker's
// goroutine.
type meter struct {
	shown atomic.Pointer[WorkerFigures] // the last picture; readers take it whole
	last  time.Time                     // when that was
	sized time.Time                     // when the images were last measured

	state       State
	commits     Histogram
	startedOver int64
}

// gauge is what a task is measured by; nil when nobody watches. Emitted and busy
// are plain counters. Of the times of records a few are kept for the commit, which
// makes their results visible: every stride-th, and the stride doubles when there
// is no room left.
type gauge struct {
	processed, emitted int64
	busy               time.Duration
	lateness, latency  Histogram
	times              [samples]int64
	n, stride, skip    int
	sizes              map[string]size
}

type size struct{ rows, bytes int64 }

// samples is how many records of a commit are asked for their latency.
const samples = 64

// took takes note of a record, before it is processed.
func (g *gauge) took(timeMs, streamMs int64) {
	g.processed++
	if timeMs < streamMs {
		g.lateness.add(float64(streamMs-timeMs)/1000, 1)
	}
	if g.skip--; g.skip > 0 {
		return
	}
	if g.n == len(g.times) {
		for i := range g.n / 2 {
			g.times[i] = g.times[2*i]
		}
		g.n, g.stride = g.n/2, g.stride*2
	}
	g.times[g.n] = timeMs
	g.n++
	g.skip = g.stride
}

// committed turns the times of records into latencies.
func (g *gauge) committed(nowMs int64) {
	for _, ms := range g.times[:g.n] {
		g.latency.add(float64(max(0, nowMs-ms))/1000, int64(g.stride))
	}
	g.n, g.stride, g.skip = 0, 1, 0
}

// now is the time, if anybody wants to know.
func (m *meter) now() (t time.Time) {
	if m != nil {
		t = time.Now()
	}
	return t
}

// gaveUp takes note of a transaction that came to nothing.
func (m *meter) gaveUp() {
	if m != nil {
		m.startedOver++
	}
}

// gauge makes the gauge of a new task.
func (m *meter) gauge() *gauge {
	if m == nil {
		return nil
	}
	return &gauge{stride: 1, sizes: map[string]size{}}
}

// ran adds the time that a task took.
func (g *gauge) ran(began time.Time) {
	if g != nil {
		g.busy += time.Since(began)
	}
}
