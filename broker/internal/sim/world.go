package sim

import (
	"container/heap"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"
)

// epoch is the time at which every simulation begins.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// life is what steps belong to: one run of the broker, one run of a client. When it is over its steps are dropped.
type life struct{ over bool }

// step is something that will happen at a virtual time.
type step struct {
	at    time.Duration
	seq   uint64 // breaks ties, in the order of making
	index int    // in the heap, -1 outside
	what  string // a word for the trace
	life  *life  // nil for steps of nobody
	alone bool   // never runs while another step lets time pass
	run   func()
}

// world is virtual time: a heap of steps, run one after the other by whoever calls next. One random source decides
// everything. It knows nothing of what the steps are about.
type world struct {
	rng   *rand.Rand
	now   time.Duration
	heap  steps
	seq   uint64
	count int // steps run so far
	depth int // how many steps are under way, one inside the other
	// passing counts the steps that let time pass; held are those that had to wait for them.
	passing int
	held    []*step
	trace   trace
	// settled is called after every step, with the number of steps that are still under way around it.
	settled func(depth int)
	failure error
	// seen counts occasions, for a test that the simulation comes to them.
	seen map[string]int
}

func newWorld(seed uint64, out io.Writer) *world {
	return &world{rng: rand.New(rand.NewPCG(seed, 0x73696d)), trace: trace{out: out}, settled: func(int) {}, seen: map[string]int{}}
}

// log adds a line to the trace. The arguments must not change later.
func (w *world) log(format string, args ...any) {
	w.trace.add(line{w.now, w.count, format, args})
}

// fail ends the simulation with a violation; the first one counts.
func (w *world) fail(format string, args ...any) {
	if w.failure == nil {
		w.failure = fmt.Errorf(format, args...)
		w.log("FAILED: %v", w.failure)
	}
}

// see counts an occasion.
func (w *world) see(what string) { w.seen[what]++ }

// after plans a step.
func (w *world) after(d time.Duration, what string, of *life, run func()) *step {
	w.seq++
	s := &step{at: w.now + max(d, 0), seq: w.seq, what: what, life: of, run: run}
	heap.Push(&w.heap, s)
	return s
}

// cancel takes a step off the plan; false when it has begun, or was cancelled before.
func (w *world) cancel(s *step) bool {
	if s.index < 0 {
		return false
	}
	heap.Remove(&w.heap, s.index)
	return true
}

// next runs the first step that is due until a time; false when there is none, or the simulation has failed.
func (w *world) next(until time.Duration) bool {
	for w.failure == nil && len(w.heap) > 0 && w.heap[0].at <= until {
		s := heap.Pop(&w.heap).(*step)
		if s.life != nil && s.life.over {
			continue
		}
		if s.alone && w.passing > 0 {
			w.held = append(w.held, s)
			continue
		}
		w.now = max(w.now, s.at)
		w.count++
		w.depth++
		s.run()
		w.depth--
		w.settled(w.depth)
		return true
	}
	return false
}

// errEnded answers who waits for something that can not come any more.
var errEnded = errors.New("the run it belongs to is over")

// forever is later than anything.
const forever = time.Duration(1<<63 - 1)

// await runs other steps inside the current one until done says so, or of is over.
func (w *world) await(of *life, done func() bool) error {
	for !done() {
		if of.over || !w.next(forever) {
			return errEnded
		}
	}
	return nil
}

// pass lets a time pass inside the current step, in which other steps run.
func (w *world) pass(d time.Duration) {
	until := w.now + d
	w.passing++
	for w.next(until) {
	}
	w.passing--
	w.now = max(w.now, until)
	if w.passing > 0 {
		return
	}
	for _, s := range w.held {
		heap.Push(&w.heap, s)
	}
	w.held = w.held[:0]
}

// chance is true once in n times.
func (w *world) chance(n int) bool { return w.rng.IntN(n) == 0 }

// between is a duration in [from, to).
func (w *world) between(from, to time.Duration) time.Duration {
	return from + time.Duration(w.rng.Int64N(int64(to-from)))
}

// Read fills p with random bytes: the world is the source of all ids.
func (w *world) Read(p []byte) (int, error) {
	for i := 0; i < len(p); i += 8 {
		v := w.rng.Uint64()
		for k := i; k < min(i+8, len(p)); k++ {
			p[k] = byte(v)
			v >>= 8
		}
	}
	return len(p), nil
}

// steps is a heap by time, then by order of making.
type steps []*step

func (h steps) Len() int { return len(h) }

func (h steps) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].seq < h[j].seq
}

func (h steps) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *steps) Push(x any) {
	s := x.(*step)
	s.index = len(*h)
	*h = append(*h, s)
}

func (h *steps) Pop() any {
	old := *h
	s := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	s.index = -1
	return s
}
