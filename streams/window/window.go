package window

import (
	"fmt"
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
	SizeMs    int64
	AdvanceMs int64 // from one start to the next; windows overlap if it is below the size
	GraceMs   int64
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
	case s.SizeMs < 1:
		return fmt.Errorf("window size is %d ms, at least 1 is needed", s.SizeMs)
	case s.AdvanceMs < 1 || s.AdvanceMs > s.SizeMs:
		return fmt.Errorf("window advance is %d ms, must be from 1 to the size, %d", s.AdvanceMs, s.SizeMs)
	case s.GraceMs < 0:
		return fmt.Errorf("grace is %d ms, must not be negative", s.GraceMs)
	}
	return nil
}

// StartOf is the start of the last window that holds a timestamp.
func (s Spec) StartOf(timeMs int64) int64 { return timeMs - timeMs%s.AdvanceMs }

// FirstStartOf is the start of the first window that holds a timestamp. No
// window starts before 1970.
func (s Spec) FirstStartOf(timeMs int64) int64 {
	if timeMs < s.SizeMs {
		return 0
	}
	return s.StartOf(timeMs-s.SizeMs) + s.AdvanceMs
}

// Closed reports whether the window that starts at startMs takes no more
// records at this stream time.
func (s Spec) Closed(startMs, streamTimeMs int64) bool {
	return streamTimeMs-startMs >= s.SizeMs+s.GraceMs // so written, no timestamp overflows
}

// ClosedBefore returns the bound below which every window is closed: the
// windows with start < bound, given the stream time.
func (s Spec) ClosedBefore(streamTimeMs int64) int64 {
	return streamTimeMs - s.SizeMs - s.GraceMs + 1
}

// String reads like "tumbling 1m0s, grace 10s" or "hopping 1m0s every 10s, grace
// 0s".
func (s Spec) String() string {
	ms := func(n int64) string { return (time.Duration(n) * time.Millisecond).String() }
	if s.AdvanceMs != s.SizeMs {
		return "hopping " + ms(s.SizeMs) + " every " + ms(s.AdvanceMs) + ", grace " + ms(s.GraceMs)
	}
	return "tumbling " + ms(s.SizeMs) + ", grace " + ms(s.GraceMs)
}
