package window_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
	_ "time/tzdata" // the test must not depend on the machine's zones

	"github.com/millrace/millrace/streams/window"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func TestCalendarWindows(t *testing.T) {
	rome, saoPaulo := zone(t, "Europe/Rome"), zone(t, "America/Sao_Paulo")
	for _, c := range []struct {
		c              window.Calendar
		at, start, end string
		zone           *time.Location
		hours          int
		describe       string
	}{
		{c: window.Calendar{Zone: rome}, zone: rome, at: "2026-03-29 12:00", start: "2026-03-29 00:00", end: "2026-03-30 00:00", hours: 23, describe: "days of Europe/Rome"},
		{c: window.Calendar{Zone: rome}, zone: rome, at: "2026-10-25 23:59", start: "2026-10-25 00:00", end: "2026-10-26 00:00", hours: 25, describe: "days of Europe/Rome"},
		{c: window.Calendar{Zone: saoPaulo}, zone: saoPaulo, at: "2018-11-04 12:00", start: "2018-11-04 01:00", end: "2018-11-05 00:00", hours: 23, describe: "days of America/Sao_Paulo"},
		{c: window.Calendar{Unit: window.Week, First: time.Monday}, zone: time.UTC, at: "2026-11-29 20:00", start: "2026-11-23 00:00", end: "2026-11-30 00:00", hours: 168, describe: "weeks of UTC from Monday"},
		{c: window.Calendar{Unit: window.Month, Zone: rome}, zone: rome, at: "2024-02-29 23:59", start: "2024-02-01 00:00", end: "2024-03-01 00:00", hours: 29 * 24, describe: "months of Europe/Rome"},
		{c: window.Calendar{Unit: window.Year}, zone: time.UTC, at: "2024-12-31 23:59", start: "2024-01-01 00:00", end: "2025-01-01 00:00", hours: 366 * 24, describe: "years of UTC"},
		{c: window.Calendar{Unit: window.Month}, zone: time.UTC, at: "1970-01-01 00:00", start: "1970-01-01 00:00", end: "1970-02-01 00:00", hours: 31 * 24, describe: "months of UTC"},
	} {
		const layout = "2006-01-02 15:04"
		at, err := time.ParseInLocation(layout, c.at, c.zone)
		if err != nil {
			t.Fatal(err)
		}
		start := c.c.StartOf(at.UnixMilli())
		end := c.c.EndOf(start)
		s, e := time.UnixMilli(start).In(c.zone).Format(layout), time.UnixMilli(end).In(c.zone).Format(layout)
		if s != c.start || e != c.end || end-start != int64(c.hours)*3_600_000 || c.c.String() != c.describe {
			t.Errorf("%v at %s: from %s to %s, %d h", &c.c, c.at, s, e, (end-start)/3_600_000)
		}
	}
}

// TestCalendarsHaveNoGaps: every moment lies in exactly one window, the windows
// follow each other, and the bounds of open and closed agree.
func TestCalendarsHaveNoGaps(t *testing.T) {
	seed := uint64(20261129)
	rnd := rand.New(rand.NewPCG(seed, 1))
	zones := []*time.Location{time.UTC}
	// Clocks that change at midnight, a day that was left out, half hours.
	for _, name := range []string{"Europe/Rome", "America/Sao_Paulo", "Asia/Beirut", "Pacific/Apia", "Australia/Lord_Howe", "America/Havana", "Africa/Cairo", "America/Toronto"} {
		zones = append(zones, zone(t, name))
	}
	for range 20_000 {
		c := window.Calendar{Unit: window.Unit(rnd.IntN(4)), Zone: zones[rnd.IntN(len(zones))], First: time.Weekday(rnd.IntN(7))}
		at := rnd.Int64N(4_102_444_800_000)
		start := c.StartOf(at)
		end := c.EndOf(start)
		if start > at || end <= at || end-start > c.LongestMs() {
			t.Fatalf("seed %d, %v at %d: from %d to %d", seed, &c, at, start, end)
		}
		if c.StartOf(start) != start || c.StartOf(end-1) != start || c.StartOf(end) != end {
			t.Fatalf("seed %d, %v at %d: the windows beside [%d,%d) overlap it", seed, &c, at, start, end)
		}
		s := window.Spec{Calendar: &c, GraceMs: rnd.Int64N(100_000_000)}
		now := at + rnd.Int64N(200_000_000)
		if s.Closed(start, now) != (start < s.ClosedBefore(now)) || s.Closed(start, now) != (now >= end+s.GraceMs) {
			t.Fatalf("seed %d, %v: window [%d,%d) at %d with grace %d", seed, &c, start, end, now, s.GraceMs)
		}
	}
}

func TestUnlimitedWindowsNeverClose(t *testing.T) {
	s := window.Spec{Unlimited: true, StartMs: 10}
	if s.FirstStartOf(9) != 10 || s.FirstStartOf(1<<50) != 10 || s.Closed(10, 1<<60) || s.ClosedBefore(1<<60) != 0 {
		t.Error("an unlimited window has other bounds")
	}
	if got := fmt.Sprint(s); got != "unlimited from 1970-01-01T00:00:00.01Z, grace 0s" && got != "unlimited from 1970-01-01T00:00:00.01Z" {
		t.Error(got)
	}
	if err := (window.Spec{Calendar: &window.Calendar{Unit: 9}}).Validate(); err == nil {
		t.Error("an unknown unit was taken")
	}
}
