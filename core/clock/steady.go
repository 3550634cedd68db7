package clock

import "time"

// Steady is the time of day for whoever counts deadlines in it: it never goes back, and goes on at least as fast as time
// passes. When the clock under it is set ahead it follows; when the clock is set back it goes on as if nothing had happened,
// until the clock has caught up. So a deadline comes early at worst, never late. It has one owner at a time.
type Steady struct {
	c     Clock
	shown time.Time
	read  time.Time // of the clock, when shown was
	since time.Duration
}

// NewSteady begins at the time of a clock.
func NewSteady(c Clock) Steady {
	now := c.Now()
	return Steady{c: c, shown: now.Round(0), read: now, since: elapsed(c)}
}

// Now is the steady time.
func (s *Steady) Now() time.Time {
	now, since := s.c.Now(), elapsed(s.c)
	passed := now.Sub(s.read) // by the monotonic reading that the system's times carry
	if _, ok := s.c.(Monotonic); ok {
		passed = since - s.since
	}
	s.read, s.since = now, since
	s.shown = s.shown.Add(max(passed, 0))
	if ahead := now.Round(0); ahead.After(s.shown) { // compared by the time of day
		s.shown = ahead
	}
	return s.shown
}

// Raise makes the time at least t.
func (s *Steady) Raise(t time.Time) {
	if now := s.Now(); t.After(now) {
		s.shown = t
	}
}

// Monotonic is a clock whose times carry no monotonic reading and that knows by itself how much time has passed.
type Monotonic interface{ Elapsed() time.Duration }

func elapsed(c Clock) time.Duration {
	if m, ok := c.(Monotonic); ok {
		return m.Elapsed()
	}
	return 0
}
