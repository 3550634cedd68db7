package operator

import (
	"context"

	"github.com/millrace/millrace/streams/internal/task"
	"github.com/millrace/millrace/streams/window"
)

// MergeFunc makes one aggregate of two; fresh says that a is what Init returned.
// a may be changed in place.
type MergeFunc[A any] func(ctx context.Context, a, b A, fresh bool) (A, error)

// SessionAggregate keeps one aggregate per key and session: records no further
// apart than the gap. A record that touches sessions merges them, and itself,
// into one: starting from a fresh aggregate, each session found is merged into
// it, oldest first, and then the record is added.
//
// A session is closed when stream time is above its end + gap + grace; a record
// is late if the session it would be in is. Each change goes out through Updates:
// a deletion for each session that is replaced, then the new one, also when its
// bounds are the same, except where a session of a single moment is hit at that
// moment. Final results go out through Closed once, in order of (end, key bytes);
// if they are wanted, sessions that had theirs are not merged any more. How far
// that has got is a clock of its own.
type SessionAggregate[K, V, A any] struct {
	Node        string
	Part        string // see WindowedAggregate
	Store       string
	Handler     task.Handler
	LateTo      string // see WindowedAggregate
	Spec        window.Sessions
	RetentionMs int64 // from a session's end, at least gap + grace
	Key         *Codec[K]
	Value       *Codec[A]
	Adder       Adder[K, V, A]
	Merge       func() MergeFunc[A]
	TakesNull   bool    // see WindowedAggregate
	Demand      *Demand // for the old values of rows
	Updates     *Outlet[window.Windowed[K], A]
	Closed      *Outlet[window.Windowed[K], A]
}

// Build makes the node of one task.
func (w *SessionAggregate[K, V, A]) Build(b *Builder) (Sink[K, V], error) {
	n := &sessions[K, V, A]{
		site: b.Site(w.Node, task.Process, w.Handler), spec: w.Spec, retentionMs: w.RetentionMs, lateTo: w.LateTo,
		key: w.Key, init: w.Adder.Init, add: w.Adder.New(), merge: w.Merge(), nils: NilOf[A](), takesNull: w.TakesNull, wantOld: w.Demand.raised,
	}
	rows, err := NewRows(b, n.site, w.Store, w.Value)
	if err != nil {
		return nil, err
	}
	n.rows = sessionRows[A]{Rows: rows}
	if n.ends, err = newEnds(b, w.Node, w.Updates, w.Closed); err != nil {
		return nil, err
	}
	n.clock = n.ends.clockOf(b, w.Node, w.Part)
	return n, nil
}

type sessions[K, V, A any] struct {
	site        *Site
	clock       *Clock
	spec        window.Sessions
	retentionMs int64
	lateTo      string
	key         *Codec[K]
	init        func() A
	add         AddFunc[K, V, A]
	merge       MergeFunc[A]
	nils        Nil[A]
	takesNull   bool
	wantOld     bool
	rows        sessionRows[A]
	ends        *ends[K, A] // places are times of last records
	out         Record[window.Windowed[K], A]
	kbuf        []byte

	// The session that the record at hand makes, and those it replaces.
	found          []session[A]
	startMs, endMs int64
	result         A
	null           bool
}

// Push implements Sink.
func (n *sessions[K, V, A]) Push(r *Record[K, V]) error {
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
	late, fatal, err := n.compute(r)
	if err != nil {
		done, err := n.site.retry(err, func() (err error) {
			late, fatal, err = n.compute(r)
			return err
		})
		if err != nil {
			return err
		}
		if !done {
			return n.moveOn(before)
		}
	}
	switch {
	case fatal != nil:
		return fatal
	case late:
		if err := n.site.late(n.lateTo, n.clock); err != nil {
			return err
		}
	default:
		if err := n.replace(r); err != nil {
			return err
		}
	}
	return n.moveOn(before)
}

// compute finds what the record touches and works out the session it makes; it
// writes nothing. fatal is an error of the store.
func (n *sessions[K, V, A]) compute(r *Record[K, V]) (late bool, fatal, err error) {
	n.site.enter()
	n.kbuf, err = n.key.Append(n.kbuf[:0], &r.Key)
	n.site.leave()
	if err != nil {
		return false, nil, err
	}
	clear(n.found)
	from := r.TimeMs - n.spec.GapMs
	if n.ends.emitted != nil {
		from = max(from, n.ends.emitted.Ms())
	}
	if n.found, fatal = n.rows.near(n.kbuf, from, r.TimeMs+n.spec.GapMs, n.wantOld, n.found[:0]); fatal != nil {
		return false, fatal, nil
	}
	n.startMs, n.endMs = r.TimeMs, r.TimeMs
	for i := range n.found {
		n.startMs, n.endMs = min(n.startMs, n.found[i].startMs), max(n.endMs, n.found[i].endMs)
	}
	if n.spec.Closed(n.endMs, n.clock.Ms()) || n.ends.isOut(n.endMs) {
		return true, nil, nil
	}
	if err := n.call(r); err != nil || n.null {
		return false, nil, err
	}
	return false, nil, n.rows.Encode(&n.result, n.endMs)
}

// call runs the user's functions.
func (n *sessions[K, V, A]) call(r *Record[K, V]) (err error) {
	n.site.enter()
	n.result = n.init()
	for i := range n.found {
		if n.result, err = n.merge(n.site.ctx, n.result, n.found[i].value, i == 0); err != nil {
			break
		}
	}
	if err == nil {
		n.result, err = n.add(n.site.ctx, r, n.result, len(n.found) == 0)
	}
	n.site.leave()
	n.null = n.nils.Is(&n.result)
	return err
}

// replace writes the new session in place of the ones it was made of and passes
// the changes on.
func (n *sessions[K, V, A]) replace(r *Record[K, V]) error {
	var old *Old[A]
	if n.wantOld {
		old = &Old[A]{Null: true}
	}
	if n.endMs > n.startMs {
		if err := n.withdraw(r); err != nil {
			return err
		}
	} else if n.wantOld && len(n.found) > 0 {
		old = &n.found[0].old
	}
	var err error
	if n.null {
		err = n.rows.remove(n.kbuf, n.startMs, n.endMs)
	} else {
		err = n.rows.put(n.kbuf, n.startMs, n.endMs)
	}
	if err != nil {
		return err
	}
	n.out = Record[window.Windowed[K], A]{Key: n.at(r.Key, n.startMs, n.endMs), Value: n.result, NullValue: n.null,
		TimeMs: n.endMs, Headers: r.Headers, Old: old}
	return pushBranch(n.site.task, n.ends.updates, &n.out)
}

// withdraw removes the sessions that were found, with a deletion for each.
func (n *sessions[K, V, A]) withdraw(r *Record[K, V]) error {
	for i := range n.found {
		x := &n.found[i]
		if err := n.rows.remove(n.kbuf, x.startMs, x.endMs); err != nil {
			return err
		}
		n.out = Record[window.Windowed[K], A]{Key: n.at(r.Key, x.startMs, x.endMs), NullValue: true, TimeMs: x.endMs, Headers: r.Headers}
		if n.wantOld {
			n.out.Old = &x.old
		}
		if err := pushBranch(n.site.task, n.ends.updates, &n.out); err != nil {
			return err
		}
	}
	return nil
}

// at is a session's key; its window ends 1 ms after the last record.
func (n *sessions[K, V, A]) at(key K, startMs, endMs int64) window.Windowed[K] {
	return window.Windowed[K]{Key: key, Window: window.Between(startMs, endMs+1)}
}

// moveOn does what a new stream time makes due: final results, then the removal
// of sessions past retention.
func (n *sessions[K, V, A]) moveOn(before int64) error {
	now := n.ends.clock.Ms()
	if now == before {
		return nil
	}
	if emitted := n.ends.emitted; emitted != nil {
		from, to := emitted.Ms(), n.spec.ClosedBefore(now)
		emitted.Advance(to)
		if err := n.rows.ending(from, to, n.pushClosed); err != nil {
			return err
		}
	}
	from, to := n.ends.expired, now-n.retentionMs
	n.ends.expired = max(from, to)
	return n.rows.expire(from, to)
}

// pushClosed sends a final result.
func (n *sessions[K, V, A]) pushClosed(key []byte, startMs, endMs int64) error {
	k, err := keyOf(n.site, n.key, n.rows.name, key)
	if err != nil {
		return err
	}
	n.out = Record[window.Windowed[K], A]{Key: n.at(k, startMs, endMs)}
	if n.out.TimeMs, err = n.rows.load(key, startMs, endMs, &n.out.Value); err != nil {
		return err
	}
	return pushBranch(n.site.task, n.ends.closed, &n.out)
}
