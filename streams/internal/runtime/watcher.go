package runtime

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/streams/internal/topology"
)

// Watcher reads the figures of a run, at any time and from any goroutine. The zero
// value watches nothing yet. One that is given to several runs shows the last.
type Watcher struct{ at atomic.Pointer[watch] }

// Figures is the present picture; ok is false before the run has begun.
func (w *Watcher) Figures() (f Figures, ok bool) {
	if at := w.at.Load(); at != nil {
		return at.figures(), true
	}
	return Figures{}, false
}

// Picture is the topology of the run, for a drawing; ok is as that of Figures.
func (w *Watcher) Picture() (p topology.Picture, ok bool) {
	if at := w.at.Load(); at != nil {
		return at.app.Picture, true
	}
	return p, false
}

// watch is what a run shows to watchers; nil if there are none.
type watch struct {
	app      *topology.Topology
	identity string
	began    time.Time
	state    func() JobState

	mu       sync.Mutex
	meters   map[int]*meter // by worker
	restores map[restoreID]restoreSeen
}

// restoreID is one store as one worker restores or copies it.
type restoreID struct {
	worker    int
	store     string
	partition int32
}

// restoreSeen is what was said last, and when.
type restoreSeen struct {
	Restored
	at time.Time
}

// restoreFresh is how long a report counts that no other has followed: whoever
// restores reports about once a second.
const restoreFresh = 10 * time.Second

// restored takes note of a report.
func (w *watch) restored(x Restored) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := restoreID{x.Worker, x.Store, x.Partition}
	if x.Done && !x.Copy {
		delete(w.restores, id)
		return
	}
	w.restores[id] = restoreSeen{x, time.Now()}
}

// onRestore is who reports of restores go to.
func (r *run) onRestore() func(Restored) {
	tell := r.options.OnRestore
	if r.watch == nil {
		return tell
	}
	return func(x Restored) {
		r.watch.restored(x)
		if tell != nil {
			tell(x)
		}
	}
}

// watched lets watchers see the run.
func (r *run) watched(state func() JobState) {
	if len(r.options.Watchers) == 0 {
		return
	}
	r.watch = &watch{app: r.app, identity: r.identity, began: time.Now(), state: state, meters: map[int]*meter{}, restores: map[restoreID]restoreSeen{}}
	for _, w := range r.options.Watchers {
		w.at.Store(r.watch)
	}
}

// begin starts what runs beside the workers.
func (r *run) begin(ctx context.Context) error {
	for _, begin := range r.options.Beside {
		end, err := begin(ctx)
		if err != nil {
			return fmt.Errorf("streams: %w", err)
		}
		r.beside = append(r.beside, end)
	}
	return nil
}

// meter makes the meter of a worker.
func (w *watch) meter(worker int) *meter {
	if w == nil {
		return nil
	}
	m := &meter{}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.meters[worker] = m
	return m
}

func (w *watch) figures() Figures {
	f := Figures{App: w.app.AppID, Identity: w.identity, Began: w.began, At: time.Now(), State: w.state()}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.meters {
		if shown := m.shown.Load(); shown != nil {
			f.Workers = append(f.Workers, *shown)
		}
	}
	for _, x := range w.restores {
		if f.At.Sub(x.at) < restoreFresh {
			f.Restores = append(f.Restores, x.Restored)
		}
	}
	slices.SortFunc(f.Restores, func(a, b Restored) int {
		return cmp.Or(cmp.Compare(a.Worker, b.Worker), cmp.Compare(a.Store, b.Store), cmp.Compare(a.Partition, b.Partition))
	})
	slices.SortFunc(f.Workers, func(a, b WorkerFigures) int { return cmp.Compare(a.Worker, b.Worker) })
	return f
}
