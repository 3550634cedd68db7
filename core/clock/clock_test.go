package clock_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/core/clock"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestManualRunsInOrder(t *testing.T) {
	t.Parallel()
	c := clock.NewManual(start)
	var got []string
	note := func(name string) func() {
		return func() { got = append(got, fmt.Sprint(name, " ", c.Now().Sub(start))) }
	}
	c.AfterFunc(3*time.Second, note("third"))
	c.AfterFunc(time.Second, note("first"))
	c.AfterFunc(time.Second, note("first too"))
	c.AfterFunc(2*time.Second, func() {
		note("second")()
		c.AfterFunc(500*time.Millisecond, note("made on the way"))
		c.AfterFunc(time.Hour, note("beyond"))
	})
	c.AfterFunc(-time.Second, note("at once"))
	if len(got) > 0 {
		t.Fatalf("ran before the clock moved: %q", got)
	}
	c.Advance(0)
	c.Advance(3 * time.Second)
	want := []string{"at once 0s", "first 1s", "first too 1s", "second 2s", "made on the way 2.5s", "third 3s"}
	if !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	if at, ok := c.NextTimer(); !ok || !at.Equal(start.Add(2*time.Second+time.Hour)) {
		t.Fatalf("next timer %v, %v", at, ok)
	}
	if now := c.Now(); !now.Equal(start.Add(3 * time.Second)) {
		t.Fatalf("now %v", now)
	}
}

func TestManualStop(t *testing.T) {
	t.Parallel()
	c := clock.NewManual(start)
	var ran []int
	var timers []clock.Timer
	for i := range 10 {
		timers = append(timers, c.AfterFunc(time.Duration(i+1)*time.Second, func() { ran = append(ran, i) }))
	}
	for _, i := range []int{9, 0, 4} {
		if !timers[i].Stop() {
			t.Errorf("timer %d was not stopped", i)
		}
		if timers[i].Stop() {
			t.Errorf("timer %d was stopped twice", i)
		}
	}
	c.Advance(time.Minute)
	if want := []int{1, 2, 3, 5, 6, 7, 8}; !slices.Equal(ran, want) {
		t.Errorf("ran %v, want %v", ran, want)
	}
	if timers[1].Stop() {
		t.Error("a timer that ran was stopped")
	}
	if _, ok := c.NextTimer(); ok {
		t.Error("a timer is left")
	}
}

func TestManualRefusesToGoBack(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("the clock went back")
		}
	}()
	clock.NewManual(start).Advance(-1)
}

// TestManualConcurrent has many goroutines use one clock; the race detector watches, and each timer runs exactly once or is
// stopped.
func TestManualConcurrent(t *testing.T) {
	t.Parallel()
	c := clock.NewManual(start)
	const workers, each = 8, 200
	var ran, stopped atomic.Int64
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				timer := c.AfterFunc(time.Duration(i)*time.Millisecond, func() { ran.Add(1) })
				if i%3 == 0 && timer.Stop() {
					stopped.Add(1)
				}
				if i%50 == w {
					c.Advance(10 * time.Millisecond)
				}
			}
		})
	}
	wg.Wait()
	c.Advance(time.Second)
	if got := ran.Load() + stopped.Load(); got != workers*each {
		t.Errorf("%d timers ran, %d were stopped, %d were made", ran.Load(), stopped.Load(), workers*each)
	}
}

func TestSystem(t *testing.T) {
	t.Parallel()
	c := clock.System()
	before := time.Now()
	if now := c.Now(); now.Before(before) {
		t.Errorf("now %v is before %v", now, before)
	}
	done := make(chan struct{})
	c.AfterFunc(0, func() { close(done) })
	<-done
	if !c.AfterFunc(time.Hour, func() { t.Error("ran") }).Stop() {
		t.Error("a timer of an hour was not stopped")
	}
}

func ExampleManual() {
	c := clock.NewManual(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	c.AfterFunc(time.Minute, func() { fmt.Println("it is", c.Now().Format("15:04")) })
	c.Advance(time.Hour)
	fmt.Println("it is", c.Now().Format("15:04"))
	// Output:
	// it is 12:01
	// it is 13:00
}

// TestManualJump: what was due runs once, in its order, with the time after the jump; a timer that repeats itself has not run on the way.
func TestManualJump(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	m := clock.NewManual(start)
	var said []string
	ticks := 0
	var tick func()
	tick = func() { ticks++; m.AfterFunc(time.Second, tick) }
	m.AfterFunc(time.Second, tick)
	for i, d := range []time.Duration{3 * time.Hour, time.Hour, 49 * time.Hour} {
		m.AfterFunc(d, func() { said = append(said, fmt.Sprint(i, " after ", m.Now().Sub(start))) })
	}
	m.Jump(48 * time.Hour)
	if got := fmt.Sprint(said); got != "[1 after 48h0m0s 0 after 48h0m0s]" || ticks != 1 {
		t.Errorf("%s, %d ticks", got, ticks)
	}
	m.Advance(time.Hour)
	if len(said) != 3 || ticks != 1+3600 {
		t.Errorf("%v, %d ticks", said, ticks)
	}
	defer func() {
		if recover() == nil {
			t.Error("it jumped back")
		}
	}()
	m.Jump(-1)
}
