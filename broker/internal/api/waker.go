package api

import (
	"sync"

	"github.com/millrace/millrace/core/clock"
)

// parked is a request that waits for a partition to advance.
type parked interface{ wakened() }

// waker looks at parked fetches whose partitions advanced. A few goroutines serve
// all of them, so the append path does no more than put a pointer into a list.
type waker struct {
	mu      sync.Mutex
	changed sync.Cond
	list    []parked // owned by mu
	ended   bool
	running sync.WaitGroup
	driver  clock.Driver // takes the goroutines' place, if not nil
}

// wakers is how many goroutines look at woken fetches.
const wakers = 2

func (w *waker) start(c clock.Clock) {
	w.changed.L = &w.mu
	if w.driver = clock.Driven(c); w.driver != nil {
		return
	}
	for range wakers {
		w.running.Go(w.run)
	}
}

func (w *waker) push(p parked) {
	if w.driver != nil {
		w.driver.Go("fetch", p.wakened)
		return
	}
	w.mu.Lock()
	w.list = append(w.list, p)
	w.mu.Unlock()
	w.changed.Signal()
}

func (w *waker) closed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended
}

func (w *waker) run() {
	for {
		w.mu.Lock()
		for len(w.list) == 0 && !w.ended {
			w.changed.Wait()
		}
		if len(w.list) == 0 {
			w.mu.Unlock()
			return
		}
		list := w.list
		w.list = nil
		w.mu.Unlock()
		for _, p := range list {
			p.wakened()
		}
	}
}

// stop ends the waker after what is listed.
func (w *waker) stop() {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.changed.Broadcast()
	w.running.Wait()
}
