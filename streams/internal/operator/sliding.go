package operator

import (
	"bytes"
	"slices"

	"github.com/millrace/millrace/streams/internal/task"
	"github.com/millrace/millrace/streams/window"
)

// SlidingAggregate keeps one aggregate for each distinct set of a key's records
// that a window of a fixed length can hold: for each record the window that ends
// at it, and the one that starts 1 ms after it as long as that is not empty. Both
// ends belong to a window. None starts before 1970: records that are younger than
// the length share the window from 0.
//
// A record is added to the windows around it, latest start first, then new ones
// are made: the one right of the record before it, the one left of it, the one
// right of it. Records so early that they are in the window from 0 are added in
// the opposite order, and to that window last. All that is Kafka's order.
//
// A window is closed when stream time is above its last millisecond + grace.
type SlidingAggregate[K, V, A any] struct {
	Node    string
	Part    string // see WindowedAggregate
	Store   string
	Handler task.Handler
	LateTo  string // see WindowedAggregate
	// ReachMs is the time between the first and the last millisecond of a window.
	ReachMs, GraceMs int64
	RetentionMs      int64 // from a window's last millisecond, at least 2*reach + grace + 1
	Key              *Codec[K]
	Value            *Codec[A]
	Adder            Adder[K, V, A]
	Demand           *Demand
	Updates          *Outlet[window.Windowed[K], A]
	Closed           *Outlet[window.Windowed[K], A]
}

// Build makes the node of one task.
func (w *SlidingAggregate[K, V, A]) Build(b *Builder) (Sink[K, V], error) {
	n := &sliding[K, V, A]{
		site: b.Site(w.Node, task.Process, w.Handler), reachMs: w.ReachMs, graceMs: w.GraceMs, retentionMs: w.RetentionMs, lateTo: w.LateTo,
		key: w.Key, init: w.Adder.Init, add: w.Adder.New(), nils: NilOf[A](), wantOld: w.Demand.raised,
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

type sliding[K, V, A any] struct {
	site                          *Site
	clock                         *Clock
	reachMs, graceMs, retentionMs int64
	lateTo                        string
	key                           *Codec[K]
	init                          func() A
	add                           AddFunc[K, V, A]
	nils                          Nil[A]
	wantOld                       bool
	rows                          sessionRows[A] // an end is that of a window's last millisecond
	ends                          *ends[K, A]    // places are last milliseconds
	out                           Record[window.Windowed[K], A]
	kbuf                          []byte
	found                         []slid
	made                          []slide[A]
}

// slid is a window as it was found.
type slid struct {
	startMs, timeMs int64
	row             []byte
}

// slide is what a record makes of a window.
type slide[A any] struct {
	startMs, timeMs int64
	value           A
	null            bool
	row             []byte // encoded
	old             Old[A]
}

// Push implements Sink.
func (n *sliding[K, V, A]) Push(r *Record[K, V]) error {
	switch {
	case r.NullKey:
		n.site.drop(dropNullKey)
		return nil
	case r.NullValue:
		n.site.drop(dropNullValue)
		return nil
	}
	before := n.ends.clock.Ms()
	n.ends.clock.Advance(r.TimeMs)
	n.clock.Advance(r.TimeMs)
	if !n.open(r.TimeMs) {
		if err := n.site.late(n.lateTo, n.clock); err != nil {
			return err
		}
		return n.moveOn(before)
	}
	fatal, err := n.compute(r)
	if err != nil {
		done, err := n.site.retry(err, func() (err error) {
			fatal, err = n.compute(r)
			return err
		})
		if err != nil {
			return err
		}
		if !done {
			return n.moveOn(before)
		}
	}
	if fatal != nil {
		return fatal
	}
	for i := range n.made {
		if err := n.write(r, &n.made[i]); err != nil {
			return err
		}
	}
	return n.moveOn(before)
}

// open reports whether a window that starts there takes records.
func (n *sliding[K, V, A]) open(startMs int64) bool {
	end := startMs + n.reachMs
	return end >= n.clock.Ms()-n.graceMs && !n.ends.isOut(end)
}

// compute works out what becomes of the windows; it writes nothing. fatal is an
// error of the store.
func (n *sliding[K, V, A]) compute(r *Record[K, V]) (fatal, err error) {
	n.site.enter()
	n.kbuf, err = n.key.Append(n.kbuf[:0], &r.Key)
	n.site.leave()
	if err != nil {
		return nil, err
	}
	clear(n.made)
	n.made = n.made[:0]
	if fatal = n.find(r.TimeMs-n.reachMs, r.TimeMs+1); fatal != nil {
		return fatal, nil
	}
	if r.TimeMs < n.reachMs {
		return n.early(r)
	}
	return n.around(r)
}

// around works the windows out that a record is in or makes.
func (n *sliding[K, V, A]) around(r *Record[K, V]) (fatal, err error) {
	var left, right *slid
	hasLeft, hasRight, prev := false, false, int64(-1)
	for i := len(n.found) - 1; i >= 0 && left == nil; i-- {
		w := &n.found[i]
		switch end := w.startMs + n.reachMs; {
		case w.startMs > r.TimeMs:
			hasRight = true
			continue
		case end < r.TimeMs:
			left, prev = w, w.timeMs
			continue
		case end > r.TimeMs && right == nil:
			right = w
		case end == r.TimeMs:
			hasLeft = true
		}
		if fatal, err = n.update(r, w.startMs, w, true); fatal != nil || err != nil {
			return fatal, err
		}
		if hasLeft {
			if w.timeMs >= r.TimeMs {
				return nil, nil // of a record at this time there are all windows already
			}
			prev = w.timeMs
		}
	}
	if prev >= 0 && !n.has(prev+1) && prev+1+n.reachMs >= r.TimeMs {
		if fatal, err = n.update(r, prev+1, nil, false); fatal != nil || err != nil {
			return fatal, err
		}
	}
	if !hasLeft {
		if left != nil && left.timeMs < r.TimeMs-n.reachMs {
			left = nil
		}
		if fatal, err = n.update(r, r.TimeMs-n.reachMs, left, false); fatal != nil || err != nil {
			return fatal, err
		}
	}
	return n.copyRight(r.TimeMs, right, hasRight)
}

// early is around for a record in the window from 0.
func (n *sliding[K, V, A]) early(r *Record[K, V]) (fatal, err error) {
	var first, right *slid
	hasRight, prev := false, int64(-1)
	for i := range n.found {
		w := &n.found[i]
		switch {
		case w.startMs == 0:
			if first = w; w.timeMs < r.TimeMs {
				prev = w.timeMs
			}
		case w.startMs > r.TimeMs:
			hasRight = true
		default:
			right = w
			if fatal, err = n.update(r, w.startMs, w, true); fatal != nil || err != nil {
				return fatal, err
			}
		}
	}
	if right == nil {
		right = first
	}
	if fatal, err = n.copyRight(r.TimeMs, right, hasRight); fatal != nil || err != nil {
		return fatal, err
	}
	if prev >= 0 && !n.has(prev+1) {
		if fatal, err = n.update(r, prev+1, nil, false); fatal != nil || err != nil {
			return fatal, err
		}
	}
	return n.update(r, 0, first, first != nil)
}

func (n *sliding[K, V, A]) has(startMs int64) bool {
	return slices.ContainsFunc(n.found, func(w slid) bool { return w.startMs == startMs })
}

// copyRight makes the window right of a record of those after it, which are what
// the window given holds beyond the record's time.
func (n *sliding[K, V, A]) copyRight(timeMs int64, from *slid, has bool) (fatal, err error) {
	if has || from == nil || from.timeMs <= timeMs {
		return nil, nil
	}
	x := slide[A]{startMs: timeMs + 1, timeMs: from.timeMs, row: from.row, old: Old[A]{Null: true}}
	_, fatal = n.rows.decode(from.row, &x.value)
	n.made = append(n.made, x)
	return fatal, nil
}

// find lists the windows of the key with an end at or after from that start at to
// or before, in order of time.
func (n *sliding[K, V, A]) find(from, to int64) error {
	n.found = n.found[:0]
	n.rows.from = appendSession(n.rows.from, n.kbuf, max(from, 0))
	n.rows.to = appendSession(n.rows.to, n.kbuf, -1)
	for row, err := range n.rows.store.Range(n.rows.from, n.rows.to) {
		if err != nil {
			return err
		}
		start := sessionStart(row.Key)
		if start > to {
			break
		}
		timeMs, err := n.rows.timeOf(row.Value)
		if err != nil {
			return err
		}
		n.found = append(n.found, slid{start, timeMs, bytes.Clone(row.Value)})
	}
	return nil
}

// update adds the record to what a window holds, nil for nothing; there says that
// it is the same window.
func (n *sliding[K, V, A]) update(r *Record[K, V], startMs int64, of *slid, there bool) (fatal, err error) {
	if !n.open(startMs) {
		return nil, nil
	}
	x := slide[A]{startMs: startMs, timeMs: r.TimeMs, old: Old[A]{Null: true}}
	var a A
	if of != nil {
		if _, fatal = n.rows.decode(of.row, &a); fatal == nil && there && n.wantOld {
			x.old.Null = false
			_, fatal = n.rows.decode(of.row, &x.old.Value)
		}
		if fatal != nil {
			return fatal, nil
		}
		x.timeMs = max(of.timeMs, r.TimeMs)
	}
	n.site.enter()
	if of == nil {
		a = n.init()
	}
	x.value, err = n.add(n.site.ctx, r, a, of == nil)
	n.site.leave()
	if err != nil {
		return nil, err
	}
	return nil, n.keep(&x)
}

// keep encodes a window that has been worked out.
func (n *sliding[K, V, A]) keep(x *slide[A]) error {
	if x.null = n.nils.Is(&x.value); !x.null {
		if err := n.rows.Encode(&x.value, x.timeMs); err != nil {
			return err
		}
		x.row = bytes.Clone(n.rows.buf)
	}
	n.made = append(n.made, *x)
	return nil
}

// write puts a window down and passes it on.
func (n *sliding[K, V, A]) write(r *Record[K, V], x *slide[A]) (err error) {
	end := x.startMs + n.reachMs
	if x.null {
		err = n.rows.remove(n.kbuf, x.startMs, end)
	} else {
		n.rows.buf = append(n.rows.buf[:0], x.row...)
		err = n.rows.put(n.kbuf, x.startMs, end)
	}
	if err != nil {
		return err
	}
	n.out = Record[window.Windowed[K], A]{Key: window.Windowed[K]{Key: r.Key, Window: window.Between(x.startMs, end+1)},
		Value: x.value, NullValue: x.null, TimeMs: x.timeMs, Headers: r.Headers}
	if n.wantOld {
		n.out.Old = &x.old
	}
	return pushBranch(n.site.task, n.ends.updates, &n.out)
}

// moveOn does what a new stream time makes due.
func (n *sliding[K, V, A]) moveOn(before int64) error {
	now := n.ends.clock.Ms()
	if now == before {
		return nil
	}
	if emitted := n.ends.emitted; emitted != nil {
		from, to := emitted.Ms(), now-n.graceMs
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
func (n *sliding[K, V, A]) pushClosed(key []byte, startMs, endMs int64) error {
	k, err := keyOf(n.site, n.key, n.rows.name, key)
	if err != nil {
		return err
	}
	n.out = Record[window.Windowed[K], A]{Key: window.Windowed[K]{Key: k, Window: window.Between(startMs, endMs+1)}}
	if n.out.TimeMs, err = n.rows.load(key, startMs, endMs, &n.out.Value); err != nil {
		return err
	}
	return pushBranch(n.site.task, n.ends.closed, &n.out)
}
