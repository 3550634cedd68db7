package figures

import "fmt"

// Goal is what is asked of a ratio of ours against theirs: a limit that it has to reach from one side, and how such a
// ratio reads. The zero value asks nothing.
type Goal struct {
	Ratio float64 // ours / theirs
	Reads Reading
	Words string // instead of the ratio: the goal is a share of another figure, which the row names
}

// Reading is how a ratio reads.
type Reading int

// The readings.
const (
	Times    Reading = iota + 1 // ours is that many times theirs; more is better
	Part                        // ours is that part of theirs; less is better
	Faster                      // theirs takes that many times as long as ours
	Fraction                    // ours is one n-th of theirs
)

// AsMuch and the others make goals: at least that many times theirs, at most that part of it, that many times as fast,
// one n-th of it, a limit in words.
func AsMuch(r float64) Goal   { return Goal{Ratio: r, Reads: Times} }
func AtMost(r float64) Goal   { return Goal{Ratio: r, Reads: Part} }
func FasterBy(n float64) Goal { return Goal{Ratio: 1 / n, Reads: Faster} }
func OneIn(n float64) Goal    { return Goal{Ratio: 1 / n, Reads: Fraction} }
func UpTo(limit string) Goal  { return Goal{Words: limit} }

// Asked, IsNumber and LessIsBetter say what kind of goal it is.
func (g Goal) Asked() bool        { return g.Ratio != 0 || g.Words != "" }
func (g Goal) IsNumber() bool     { return g.Ratio != 0 }
func (g Goal) LessIsBetter() bool { return g.Reads != Times }

// Reached says whether a ratio is good enough. Ratios are judged as measured, not as printed.
func (g Goal) Reached(ratio float64) bool {
	if g.LessIsBetter() {
		return ratio <= g.Ratio
	}
	return ratio >= g.Ratio
}

// String is the goal as a page shows it.
func (g Goal) String() string {
	if g.Words != "" || !g.Asked() {
		return g.Words
	}
	return g.Reads.Format(g.Ratio)
}

// Format prints a ratio the way the goal of the row reads.
func (r Reading) Format(ratio float64) string {
	switch {
	case ratio == 0:
		return ""
	case r == Faster:
		return digits(1/ratio) + "x faster"
	case r == Fraction:
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
