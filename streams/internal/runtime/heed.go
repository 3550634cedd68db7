package runtime

// heed does what the owner wishes: while the run is paused the worker processes
// nothing, with everything committed and its place in the group kept.
func (w *worker) heed() error {
	paused, g, changed := w.control.wishes()
	w.wishes = changed
	w.aim(g)
	if paused && !w.resting && w.joining == nil {
		if err := w.commit(w.life); err != nil {
			return spoil(err)
		}
	}
	w.resting = paused
	w.announce()
	return nil
}

// aim makes the inputs stop where the goal says. A goal only ever gets further ends:
// what has stopped remains so.
func (w *worker) aim(g *goal) {
	w.goal = g
	if g == nil {
		return
	}
	for _, a := range w.tasks {
		a.idle = min(a.idle, 0) // nothing more is to come
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
	if g == nil || w.joining != nil || len(w.missing()) > 0 {
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
