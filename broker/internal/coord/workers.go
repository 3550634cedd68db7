package coord

import (
	"sync"

	"github.com/millrace/millrace/core/clock"
)

// workers are the runtime's goroutines: a fixed number, one queue. The queue has no
// bound of its own; what is in it are loads (one per shard at most) and effects of
// outputs that were appended, so it is bounded by the requests under way.
type workers struct {
	mu     sync.Mutex
	wake   sync.Cond
	queue  []func()
	closed bool
	done   sync.WaitGroup
	driver clock.Driver // takes the goroutines' place, if not nil
}

func (w *workers) start(n int, c clock.Clock) {
	w.wake.L = &w.mu
	if w.driver = clock.Driven(c); w.driver != nil {
		return
	}
	for range n {
		w.done.Go(w.run)
	}
}

// push queues f. After close it is dropped.
func (w *workers) push(f func()) {
	if w.driver != nil {
		w.driver.Go("coordinator", func() {
			w.mu.Lock()
			closed := w.closed
			w.mu.Unlock()
			if !closed {
				f()
			}
		})
		return
	}
	w.mu.Lock()
	if !w.closed {
		w.queue = append(w.queue, f)
	}
	w.mu.Unlock()
	w.wake.Signal()
}

func (w *workers) run() {
	for {
		w.mu.Lock()
		for len(w.queue) == 0 && !w.closed {
			w.wake.Wait()
		}
		if w.closed {
			w.mu.Unlock()
			return
		}
		f := w.queue[0]
		w.queue[0] = nil
		w.queue = w.queue[1:]
		w.mu.Unlock()
		f()
	}
}

// close waits for what is being done and drops the rest.
func (w *workers) close() {
	w.mu.Lock()
	w.closed = true
	w.queue = nil
	w.mu.Unlock()
	w.wake.Broadcast()
	w.done.Wait()
}
