package cleaner

import "time"

// Limits of the trust in the machine's clock.
const (
	// maxStep is how far the clock may get ahead of the time that really passed before it is doubted: more than any
	// correction of a clock that works, and than most suspensions of a machine.
	maxStep = time.Hour
	// believeAfter is how long a doubted clock must go on from there to be believed all the same.
	believeAfter = 24 * time.Hour
)

// guard turns the machine's clock into a time that retention may go by. The clock may be wrong and may be set, so the guard counts
// the time that passes by itself, from the first reading on, and gives the earlier of the two: when in doubt, records stay. A
// clock that is set back makes retention late; one that is set ahead by more than maxStep is not followed until the broker
// restarts or has run a day with it. A clock that is wrong already at the start is believed: there is nothing to compare it
// with. The zero value is ready; one goroutine owns it.
type guard struct {
	startMs int64         // the clock's first reading
	began   bool          //
	offset  time.Duration // what is added to the counted time: small corrections of the clock
	doubt   time.Duration // counted time at which the clock was found ahead; negative when it is believed
}

// read takes a reading of the clock, and the time that really passed since the first one. ahead is by how much the clock is not
// followed.
func (g *guard) read(wallMs int64, passed time.Duration) (nowMs int64, ahead time.Duration) {
	if !g.began {
		*g = guard{startMs: wallMs - passed.Milliseconds(), began: true, doubt: -1}
	}
	counted := g.startMs + (passed + g.offset).Milliseconds()
	diff := clampMs(wallMs, counted)
	switch {
	case diff > maxStep && g.doubt < 0:
		g.doubt = passed
		return counted, diff
	case diff > maxStep && passed-g.doubt < believeAfter:
		return counted, diff
	case diff >= -maxStep: // followed, or believed by now
		g.offset += diff
		g.doubt = -1
		return wallMs, 0
	}
	g.doubt = -1 // set back: the counted time goes on, for when it is set right again
	return wallMs, 0
}

// clampMs is a-b, in ms, as far as a Duration can hold it.
func clampMs(a, b int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Millisecond)
	d := a - b
	if d > most || a > 0 && b < 0 && d < 0 {
		d = most
	}
	return time.Duration(max(d, -most)) * time.Millisecond
}
