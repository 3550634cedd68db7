package main

import (
	"fmt"
	"slices"
	"strings"
)

// figure is one thing that is measured, of any broker.
type figure struct {
	name string // a word for the program; rows refer to it
	what string // for people
	unit string
	less bool // smaller is better
}

// more and less make figures of which more is better, and less.
func more(name, what, unit string) figure { return figure{name, what, unit, false} }
func less(name, what, unit string) figure { return figure{name, what, unit, true} }

// format prints a number as its unit reads best.
func format(v float64, unit string) string {
	switch {
	case unit == "rec/s" && v >= 1e5:
		return fmt.Sprintf("%.2fM rec/s", v/1e6)
	case v >= 10_000:
		return thousands(int64(v+0.5)) + " " + unit
	case v >= 100:
		return fmt.Sprintf("%.0f %s", v, unit)
	case v >= 10:
		return fmt.Sprintf("%.1f %s", v, unit)
	case v >= 0.1 || v == 0:
		return fmt.Sprintf("%.2f %s", v, unit)
	}
	return fmt.Sprintf("%.3g %s", v, unit)
}

func thousands(n int64) string {
	s := fmt.Sprint(n)
	var groups []string
	for len(s) > 3 {
		groups = append([]string{s[len(s)-3:]}, groups...)
		s = s[:len(s)-3]
	}
	return strings.Join(append([]string{s}, groups...), ",")
}

// spread is the median and the extremes of the same figure over several rounds.
type spread struct {
	low, median, high float64
	rounds            int
}

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	m := s[n/2]
	if n%2 == 0 {
		m = (s[n/2-1] + s[n/2]) / 2
	}
	return spread{s[0], m, s[n-1], n}
}

func (s spread) in(unit string) string {
	if s.rounds < 2 {
		return format(s.median, unit)
	}
	low, _, _ := strings.Cut(format(s.low, unit), " ")
	high, _, _ := strings.Cut(format(s.high, unit), " ")
	return fmt.Sprintf("%s (%s … %s)", format(s.median, unit), low, high)
}
