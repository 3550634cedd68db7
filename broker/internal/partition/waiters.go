package partition

import (
	"sort"
	"sync"
)

// waiters are those who wait for an offset to be below the high watermark, in the order of the offsets.
type waiters struct {
	mu    sync.Mutex
	queue []waiter
	err   error // set once the watermark will not move any more

	running sync.Mutex // one at a time calls those who wait
}

// ready are buffers for those who are called.
var ready = sync.Pool{New: func() any { return new([]waiter) }}

type waiter struct {
	offset int64
	fn     func(error)
}

// add queues fn, or runs it at once when high, read under the lock, is above the offset already, or when all is over.
func (w *waiters) add(offset int64, high func() int64, fn func(error)) {
	w.mu.Lock()
	if high() > offset {
		w.mu.Unlock()
		fn(nil)
		return
	}
	if err := w.err; err != nil {
		w.mu.Unlock()
		fn(err)
		return
	}
	defer w.mu.Unlock()
	i := len(w.queue)
	if i > 0 && w.queue[i-1].offset > offset { // a duplicate that waits for its original
		i = sort.Search(i, func(i int) bool { return w.queue[i].offset > offset })
	}
	w.queue = append(w.queue, waiter{})
	copy(w.queue[i+1:], w.queue[i:])
	w.queue[i] = waiter{offset, fn}
}

// run calls everyone whose offset is below high.
func (w *waiters) run(high int64) { w.take(high, nil) }

// fail ends all waiting for offsets below to with an error; final holds for everyone who comes later too.
func (w *waiters) fail(to int64, err error, final bool) {
	if final {
		w.mu.Lock()
		w.err = err
		w.mu.Unlock()
	}
	w.take(to, err)
}

func (w *waiters) take(to int64, err error) {
	w.running.Lock()
	defer w.running.Unlock()
	w.mu.Lock()
	n := sort.Search(len(w.queue), func(i int) bool { return w.queue[i].offset >= to })
	if n == 0 {
		w.mu.Unlock()
		return
	}
	buf := ready.Get().(*[]waiter)
	called := append((*buf)[:0], w.queue[:n]...)
	left := copy(w.queue, w.queue[n:])
	clear(w.queue[left:])
	w.queue = w.queue[:left]
	w.mu.Unlock()
	for i := range called {
		called[i].fn(err)
		called[i] = waiter{}
	}
	*buf = called
	ready.Put(buf)
}
