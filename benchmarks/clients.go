package main

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// latencies are durations of single operations.
type latencies []time.Duration

// at returns the quantile q in milliseconds.
func (l latencies) at(q float64) float64 {
	if len(l) == 0 {
		return 0
	}
	slices.Sort(l)
	return milliseconds(l[min(len(l)-1, int(q*float64(len(l))))])
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// outcome is what a number of clients did in the window.
type outcome struct {
	operations float64 // in the window
	perSecond  float64
	all        latencies     // of operations begun in the window, also those that ended later
	cpu        time.Duration // of the broker, in the window
	first      time.Duration // until every client had done its first operation
}

const (
	warmUp = 500 * time.Millisecond // between the first operation of the last client and the window, not counted
	grace  = 10 * time.Second       // for operations under way at the end of the window
)

// span is the window in which operations count.
type span struct{ from, to time.Time }

// crowd is a number of clients at work.
type crowd struct {
	e       *env
	clients int64
	began   time.Time
	firsts  atomic.Int64         // clients that have done their first operation
	window  atomic.Pointer[span] // nil until all have
	opened  chan struct{}        // closed when there is a window

	mu   sync.Mutex
	out  outcome
	errs []error
}

// eachClient runs f in that many goroutines; once runs one operation and says whether to go on. The window opens a warm-up
// after every client has done its first operation. An operation counts when it ends inside; one that is under way at the
// end gets some time, because its latency belongs to the picture, and is cut off then. So the window has the same length
// for every broker, however slow.
func eachClient(ctx context.Context, e *env, clients int, f func(ctx context.Context, i int, once func(func() error) bool) error) (outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &crowd{e: e, clients: int64(clients), began: time.Now(), opened: make(chan struct{})}
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			if err := c.run(ctx, i, f); err != nil {
				cancel() // the others would wait for a window that never opens
			}
		})
	}
	used := make(chan time.Duration, 1)
	wg.Go(func() {
		select {
		case <-c.opened:
			w := c.window.Load()
			time.AfterFunc(time.Until(w.to.Add(grace)), cancel)
			used <- e.cpuBetween(w.from, w.to)
		case <-ctx.Done():
			used <- 0
		}
	})
	wg.Wait()
	if len(c.errs) > 0 {
		return outcome{}, c.errs[0]
	}
	c.out.cpu = <-used
	c.out.first = c.window.Load().from.Add(-warmUp).Sub(c.began)
	c.out.perSecond = c.out.operations / e.seconds.Seconds()
	return c.out, nil
}

// run is one client. An operation that is cut off after the window is no error.
func (c *crowd) run(ctx context.Context, i int, f func(ctx context.Context, i int, once func(func() error) bool) error) error {
	var own latencies
	var opErr error
	var counted float64
	first := true
	once := func(op func() error) bool {
		began := time.Now()
		opErr = op()
		now := time.Now()
		if opErr == nil && first {
			first = false
			c.arrive(now)
		}
		w := c.window.Load()
		if w == nil {
			return opErr == nil
		}
		if !began.Before(w.from) && began.Before(w.to) {
			own = append(own, now.Sub(began))
		}
		if opErr == nil && now.After(w.from) && !now.After(w.to) {
			counted++
		}
		return opErr == nil && now.Before(w.to)
	}
	err := f(ctx, i, once)
	if err == nil {
		err = opErr
	}
	if w := c.window.Load(); err != nil && ctx.Err() != nil && w != nil && time.Now().After(w.to) {
		err = nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.all = append(c.out.all, own...)
	c.out.operations += counted
	if err != nil {
		c.errs = append(c.errs, err)
	}
	return err
}

// arrive opens the window when all clients have done something.
func (c *crowd) arrive(now time.Time) {
	if c.firsts.Add(1) == c.clients {
		from := now.Add(warmUp)
		c.window.Store(&span{from, from.Add(c.e.seconds)})
		close(c.opened)
	}
}

// cpuBetween waits for the window and measures the broker's processor time in it.
func (e *env) cpuBetween(from, to time.Time) time.Duration {
	time.Sleep(time.Until(from))
	before := e.cpu()
	time.Sleep(time.Until(to))
	return e.cpu() - before
}
