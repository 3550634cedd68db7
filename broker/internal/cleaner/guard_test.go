package cleaner

import (
	"testing"
	"time"
)

// TestGuard is the rule that no jump of the clock is an accident.
func TestGuard(t *testing.T) {
	const start = int64(1_800_000_000_000)
	year := 365 * 24 * time.Hour
	at := func(d time.Duration) int64 { return start + d.Milliseconds() }
	type reading struct {
		wall    int64
		passed  time.Duration
		now     int64
		doubted bool
	}
	for name, readings := range map[string][]reading{
		"a clock that works": {
			{at(0), 0, at(0), false}, {at(time.Minute), time.Minute, at(time.Minute), false},
		},
		"small corrections add up": {
			{at(0), 0, at(0), false},
			{at(50 * time.Minute), time.Minute, at(50 * time.Minute), false},
			{at(99 * time.Minute), 2 * time.Minute, at(99 * time.Minute), false},
		},
		"a year ahead is not followed": {
			{at(0), 0, at(0), false},
			{at(year), time.Minute, at(time.Minute), true},
			{at(year + 23*time.Hour), 23 * time.Hour, at(23 * time.Hour), true},
		},
		"and is believed after a day": {
			{at(0), 0, at(0), false},
			{at(year), time.Minute, at(time.Minute), true},
			{at(year + 25*time.Hour), 25 * time.Hour, at(year + 25*time.Hour), false},
			{at(year + 26*time.Hour), 26 * time.Hour, at(year + 26*time.Hour), false},
		},
		"ahead and right again": {
			{at(0), 0, at(0), false},
			{at(year), time.Minute, at(time.Minute), true},
			{at(2 * time.Minute), 2 * time.Minute, at(2 * time.Minute), false},
			{at(year), 30 * time.Hour, at(30 * time.Hour), true},
		},
		"set back and right again": {
			{at(0), 0, at(0), false},
			{at(-year), time.Minute, at(-year), false},
			{at(time.Hour), time.Hour, at(time.Hour), false},
		},
		"the ends of the scale": {
			{-1 << 63, 0, -1 << 63, false}, {1<<63 - 1, time.Second, -1<<63 + 1000, true},
		},
	} {
		var g guard
		for i, r := range readings {
			now, ahead := g.read(r.wall, r.passed)
			if now != r.now || (ahead > 0) != r.doubted {
				t.Errorf("%s, reading %d: %d (ahead %v), want %d, doubted %v", name, i, now, ahead, r.now, r.doubted)
			}
		}
	}
}
