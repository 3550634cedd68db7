package runtime

import (
	"context"
	"time"
)

// react deals with one thing that has happened around the tasks. With an idle timer it
// waits for one, for new records or for the timer; without, it only looks.
func (w *worker) react(ctx context.Context, arrived <-chan struct{}, idle <-chan time.Time) error {
	if len(w.waiting) > 0 {
		w.inquire(nil) // a commit may have come since
	}
	if idle == nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.changed():
			return w.summoned()
		case <-w.answered():
			return w.arriveIn()
		case <-w.keeper.ready:
			return w.adopt()
		case <-w.wishes:
			return w.heed()
		case q := <-w.place.inbox:
			w.inquire(q)
		default:
		}
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-w.changed():
		return w.summoned()
	case <-w.answered():
		return w.arriveIn()
	case <-w.keeper.ready:
		return w.adopt()
	case <-w.wishes:
		return w.heed()
	case q := <-w.place.inbox:
		w.inquire(q)
	case <-arrived:
	case <-idle:
	}
	return nil
}
