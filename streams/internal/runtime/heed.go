package runtime

import "context"

// heed does what the owner wishes: while the run is paused it waits, with everything
// committed and the place in the group kept. next is closed when the wishes change.
func (w *worker) heed(ctx context.Context, changed <-chan struct{}) (next <-chan struct{}, err error) {
	for {
		paused, g, next := w.control.wishes()
		w.aim(g)
		if !paused {
			if w.state == Paused {
				w.enter(Running)
			}
			return next, nil
		}
		if err := w.commit(w.life); err != nil {
			return nil, spoil(err)
		}
		w.enter(Paused)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changed:
			return nil, errRebalance
		case <-next:
		}
	}
}

// aim makes the inputs stop where the goal says. A goal only ever gets further ends:
// what has stopped remains so.
func (w *worker) aim(g *goal) {
	w.goal = g
	if g == nil {
		return
	}
	for _, a := range w.tasks {
		for _, in := range a.inputs {
			if at, ok := g.stops[in.topic]; ok {
				in.feed.Stop(at)
			}
		}
	}
}

// arrive tells the owner once all inputs have passed the ends of the goal and that
// is committed. The worker calls it when it finds nothing to process.
func (w *worker) arrive() error {
	g := w.goal
	if g == nil {
		return nil
	}
	for _, a := range w.tasks {
		for _, in := range a.inputs {
			if in.feed.Position() < g.ends[in.topic] {
				return nil
			}
		}
	}
	if err := w.commit(w.life); err != nil {
		return spoil(err)
	}
	if w.reached != g.number {
		w.reached = g.number
		w.control.say(w.number, func(s *WorkerStatus) { s.reached = g.number })
	}
	return nil
}
