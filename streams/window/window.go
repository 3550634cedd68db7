package window

import (
	"fmt"
	"math"
	"time"
)

// Window is one stretch of time, [Start, End).
type Window struct{ Start, End time.Time }

// Between makes the window of two timestamps in milliseconds, in UTC.
func Between(startMs, endMs int64) Window {
	return Window{time.UnixMilli(startMs).UTC(), time.UnixMilli(endMs).UTC()}
}

// StartMs is the inclusive start in milliseconds.
func (w Window) StartMs() int64 { return w.Start.UnixMilli() }

// EndMs is the exclusive end in milliseconds.
func (w Window) EndMs() int64 { return w.End.UnixMilli() }

// Contains reports whether t lies in the window.
func (w Window) Contains(t time.Time) bool { return !t.Before(w.Start) && t.Before(w.End) }

// String prints the window as [start, end).
func (w Window) String() string {
	const layout = "2006-01-02T15:04:05.000Z"
	return "[" + w.Start.UTC().Format(layout) + ", " + w.End.UTC().Format(layout) + ")"
}

// Spec describes a kind of windows: how long, and how long they stay open.
type Spec struct {
	SizeMs    int64 // of calendar windows that of the longest; of unlimited ones none
	AdvanceMs int64 // from one start to the next; windows overlap if it is below the size
	GraceMs   int64
	// Calendar windows are days, weeks, months or years of a time zone.
	Calendar *Calendar
	// Unlimited is one window without an end that starts at StartMs.
	Unlimited bool
	StartMs   int64
}

// Tumbling describes windows of one size that follow each other without gap
// or overlap.
func Tumbling(size, grace time.Duration) Spec {
	return Hopping(size, size, grace)
}

// Hopping describes windows of one size of which one starts at every multiple of
// advance.
func Hopping(size, advance, grace time.Duration) Spec {
	return Spec{SizeMs: size.Milliseconds(), AdvanceMs: advance.Milliseconds(), GraceMs: grace.Milliseconds()}
}

// Validate names the limit that is broken.
func (s Spec) Validate() error {
	switch {
	case s.GraceMs < 0:
		return fmt.Errorf("grace is %d ms, must not be negative", s.GraceMs)
	case s.Unlimited && s.StartMs < 0:
		return fmt.Errorf("start is %d ms, must not be before 1970", s.StartMs)
	case s.Unlimited:
		return nil
	case s.Calendar != nil:
		return s.Calendar.Validate()
	case s.SizeMs < 1:
		return fmt.Errorf("window size is %d ms, at least 1 is needed", s.SizeMs)
	case s.AdvanceMs < 1 || s.AdvanceMs > s.SizeMs:
		return fmt.Errorf("window advance is %d ms, must be from 1 to the size, %d", s.AdvanceMs, s.SizeMs)
	}
	return nil
}

// StartOf is the start of the last window that holds a timestamp. One that lies
// before the only unlimited window belongs to none, and gets its start.
func (s *Spec) StartOf(timeMs int64) int64 {
	switch {
	case s.Unlimited:
		return s.StartMs
	case s.Calendar != nil:
		return s.Calendar.StartOf(timeMs)
	}
	return timeMs - timeMs%s.AdvanceMs
}

// FirstStartOf is the start of the first window that holds a timestamp. No
// window starts before 1970.
func (s *Spec) FirstStartOf(timeMs int64) int64 {
	if s.Unlimited || s.Calendar != nil {
		return s.StartOf(timeMs)
	}
	if timeMs < s.SizeMs {
		return 0
	}
	return timeMs - s.SizeMs - (timeMs-s.SizeMs)%s.AdvanceMs + s.AdvanceMs
}

// Next is the start of the window after the one that starts at startMs.
func (s *Spec) Next(startMs int64) int64 {
	switch {
	case s.Unlimited:
		return math.MaxInt64
	case s.Calendar != nil:
		return s.Calendar.EndOf(startMs)
	}
	return startMs + s.AdvanceMs
}

// EndOf is the exclusive end of the window that starts at startMs.
func (s *Spec) EndOf(startMs int64) int64 {
	switch {
	case s.Unlimited:
		return math.MaxInt64
	case s.Calendar != nil:
		return s.Calendar.EndOf(startMs)
	}
	return startMs + s.SizeMs
}

// Closed reports whether the window that starts at startMs takes no more
// records at this stream time.
func (s *Spec) Closed(startMs, streamTimeMs int64) bool {
	switch {
	case s.Unlimited:
		return false
	case s.Calendar != nil:
		return streamTimeMs-s.GraceMs >= s.Calendar.EndOf(startMs)
	}
	return streamTimeMs-startMs >= s.SizeMs+s.GraceMs // so written, no timestamp overflows
}

// ClosedBefore returns the bound below which every window is closed: the
// windows with start < bound, given the stream time.
func (s *Spec) ClosedBefore(streamTimeMs int64) int64 {
	switch {
	case s.Unlimited:
		return 0
	case s.Calendar != nil:
		if streamTimeMs < s.GraceMs {
			return 0
		}
		return s.Calendar.StartOf(streamTimeMs - s.GraceMs) // the window that holds this time is the first that is open
	}
	return streamTimeMs - s.SizeMs - s.GraceMs + 1
}

// String reads like "tumbling 1m0s, grace 10s", "hopping 1m0s every 10s, grace
// 0s", "days of Europe/Rome, grace 1h0m0s" or "unlimited from 2001-01-01T00:00:00Z".
func (s Spec) String() string {
	ms := func(n int64) string { return (time.Duration(n) * time.Millisecond).String() }
	kind := "tumbling " + ms(s.SizeMs)
	switch {
	case s.Unlimited:
		return "unlimited from " + time.UnixMilli(s.StartMs).UTC().Format(time.RFC3339Nano)
	case s.Calendar != nil:
		kind = s.Calendar.String()
	case s.AdvanceMs != s.SizeMs:
		kind = "hopping " + ms(s.SizeMs) + " every " + ms(s.AdvanceMs)
	}
	return kind + ", grace " + ms(s.GraceMs)
}
