package sim

import (
	"time"

	"github.com/millrace/millrace/core/clock"
)

// driver is the clock of one run of the broker, and what runs its goroutines' work.
type driver struct {
	w    *world
	of   *life
	skew *time.Duration // how far the machine's clock is off; shared by all runs
	// flushing says that the step under way is a flush, the only one that may let time pass in the middle.
	flushing bool
}

var _ clock.Driver = (*driver)(nil)

// Now is the time of day, which may jump.
func (d *driver) Now() time.Time { return epoch.Add(d.w.now + *d.skew) }

// Elapsed is the time that never jumps.
func (d *driver) Elapsed() time.Duration { return d.w.now }

// AfterFunc follows the time that never jumps, as the operating system's timers do; they are a little late.
func (d *driver) AfterFunc(after time.Duration, f func()) clock.Timer {
	return timer{d.w, d.w.after(max(after, 0)+d.w.between(0, 200*time.Microsecond), "timer", d.of, f)}
}

// Go runs a step a little later: no two of them have an order.
func (d *driver) Go(what string, f func()) {
	delay := d.w.between(0, 100*time.Microsecond)
	if d.w.chance(20) { // a goroutine that is not run for a while
		delay = d.w.between(0, 20*time.Millisecond)
	}
	s := d.w.after(delay, what, d.of, f)
	switch what {
	case "flush":
		s.run = func() {
			before := d.flushing
			d.flushing = true
			f()
			d.flushing = before
		}
	case "metadata": // it deletes partitions, which waits for their flush to end
		s.alone = true
	}
}

// Await runs other steps meanwhile.
func (d *driver) Await(done func() bool) error { return d.w.await(d.of, done) }

type timer struct {
	w *world
	s *step
}

func (t timer) Stop() bool { return t.w.cancel(t.s) }
