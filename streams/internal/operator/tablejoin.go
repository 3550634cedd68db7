package operator

import (
	"context"

	"github.com/millrace/millrace/streams/internal/task"
)

// Sides says which side of a join may be missing.
type Sides struct{ LeftAlone, RightAlone bool }

// PairFunc joins the values of two rows, of which one may be missing.
type PairFunc[K, VL, VR, V any] func(ctx context.Context, r *Record[K, struct{}], left VL, hasLeft bool, right VR, hasRight bool) (V, error)

// TableJoin joins two tables by key. An update of either side looks the other's
// row up and sends the result, with the larger of the two rows' times. Nothing is
// stored: a look-up of a result joins both sides' rows once more.
//
// Deletions may repeat, as it counts whether the other side has a row, not
// whether a result was sent. If nothing is known of the key before or after, none
// is sent.
type TableJoin[K, VL, VR, V any] struct {
	Node    string
	Handler task.Handler
	Sides   Sides
	Key     *Codec[K]
	New     func() PairFunc[K, VL, VR, V]
	Left    View[VL]
	Right   View[VR]
	Out     *Outlet[K, V]
}

// BuildLeft makes the node for updates of the left table.
func (j *TableJoin[K, VL, VR, V]) BuildLeft(b *Builder) (Sink[K, VL], error) {
	next, err := j.next(b)
	if err != nil {
		return nil, err
	}
	n := &tableSide[K, VL, VR, V]{fn: j.New(), own: j.Sides.LeftAlone, other: j.Sides.RightAlone}
	n.site, n.key, n.nils, n.next, n.kbuf = b.Site(j.Node, task.Process, j.Handler), j.Key, NilOf[V](), next, buffer()
	n.rows, err = j.Right(b, n.site)
	return n, err
}

// BuildRight makes the node for updates of the right table.
func (j *TableJoin[K, VL, VR, V]) BuildRight(b *Builder) (Sink[K, VR], error) {
	next, err := j.next(b)
	if err != nil {
		return nil, err
	}
	n := &tableSide[K, VR, VL, V]{fn: swap(j.New()), own: j.Sides.RightAlone, other: j.Sides.LeftAlone}
	n.site, n.key, n.nils, n.next, n.kbuf = b.Site(j.Node, task.Process, j.Handler), j.Key, NilOf[V](), next, buffer()
	n.rows, err = j.Left(b, n.site)
	return n, err
}

// next is what follows, made once for both sides.
func (j *TableJoin[K, VL, VR, V]) next(b *Builder) (Sink[K, V], error) {
	return Join(b, j.Out, func() (Sink[K, V], error) { return j.Out.Build(b) })
}

// tableSide takes the updates of one table, VO, and looks rows of the other up.
type tableSide[K, VO, VX, V any] struct {
	site       *Site
	own, other bool // which may be alone in a result
	key        *Codec[K]
	rows       Reader[VX]
	fn         PairFunc[K, VO, VX, V]
	nils       Nil[V]
	next       Sink[K, V]
	row        VX
	in         Record[K, struct{}]
	out        Record[K, V]
	old        Old[V]
	kbuf       []byte
}

// Push implements Sink.
func (n *tableSide[K, VO, VX, V]) Push(r *Record[K, VO]) error {
	if r.Outdated {
		return nil // the other side's newest row has met the newest of this one
	}
	sends, fatal, err := n.call(r)
	if err != nil {
		done, err := n.site.retry(err, func() (err error) {
			sends, fatal, err = n.call(r)
			return err
		})
		if err != nil || !done {
			return err
		}
	}
	if fatal != nil || !sends {
		return fatal
	}
	return n.next.Push(&n.out)
}

// call works out what the update does to the result; sends is false when that
// is nothing.
func (n *tableSide[K, VO, VX, V]) call(r *Record[K, VO]) (sends bool, fatal, err error) {
	n.site.enter()
	n.kbuf, err = n.key.Append(n.kbuf[:0], &r.Key)
	n.site.leave()
	if err != nil {
		return false, nil, err
	}
	timeMs, found, err := n.rows.Get(n.kbuf, &n.row)
	if fatal, err = blame(err); fatal != nil || err != nil {
		return false, fatal, err
	}
	if !found {
		var none VX
		n.row = none
		if !n.own || r.NullValue && r.Old.Null {
			return false, nil, nil
		}
	}
	n.out = Record[K, V]{Key: r.Key, TimeMs: r.TimeMs, Headers: r.Headers, Old: &n.old}
	if found {
		n.out.TimeMs = max(r.TimeMs, timeMs)
	}
	n.in = Record[K, struct{}]{Key: r.Key, TimeMs: r.TimeMs, Headers: r.Headers}
	if n.out.Value, n.out.NullValue, err = n.pair(r.Value, !r.NullValue, found); err != nil {
		return false, nil, err
	}
	n.old.Value, n.old.Null, err = n.pair(r.Old.Value, !r.Old.Null, found)
	return true, nil, err
}

// pair joins a value of this side with the row of the other.
func (n *tableSide[K, VO, VX, V]) pair(v VO, has, found bool) (joined V, null bool, err error) {
	if !has && !(found && n.other) || has && !found && !n.own {
		return joined, true, nil
	}
	n.site.enter()
	joined, err = n.fn(n.site.ctx, &n.in, v, has, n.row, found)
	n.site.leave()
	return joined, n.nils.Is(&joined), err
}

// View is that of the joined table.
func (j *TableJoin[K, VL, VR, V]) View(b *Builder, site *Site) (Reader[V], error) {
	n := &joinReader[K, VL, VR, V]{site: site, sides: j.Sides, key: j.Key, fn: j.New(), nils: NilOf[V]()}
	var err error
	if n.left, err = j.Left(b, site); err != nil {
		return nil, err
	}
	n.right, err = j.Right(b, site)
	return n, err
}

type joinReader[K, VL, VR, V any] struct {
	site  *Site
	sides Sides
	key   *Codec[K]
	left  Reader[VL]
	right Reader[VR]
	fn    PairFunc[K, VL, VR, V]
	nils  Nil[V]
	in    Record[K, struct{}]
	l     VL
	r     VR
}

// Get implements Reader.
func (n *joinReader[K, VL, VR, V]) Get(key []byte, v *V) (timeMs int64, ok bool, err error) {
	var noLeft VL
	var noRight VR
	n.l, n.r = noLeft, noRight
	lt, hasLeft, err := n.left.Get(key, &n.l)
	if err != nil {
		return 0, false, err
	}
	rt, hasRight, err := n.right.Get(key, &n.r)
	switch {
	case err != nil:
		return 0, false, err
	case !hasLeft && !hasRight, !hasLeft && !n.sides.RightAlone, !hasRight && !n.sides.LeftAlone:
		return 0, false, nil
	}
	n.in.TimeMs = max(lt, rt)
	n.site.enter()
	if err = rowAs(n.key, key, &n.in); err == nil {
		*v, err = n.fn(n.site.ctx, &n.in, n.l, hasLeft, n.r, hasRight)
	}
	n.site.leave()
	if err != nil {
		return 0, false, &FunctionError{err}
	}
	return n.in.TimeMs, !n.nils.Is(v), nil
}

// swap turns a function of left and right into one of right and left.
func swap[K, L, R, V any](fn PairFunc[K, L, R, V]) PairFunc[K, R, L, V] {
	return func(ctx context.Context, r *Record[K, struct{}], right R, hasRight bool, left L, hasLeft bool) (V, error) {
		return fn(ctx, r, left, hasLeft, right, hasRight)
	}
}
