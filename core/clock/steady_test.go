package clock_test

import (
	"testing"
	"time"

	"github.com/millrace/millrace/core/clock"
)

// jumpy is a clock that can be set.
type jumpy struct {
	*clock.Manual
	skew time.Duration
}

func (j *jumpy) Now() time.Time         { return j.Manual.Now().Add(j.skew) }
func (j *jumpy) Elapsed() time.Duration { return j.Manual.Now().Sub(start) }

func TestSteady(t *testing.T) {
	t.Parallel()
	j := &jumpy{Manual: clock.NewManual(start)}
	s := clock.NewSteady(j)
	want := func(d time.Duration) {
		t.Helper()
		if got := s.Now().Sub(start); got != d {
			t.Fatalf("it is %v, want %v", got, d)
		}
	}
	j.Advance(time.Second)
	want(time.Second)
	j.skew = time.Hour // set ahead: followed
	want(time.Hour + time.Second)
	j.skew = -time.Hour // set back: not followed, and time goes on
	want(time.Hour + time.Second)
	j.Advance(2 * time.Second)
	want(time.Hour + 3*time.Second)
	j.Advance(time.Hour)
	j.skew = 2 * time.Hour // ahead of what is shown
	want(3*time.Hour + 3*time.Second)
	s.Raise(start.Add(time.Minute)) // no effect
	want(3*time.Hour + 3*time.Second)
	s.Raise(start.Add(4 * time.Hour))
	j.Advance(time.Second)
	want(4*time.Hour + time.Second)
}

func TestSteadySystem(t *testing.T) {
	t.Parallel()
	s := clock.NewSteady(clock.System())
	last := s.Now()
	for range 1000 {
		now := s.Now()
		if now.Before(last) {
			t.Fatalf("from %v to %v", last, now)
		}
		last = now
	}
	if off := time.Until(last); off.Abs() > time.Minute {
		t.Fatalf("off by %v", off)
	}
}
