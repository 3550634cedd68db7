package clock

// Driver is a clock that also takes the place of goroutines. Under it a whole program is one sequence of steps on one
// goroutine: what would go on beside its caller is a step that the driver runs later, in an order of its own choosing. A
// simulation gives one, so that a seed decides every interleaving; production has none.
//
// Code that keeps workers asks [Driven]. With a driver it keeps none: where it would wake a worker it calls Go with what
// that worker would do next, which must not wait for another step.
type Driver interface {
	Clock
	// Go runs f later, never within the call. what names the step for whoever reads a trace.
	Go(what string, f func())
	// Await runs other steps until done says so. It is for the few callers that may wait, such as the start of a program.
	// An error says that done can't come true any more.
	Await(done func() bool) error
}

// Driven gives the driver of a clock, nil for a clock that leaves goroutines alone.
func Driven(c Clock) Driver {
	d, _ := c.(Driver)
	return d
}

// Go runs f beside the caller: as a step of the clock's driver, or on a goroutine.
func Go(c Clock, what string, f func()) {
	if d := Driven(c); d != nil {
		d.Go(what, f)
		return
	}
	go f()
}

// Receive takes one value from a channel: in steps of the clock's driver, or as any goroutine does. The channel has room
// for the value, so that whoever sends never waits.
func Receive[T any](c Clock, ch <-chan T) (v T, err error) {
	if d := Driven(c); d != nil {
		if err := d.Await(func() bool { return len(ch) > 0 }); err != nil {
			return v, err
		}
	}
	return <-ch, nil
}
