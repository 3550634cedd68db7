package streams

import (
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/streams/window"
)

// Windows describes a kind of windows; make one with Tumbling, Hopping, Sliding,
// Daily, Weekly, Monthly, Yearly or Unlimited.
type Windows struct {
	spec    window.Spec
	sliding bool // windows lie around records; the size is one more than the reach
	err     error
}

// Tumbling windows have one size and follow each other without gap or overlap,
// aligned to the epoch. The option is Grace.
func Tumbling(size time.Duration, opts ...Opt) Windows {
	return Hopping(size, size, opts...)
}

// Hopping windows have one size, and one starts at every multiple of advance
// since the epoch. Where they overlap, a record counts in each. The option is
// Grace.
func Hopping(size, advance time.Duration, opts ...Opt) Windows {
	o, err := collect(opts, forWindows)
	spec := window.Hopping(size, advance, o.grace)
	if err == nil && (size%time.Millisecond != 0 || advance%time.Millisecond != 0 || o.grace%time.Millisecond != 0) {
		err = fmt.Errorf("window size %v and grace %v must be whole milliseconds, as timestamps are", size, o.grace)
		if advance != size {
			err = fmt.Errorf("window size %v, advance %v and grace %v must be whole milliseconds, as timestamps are", size, advance, o.grace)
		}
	}
	if err == nil {
		err = spec.Validate()
	}
	return Windows{spec: spec, err: err}
}

// Sliding windows hold the records of a key that are no further apart than reach:
// one ends at each record, and one starts 1 ms after it, if other records lie in
// it. So each set of records that a window of that length can hold has one window.
// Both ends belong to it. Null values are dropped. The option is Grace.
func Sliding(reach time.Duration, opts ...Opt) Windows {
	o, err := collect(opts, forWindows)
	if err == nil && (reach < time.Millisecond || reach%time.Millisecond != 0 || o.grace < 0 || o.grace%time.Millisecond != 0) {
		err = fmt.Errorf("reach %v of the sliding window and grace %v must be whole milliseconds, the reach at least 1 ms", reach, o.grace)
	}
	return Windows{spec: window.Spec{SizeMs: reach.Milliseconds() + 1, AdvanceMs: 1, GraceMs: o.grace.Milliseconds()}, sliding: true, err: err}
}

// Daily windows are the days of a time zone, nil for UTC; one on which clocks
// change has 23 or 25 hours. The option is Grace.
func Daily(zone *time.Location, opts ...Opt) Windows {
	return calendar(window.Calendar{Unit: window.Day, Zone: zone}, opts)
}

// Weekly windows are the weeks of a time zone that begin with a day.
func Weekly(zone *time.Location, first time.Weekday, opts ...Opt) Windows {
	return calendar(window.Calendar{Unit: window.Week, Zone: zone, First: first}, opts)
}

// Monthly windows are the months of a time zone.
func Monthly(zone *time.Location, opts ...Opt) Windows {
	return calendar(window.Calendar{Unit: window.Month, Zone: zone}, opts)
}

// Yearly windows are the years of a time zone.
func Yearly(zone *time.Location, opts ...Opt) Windows {
	return calendar(window.Calendar{Unit: window.Year, Zone: zone}, opts)
}

func calendar(c window.Calendar, opts []Opt) Windows {
	o, err := collect(opts, forWindows)
	spec := window.Spec{Calendar: &c, GraceMs: o.grace.Milliseconds()}
	if err == nil {
		err = spec.Validate()
	}
	if err == nil {
		spec.SizeMs = c.LongestMs()
	}
	return Windows{spec: spec, err: err}
}

// Unlimited is one window that starts at a time and never ends. Records before
// its start are in no window. Its rows are kept for ever, and OnClose is refused.
func Unlimited(start time.Time) Windows {
	spec := window.Spec{Unlimited: true, StartMs: start.UnixMilli()}
	return Windows{spec: spec, err: spec.Validate()}
}

// retention is the least time that rows have to be kept for, 0 for ever.
func (w Windows) retention() time.Duration {
	ms := w.spec.SizeMs + w.spec.GraceMs
	switch {
	case w.spec.Unlimited:
		ms = 0
	case w.sliding: // from a window's end; a record may build on windows two lengths back
		ms = 2*w.spec.SizeMs + w.spec.GraceMs
	}
	return time.Duration(ms) * time.Millisecond
}

// String reads like "tumbling 1m0s, grace 10s".
func (w Windows) String() string {
	if w.sliding {
		return fmt.Sprintf("sliding %v, grace %v", time.Duration(w.spec.SizeMs-1)*time.Millisecond, time.Duration(w.spec.GraceMs)*time.Millisecond)
	}
	return w.spec.String()
}

// shape is what may not change under a store's name.
func (w Windows) shape(types string) string {
	size := (time.Duration(w.spec.SizeMs) * time.Millisecond).String()
	switch {
	case w.sliding:
		return "rows " + types + " in sliding windows of " + (time.Duration(w.spec.SizeMs-1) * time.Millisecond).String()
	case w.spec.Unlimited, w.spec.Calendar != nil:
		kind, _, _ := strings.Cut(w.spec.String(), ",")
		return "rows " + types + " in windows " + kind
	case w.spec.AdvanceMs != w.spec.SizeMs:
		size += " every " + (time.Duration(w.spec.AdvanceMs) * time.Millisecond).String()
	}
	return "rows " + types + " in windows of " + size
}
