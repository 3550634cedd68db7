package window

import (
	"fmt"
	"time"
)

// Unit is the length of a calendar window.
type Unit int

// The units.
const (
	Day Unit = iota
	Week
	Month
	Year
)

// Calendar describes windows that are days, weeks, months or years as people in
// a time zone have them: a day on which clocks change has 23 or 25 hours. The
// windows follow each other without gap or overlap. A day whose midnight does not
// exist begins with its first moment; one that has two midnights with one of them.
//
// A time zone is a name for rules that change now and then. State written under
// other rules keeps the windows it has.
type Calendar struct {
	Unit  Unit
	Zone  *time.Location // nil: UTC
	First time.Weekday   // of a week; the zero value is Sunday
}

// Validate names the field that is wrong.
func (c *Calendar) Validate() error {
	if c.Unit < Day || c.Unit > Year {
		return fmt.Errorf("calendar unit is %d, must be a Day, Week, Month or Year", c.Unit)
	}
	if c.First < time.Sunday || c.First > time.Saturday {
		return fmt.Errorf("first day of the week is %d, must be a day from Sunday to Saturday", c.First)
	}
	return nil
}

// LongestMs is the length that no window exceeds, change of clocks included.
func (c *Calendar) LongestMs() int64 {
	days := [...]int64{1, 7, 31, 366}[c.Unit]
	return (days*24 + 24) * time.Hour.Milliseconds()
}

// StartOf is the start of the window that holds a timestamp, 0 for the one that
// starts before 1970: no window does.
func (c *Calendar) StartOf(timeMs int64) int64 {
	y, m, d := c.first(time.UnixMilli(timeMs).In(c.zone()))
	start := c.moment(y, m, d)
	for start > timeMs { // the clocks were put back over midnight
		y, m, d = c.step(y, m, d, -1)
		start = c.moment(y, m, d)
	}
	if next := c.moment(c.step(y, m, d, 1)); next <= timeMs {
		start = next
	}
	return max(start, 0)
}

// EndOf is the exclusive end of the window that starts at startMs, which is the
// start of the next one.
func (c *Calendar) EndOf(startMs int64) int64 {
	y, m, d := c.first(time.UnixMilli(startMs).In(c.zone()))
	for n := 0; ; n++ {
		if next := c.moment(c.step(y, m, d, n)); next > startMs {
			return next
		}
	}
}

func (c *Calendar) zone() *time.Location {
	if c.Zone == nil {
		return time.UTC
	}
	return c.Zone
}

// first is the first day of the unit that a local time falls into.
func (c *Calendar) first(t time.Time) (y int, m time.Month, d int) {
	y, m, d = t.Date()
	switch c.Unit {
	case Week:
		d -= (int(t.Weekday()) - int(c.First) + 7) % 7
	case Month:
		d = 1
	case Year:
		m, d = time.January, 1
	}
	return y, m, d
}

// step is the first day of the unit n units on; the date need not be in normal
// form.
func (c *Calendar) step(y int, m time.Month, d, n int) (int, time.Month, int) {
	switch c.Unit {
	case Day:
		d += n
	case Week:
		d += 7 * n
	case Month:
		m += time.Month(n)
	case Year:
		y += n
	}
	return y, m, d
}

// moment is the first moment of a date.
func (c *Calendar) moment(y int, m time.Month, d int) int64 {
	t := time.Date(y, m, d, 0, 0, 0, 0, c.zone())
	if want := time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Day(); t.Day() != want {
		// Midnight does not exist and the time given is that of the zone's rule
		// before: the date begins where the next rule does.
		if _, end := t.ZoneBounds(); !end.IsZero() {
			return end.UnixMilli()
		}
	}
	return t.UnixMilli()
}

// String reads like "days of Europe/Rome".
func (c *Calendar) String() string {
	names := [...]string{"days", "weeks", "months", "years"}
	s := names[c.Unit] + " of " + c.zone().String()
	if c.Unit == Week {
		s += " from " + c.First.String()
	}
	return s
}
