package operator

import "math"

// Clocks that timers run by.
const (
	StreamClock = iota // the task's stream time
	WallClock
)

// never is the due time of a timer that will not be called.
const never = math.MaxInt64

// timer is something that is due at a time: a function that is called at regular
// times, or the next of the timers that keys have. What is due at the same time is
// called in the order it was made in.
type timer interface {
	due() int64
	// call runs the user's function for what is due and moves on to the next.
	call(nowMs int64) error
}
