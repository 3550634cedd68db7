package runtime

import (
	"time"

	"github.com/millrace/millrace/streams/internal/task"
)

// How often a worker's picture is made anew, and its images are measured.
const (
	showInterval = 250 * time.Millisecond
	sizeInterval = 5 * time.Second
)

// measured takes note of a commit that began then.
func (w *worker) measured(began time.Time) {
	if w.meter == nil {
		return
	}
	now := time.Now()
	w.meter.commits.add(now.Sub(began).Seconds(), 1)
	for _, a := range w.tasks {
		if a.gauge != nil {
			a.gauge.committed(now.UnixMilli())
		}
	}
}

// shows shows a new state.
func (w *worker) shows(s State) {
	if w.meter != nil {
		w.meter.state = s
		w.pose()
	}
}

// refresh shows the present state if the last picture is old.
func (w *worker) refresh() {
	if w.meter != nil && time.Since(w.meter.last) >= showInterval {
		w.pose()
	}
}

// pose makes a picture of the worker.
func (w *worker) pose() {
	m := w.meter
	m.last = time.Now()
	measure := m.last.Sub(m.sized) >= sizeInterval
	if measure {
		m.sized = m.last
	}
	f := &WorkerFigures{
		Worker: w.number, State: m.state, At: m.last, Processed: w.progress.Processed, Emitted: w.progress.Emitted,
		Commits: w.progress.Commits, StartedOver: m.startedOver, Committing: m.commits, Dropped: w.dropped(),
	}
	for _, a := range w.tasks {
		f.Tasks = append(f.Tasks, a.figures(measure))
	}
	for _, g := range w.globals {
		rows, bytes := g.rows.Size()
		f.Globals = append(f.Globals, GlobalFigures{g.spec.Name, rows, bytes})
	}
	m.shown.Store(f)
}

// figures makes a picture of a task.
func (a *active) figures(measure bool) TaskFigures {
	f := TaskFigures{Sub: a.sub.Name, Partition: a.id.unit, StreamMs: a.task.StreamTimeMs(), Dropped: a.task.Dropped()}
	if t, ok := a.task.(task.Watched); ok {
		f.Nodes = t.Seen()
	}
	for _, in := range a.inputs {
		f.Inputs = append(f.Inputs, InputFigures{in.topic.Topic, in.topic.Partition, in.feed.Position(), in.committed, in.feed.End()})
	}
	g := a.gauge
	if g == nil {
		return f
	}
	f.Processed, f.Emitted, f.Busy, f.Lateness, f.Latency = g.processed, g.emitted, g.busy.Seconds(), g.lateness, g.latency
	for _, s := range a.stores {
		was, known := g.sizes[s.spec.Name]
		if measure || !known {
			was = size{-1, -1}
			if rows, bytes, ok := s.overlay.ImageSize(); ok {
				was = size{rows, bytes}
			}
			g.sizes[s.spec.Name] = was
		}
		f.Stores = append(f.Stores, StoreFigures{s.spec.Name, was.rows, was.bytes, int64(s.overlay.Size()), s.overlay.Position().Next})
	}
	return f
}
