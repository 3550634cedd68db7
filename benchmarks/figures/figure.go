package figures

import (
	"fmt"
	"slices"
	"strings"
)

// Figure is one thing that is measured, of any broker.
type Figure struct {
	Name string // a word for the program; rows refer to it
	What string // for people
	Unit string
	Less bool // smaller is better
}

// More and Less make figures of which more is better, and less.
func More(name, what, unit string) Figure { return Figure{name, what, unit, false} }
func Less(name, what, unit string) Figure { return Figure{name, what, unit, true} }

// Format prints a number as its unit reads best.
func Format(v float64, unit string) string {
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

// Spread is the median and the extremes of the same figure over several rounds.
type Spread struct {
	Low, Median, High float64
	Rounds            int
}

// SpreadOf sorts out the values of all rounds.
func SpreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	m := s[n/2]
	if n%2 == 0 {
		m = (s[n/2-1] + s[n/2]) / 2
	}
	return Spread{s[0], m, s[n-1], n}
}

// In is the median with its unit and, of several rounds, the extremes in brackets.
func (s Spread) In(unit string) string {
	if s.Rounds < 2 {
		return Format(s.Median, unit)
	}
	low, _, _ := strings.Cut(Format(s.Low, unit), " ")
	high, _, _ := strings.Cut(Format(s.High, unit), " ")
	return fmt.Sprintf("%s (%s … %s)", Format(s.Median, unit), low, high)
}
