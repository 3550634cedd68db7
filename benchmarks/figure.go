package main

import (
	"fmt"
	"slices"
)

// figure is one measured number.
type figure struct {
	name  string
	unit  string
	value float64
	less  bool // smaller is better
}

// format prints a number as its unit reads best.
func format(v float64, unit string) string {
	switch {
	case unit == "rec/s" && v >= 1e5:
		return fmt.Sprintf("%.2fM rec/s", v/1e6)
	case v >= 100:
		return fmt.Sprintf("%.0f %s", v, unit)
	case v >= 10:
		return fmt.Sprintf("%.1f %s", v, unit)
	}
	return fmt.Sprintf("%.2f %s", v, unit)
}

// spread is the median and the extremes of the same figure over several rounds.
type spread struct{ low, median, high float64 }

func spreadOf(values []float64) spread {
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	m := s[n/2]
	if n%2 == 0 {
		m = (s[n/2-1] + s[n/2]) / 2
	}
	return spread{s[0], m, s[n-1]}
}
