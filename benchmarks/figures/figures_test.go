package figures

import "testing"

func TestGoals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		g       Goal
		ratio   float64
		reached bool
		reads   string
	}{
		{AsMuch(1.2), 1.2, true, "1.2x"}, {AsMuch(1.2), 1.19, false, "1.2x"},
		{AtMost(0.5), 0.5, true, "0.5x"}, {AtMost(0.5), 0.51, false, "0.51x"},
		{FasterBy(50), 1.0 / 92, true, "92x faster"}, {FasterBy(50), 1.0 / 49, false, "49x faster"}, {FasterBy(1), 2, false, "0.5x faster"},
		{OneIn(10), 1.0 / 28, true, "1/28"}, {OneIn(10), 1.0 / 9, false, "1/9"},
	} {
		if got := c.g.Reached(c.ratio); got != c.reached {
			t.Errorf("%v, ratio %v: reached is %v", c.g, c.ratio, got)
		}
		if got := c.g.Reads.Format(c.ratio); got != c.reads {
			t.Errorf("%v, ratio %v reads %q, want %q", c.g, c.ratio, got, c.reads)
		}
	}
}

func TestFormat(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"1.25M rec/s": Format(1_250_000, "rec/s"), "12,345 acks/s": Format(12_345, "acks/s"), "456 MB": Format(456.4, "MB"),
		"12.3 ms": Format(12.34, "ms"), "0.27 µs": Format(0.271, "µs"), "0.0513 µs": Format(0.05134, "µs"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if s := SpreadOf([]float64{3, 1, 2, 10}); s.Low != 1 || s.Median != 2.5 || s.High != 10 {
		t.Errorf("%+v", s)
	}
}
