package operator

import (
	"github.com/millrace/millrace/streams/internal/task"
	"github.com/millrace/millrace/streams/window"
)

// WindowedAggregate keeps one aggregate per key and window.
//
// Stream time is that of this node in this task: the highest timestamp of a
// record it took. A record does not count in windows that are closed by then, and
// is counted, once, as late.
// Each update goes out through Updates; when the stream time closes windows,
// their final results go out through Closed, in order of (window end, key
// bytes), once: how far that has got is a clock of its own, committed together
// with the results. It is not derived from the stream time, so a release that
// changes the grace neither leaves out nor repeats a result. Rows are removed
// when the stream time has passed the retention, never before their window's
// result is out.
type WindowedAggregate[K, V, A any] struct {
	Node        string
	Part        string // of several streams that are aggregated together, which; else ""
	Store       string
	Handler     task.Handler
	LateTo      string // topic for records that are late; "" drops them
	Spec        window.Spec
	RetentionMs int64 // at least size + grace; 0: for ever
	Key         *Codec[K]
	Value       *Codec[A]
	Adder       Adder[K, V, A]
	// TakesNull says that a null value reaches the adder. It does for types
	// with a nil, and for a count, which does not look at values: null values
	// are counted in windows, unlike without.
	TakesNull bool
	Demand    *Demand // for the old values of rows
	Updates   *Outlet[window.Windowed[K], A]
	Closed    *Outlet[window.Windowed[K], A]
}

// Build makes the node of one task.
func (w *WindowedAggregate[K, V, A]) Build(b *Builder) (Sink[K, V], error) {
	n := &windowed[K, V, A]{
		site: b.Site(w.Node, task.Process, w.Handler), spec: w.Spec, retentionMs: w.RetentionMs, lateTo: w.LateTo,
		key: w.Key, takesNull: w.TakesNull, row: buffer(),
	}
	rows, err := NewRows(b, n.site, w.Store, w.Value)
	if err != nil {
		return nil, err
	}
	n.fold = newFold(n.site, rows, w.Adder, w.Demand)
	if n.ends, err = newEnds(b, w.Node, w.Updates, w.Closed); err != nil {
		return nil, err
	}
	n.clock = n.ends.clockOf(b, w.Node, w.Part)
	return n, nil
}

type windowed[K, V, A any] struct {
	site        *Site
	clock       *Clock
	spec        window.Spec
	retentionMs int64
	lateTo      string
	key         *Codec[K]
	takesNull   bool
	fold        fold[K, V, A]
	ends        *ends[K, A] // places are starts of windows
	out         Record[window.Windowed[K], A]
	row         []byte
}

// Push implements Sink.
func (n *windowed[K, V, A]) Push(r *Record[K, V]) error {
	switch {
	case r.NullKey:
		n.site.drop(dropNullKey)
		return nil
	case r.NullValue && !n.takesNull:
		n.site.drop(dropNullValue)
		return nil
	}
	before := n.ends.clock.Ms()
	n.ends.clock.Advance(r.TimeMs)
	n.clock.Advance(r.TimeMs)
	late := false
	for start := n.spec.FirstStartOf(r.TimeMs); start <= r.TimeMs; start = n.spec.Next(start) {
		if n.spec.Closed(start, n.clock.Ms()) || n.ends.isOut(start) {
			late = true
			continue
		}
		if err := n.update(r, start); err != nil {
			return err
		}
	}
	if late {
		if err := n.site.late(n.lateTo, n.clock); err != nil {
			return err
		}
	}
	if n.ends.clock.Ms() == before {
		return nil
	}
	return n.moveOn(n.ends.clock.Ms())
}

// update adds the record to its window and passes the new result on.
func (n *windowed[K, V, A]) update(r *Record[K, V], start int64) error {
	done, err := n.fold.update(r, func() (row []byte, err error) {
		n.row, err = n.key.Append(window.AppendRow(n.row[:0], start, nil), &r.Key)
		return n.row, err
	})
	if err != nil || !done {
		return err
	}
	n.out.Key = window.Windowed[K]{Key: r.Key, Window: window.Between(start, n.spec.EndOf(start))}
	n.out.Value, n.out.NullValue, n.out.TimeMs, n.out.Headers = n.fold.result, n.fold.null, n.fold.timeMs, r.Headers
	n.out.Old = n.fold.before
	return pushBranch(n.site.task, n.ends.updates, &n.out) // windows may close after it
}

// moveOn does what a new stream time makes due: first the results of the windows
// that close, then the removal of rows past retention.
func (n *windowed[K, V, A]) moveOn(now int64) error {
	if emitted := n.ends.emitted; emitted != nil {
		from, to := emitted.Ms(), n.spec.ClosedBefore(now)
		emitted.Advance(to)
		if n.startsIn(from, to) {
			if err := n.fold.rows.Windows(from, to, n.pushClosed); err != nil {
				return err
			}
		}
	}
	from, to := n.ends.expired, now-n.retentionMs+1
	if n.retentionMs == 0 || !n.startsIn(from, to) {
		return nil
	}
	n.ends.expired = to
	return n.fold.rows.Expire(from, to)
}

// startsIn reports whether a window starts in [from, to).
func (n *windowed[K, V, A]) startsIn(from, to int64) bool {
	return to > 0 && (from <= 0 || n.spec.StartOf(to-1) >= from)
}

// pushClosed sends a final result. Its headers are empty: those of the record
// that happened to close the window say nothing about it.
func (n *windowed[K, V, A]) pushClosed(start int64, key []byte, timeMs int64, a *A) error {
	k, err := keyOf(n.site, n.key, n.fold.rows.name, key)
	if err != nil {
		return err
	}
	n.out = Record[window.Windowed[K], A]{
		Key:   window.Windowed[K]{Key: k, Window: window.Between(start, n.spec.EndOf(start))},
		Value: *a, TimeMs: timeMs,
	}
	return pushBranch(n.site.task, n.ends.closed, &n.out)
}
