package api

import "context"

// park leaves the request with its partitions. They, the timer and the end of
// the connection wake it.
func (f *fetch) park() {
	f.mu.Lock()
	f.release()
	for i := range f.rows {
		if p := f.rows[i].partition; p != nil {
			f.cancels = append(f.cancels, p.OnAdvance(f.wake))
		}
	}
	f.timer = f.s.Clock.AfterFunc(f.maxWait, func() { f.again(true) })
	stop := context.AfterFunc(f.c.gone, func() { f.again(true) })
	f.cancels = append(f.cancels, func() { stop() })
	f.mu.Unlock()
	// What came between the look and the registration woke nobody.
	f.again(false)
}

// wake is called by a partition that advanced, under its locks: it only leaves
// word with the waker.
func (f *fetch) wake() {
	if f.queued.CompareAndSwap(false, true) {
		f.s.waker.push(f)
	}
}

// wakened runs on a goroutine of the waker.
func (f *fetch) wakened() {
	// Cleared first: an advance during the look asks for another one.
	f.queued.Store(false)
	f.again(false)
}

// again looks at a parked request once more and answers it if it is ready, or in
// any case when its time is over.
func (f *fetch) again(over bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done {
		return
	}
	f.look()
	if !over && !f.ready() && !f.s.waker.closed() {
		f.release()
		return
	}
	f.done = true
	for _, cancel := range f.cancels {
		cancel()
	}
	f.timer.Stop()
	f.finish()
}

// release lets the files go while the request waits.
func (f *fetch) release() {
	for i := range f.rows {
		f.rows[i].release()
	}
}
