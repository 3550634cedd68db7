package operator

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestProgressSurvives(t *testing.T) {
	a, b := newClock("in.windowed-count"), newClock("other")
	a.Advance(1_700_000_000_000)
	s := encodeProgress(1_700_000_000_001, []*Clock{a, b})

	c, d, e := newClock("new"), newClock("in.windowed-count"), newClock("other")
	clocks := []*Clock{c, d, e}
	ms := int64(-1)
	older := "1;5;" + a.id + "=7;" + b.id + "=9;gone=z"
	for _, s := range []string{"", older, s, older} {
		if err := restoreProgress(s, &ms, clocks); err != nil {
			t.Fatal(err)
		}
	}
	if got := fmt.Sprint(ms, c.Ms(), d.Ms(), e.Ms()); got != "1700000000001 -1 1700000000000 9" {
		t.Errorf("restored %s", got)
	}
}

func TestNoProgressIsEmpty(t *testing.T) {
	if s := encodeProgress(-1, []*Clock{newClock("x")}); s != "" {
		t.Errorf("progress of a new task is %q", s)
	}
}

func TestBadProgressIsRefused(t *testing.T) {
	ms := int64(-1)
	for _, s := range []string{"2;0", "1", "x", "1;", "1;zz zz", "1;0;a", "1;0;a=-", "1;0;=;"} {
		if err := restoreProgress(s, &ms, nil); err == nil {
			t.Errorf("%q was taken", s)
		}
	}
}

// TestProgressFitsIntoOffsetMetadata: brokers refuse more than 4096 bytes.
func TestProgressFitsIntoOffsetMetadata(t *testing.T) {
	var clocks []*Clock
	for i := range maxClocks {
		c := newClock(strings.Repeat("x", i))
		c.Advance(math.MaxInt64)
		clocks = append(clocks, c)
	}
	if n := len(encodeProgress(math.MaxInt64, clocks)); n > 3500 {
		t.Errorf("%d clocks take %d bytes", maxClocks, n)
	}
}
