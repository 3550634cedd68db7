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
	SizeMs  int64
	GraceMs int64
}

// Tumbling describes windows of one size that follow each other without gap
// or overlap.
func Tumbling(size, grace time.Duration) Spec {
	return Spec{SizeMs: size.Milliseconds(), GraceMs: grace.Milliseconds()}
}

// Validate names the limit that is broken.
func (s Spec) Validate() error {
	switch {
	case s.SizeMs < 1:
		return fmt.Errorf("window size is %d ms, at least 1 is needed", s.SizeMs)
	case s.GraceMs < 0:
		return fmt.Errorf("grace is %d ms, must not be negative", s.GraceMs)
	}
	return nil
}

// StartOf is the start of the window that holds a timestamp.
func (s Spec) StartOf(timeMs int64) int64 { return timeMs - timeMs%s.SizeMs }

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

// String reads like "tumbling 1m0s, grace 10s".
func (s Spec) String() string {
	ms := func(n int64) string { return (time.Duration(n) * time.Millisecond).String() }
	return "tumbling " + ms(s.SizeMs) + ", grace " + ms(s.GraceMs)
}
