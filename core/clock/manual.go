package clock

import (
	"container/heap"
	"sync"
	"time"
)

// Manual is a clock that a test moves. Its timers run on the goroutine that calls [Manual.Advance], one after the other, in
// the order of their times, those of the same time in the order in which they were made. While one runs, Now is its time.
type Manual struct {
	advancing sync.Mutex // held during an Advance, so that two of them do not interleave

	mu  sync.Mutex // guards what follows; never held while a timer runs
	now time.Time
	due timerHeap
	seq uint64
}

// NewManual is a clock that shows start until it is moved.
func NewManual(start time.Time) *Manual { return &Manual{now: start} }

// Now is the time that the clock was moved to.
func (m *Manual) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// AfterFunc makes a timer, which runs in the Advance that reaches its time; with d of zero or less in the next one, also if
// that moves by zero.
func (m *Manual) AfterFunc(d time.Duration, f func()) Timer {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seq++
	t := &manualTimer{clock: m, at: m.now.Add(max(d, 0)), seq: m.seq, f: f}
	heap.Push(&m.due, t)
	return t
}

// Advance moves the clock by d and runs every timer that becomes due, also those that timers make on the way. A timer must
// not call Advance itself. Advance panics if d is negative: time does not go back.
func (m *Manual) Advance(d time.Duration) {
	if d < 0 {
		panic("clock: Advance by a negative duration")
	}
	m.advancing.Lock()
	defer m.advancing.Unlock()
	m.mu.Lock()
	end := m.now.Add(d)
	m.mu.Unlock()
	for {
		f := m.next(end)
		if f == nil {
			return
		}
		f()
	}
}

// Jump moves the clock by d at once, as when the machine was asleep: every timer that has become due runs once, and sees the time
// after the jump. A test that lets months pass over timers of a second takes this one. It panics if d is negative.
func (m *Manual) Jump(d time.Duration) {
	if d < 0 {
		panic("clock: Jump by a negative duration")
	}
	m.advancing.Lock()
	defer m.advancing.Unlock()
	m.mu.Lock()
	m.now = m.now.Add(d)
	m.mu.Unlock()
	for {
		f := m.overdue()
		if f == nil {
			return
		}
		f()
	}
}

// overdue takes the first timer that is due by now.
func (m *Manual) overdue() func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.due) == 0 || m.due[0].at.After(m.now) {
		return nil
	}
	return heap.Pop(&m.due).(*manualTimer).f
}

// next takes the first timer due until end and moves the clock to it; without one it moves the clock to end.
func (m *Manual) next(end time.Time) func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.due) == 0 || m.due[0].at.After(end) {
		m.now = end
		return nil
	}
	t := heap.Pop(&m.due).(*manualTimer)
	m.now = t.at
	return t.f
}

// NextTimer is the time of the first timer that is due, for a test that wants to move exactly there.
func (m *Manual) NextTimer() (at time.Time, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.due) == 0 {
		return time.Time{}, false
	}
	return m.due[0].at, true
}

type manualTimer struct {
	clock *Manual
	at    time.Time
	seq   uint64
	index int // in the heap; -1 when it is not in it
	f     func()
}

func (t *manualTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	if t.index < 0 {
		return false
	}
	heap.Remove(&t.clock.due, t.index)
	return true
}

// timerHeap is ordered by time, then by order of making.
type timerHeap []*manualTimer

func (h timerHeap) Len() int { return len(h) }

func (h timerHeap) Less(i, j int) bool {
	if !h[i].at.Equal(h[j].at) {
		return h[i].at.Before(h[j].at)
	}
	return h[i].seq < h[j].seq
}

func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *timerHeap) Push(x any) {
	t := x.(*manualTimer)
	t.index = len(*h)
	*h = append(*h, t)
}

func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	t.index = -1
	return t
}
