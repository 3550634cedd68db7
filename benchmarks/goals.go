package main

import "fmt"

// goal is what is asked of a ratio of ours against theirs: a limit that it has to reach from one side, and how such a
// ratio reads. The zero value asks nothing.
type goal struct {
	ratio float64 // ours / theirs
	reads reading
	words string // instead of the ratio: the goal is a share of another figure, see row.bound
}

type reading int

const (
	times    reading = iota + 1 // ours is that many times theirs; more is better
	part                        // ours is that part of theirs; less is better
	faster                      // theirs takes that many times as long as ours
	fraction                    // ours is one n-th of theirs
)

func asMuch(r float64) goal       { return goal{ratio: r, reads: times} }
func atMost(r float64) goal       { return goal{ratio: r, reads: part} }
func fasterBy(n float64) goal     { return goal{ratio: 1 / n, reads: faster} }
func oneIn(n float64) goal        { return goal{ratio: 1 / n, reads: fraction} }
func upTo(limit string) goal      { return goal{words: limit} }
func (g goal) asked() bool        { return g.ratio != 0 || g.words != "" }
func (g goal) isNumber() bool     { return g.ratio != 0 }
func (g goal) lessIsBetter() bool { return g.reads != times }

// reached says whether a ratio is good enough. Ratios are judged as measured, not as printed.
func (g goal) reached(ratio float64) bool {
	if g.lessIsBetter() {
		return ratio <= g.ratio
	}
	return ratio >= g.ratio
}

func (g goal) String() string {
	if g.words != "" || !g.asked() {
		return g.words
	}
	return g.reads.format(g.ratio)
}

// format prints a ratio the way the goal of the row reads.
func (r reading) format(ratio float64) string {
	switch {
	case ratio == 0:
		return ""
	case r == faster:
		return digits(1/ratio) + "x faster"
	case r == fraction:
		return "1/" + digits(1/ratio)
	}
	return digits(ratio) + "x"
}

func digits(v float64) string {
	if v >= 20 || v == float64(int(v)) {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2g", v)
}
