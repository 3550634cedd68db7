package operator

import (
	"context"

	"github.com/millrace/millrace/streams/internal/task"
)

// Predicate decides whether a record passes.
type Predicate[K, V any] func(ctx context.Context, r *Record[K, V]) (bool, error)

// Filter passes the records for which the predicate is true.
type Filter[K, V any] struct {
	Node    string
	Handler task.Handler
	// New makes the predicate for one task, which may hold scratch space.
	New func() Predicate[K, V]
	Out *Outlet[K, V]
}

// Build makes the node of one task.
func (f *Filter[K, V]) Build(b *Builder) (Sink[K, V], error) {
	n := &filter[K, V]{site: b.Site(f.Node, task.Process, f.Handler), keep: f.New()}
	next, err := f.Out.Build(b)
	n.next = next
	return n, err
}

type filter[K, V any] struct {
	site *Site
	keep Predicate[K, V]
	next Sink[K, V]
}

// Push implements Sink.
func (n *filter[K, V]) Push(r *Record[K, V]) error {
	keep, _, err := n.test(r)
	if err != nil || !keep {
		return err
	}
	return n.next.Push(r)
}

// test calls the predicate. left: it failed, and the error chain leaves the
// record out.
func (n *filter[K, V]) test(r *Record[K, V]) (keep, left bool, err error) {
	n.site.enter()
	keep, err = n.keep(n.site.ctx, r)
	n.site.leave()
	if err == nil {
		return keep, false, nil
	}
	done, err := n.site.retry(err, func() (err error) {
		n.site.enter()
		keep, err = n.keep(n.site.ctx, r)
		n.site.leave()
		return err
	})
	return keep && done, !done, err
}

// Func writes the record that follows from in to out, whose time and headers
// are those of in already; keep false means that nothing follows.
type Func[K, V, KR, VR any] func(ctx context.Context, in *Record[K, V], out *Record[KR, VR]) (keep bool, err error)

// Transform makes at most one record of each.
type Transform[K, V, KR, VR any] struct {
	Node    string
	Handler task.Handler
	New     func() Func[K, V, KR, VR]
	Out     *Outlet[KR, VR]
}

// Build makes the node of one task.
func (t *Transform[K, V, KR, VR]) Build(b *Builder) (Sink[K, V], error) {
	n := &transform[K, V, KR, VR]{site: b.Site(t.Node, task.Process, t.Handler), fn: t.New()}
	next, err := t.Out.Build(b)
	n.next = next
	return n, err
}

type transform[K, V, KR, VR any] struct {
	site *Site
	fn   Func[K, V, KR, VR]
	next Sink[KR, VR]
	out  Record[KR, VR]
}

// Push implements Sink.
func (n *transform[K, V, KR, VR]) Push(r *Record[K, V]) error {
	n.out.TimeMs, n.out.Headers = r.TimeMs, r.Headers
	n.site.enter()
	keep, err := n.fn(n.site.ctx, r, &n.out)
	n.site.leave()
	if err != nil {
		if keep, err = n.retry(r, err); err != nil {
			return err
		}
	}
	if !keep {
		return nil
	}
	return n.next.Push(&n.out)
}

func (n *transform[K, V, KR, VR]) retry(r *Record[K, V], cause error) (keep bool, err error) {
	done, err := n.site.retry(cause, func() (err error) {
		n.out.TimeMs, n.out.Headers = r.TimeMs, r.Headers // the failed attempt may have set them
		n.site.enter()
		keep, err = n.fn(n.site.ctx, r, &n.out)
		n.site.leave()
		return err
	})
	return keep && done, err
}

// FlatFunc appends the values that follow from a record.
type FlatFunc[K, V, VR any] func(ctx context.Context, r *Record[K, V], to []VR) ([]VR, error)

// FlatMapValues makes any number of records with the same key. The values of a
// record are collected before the first of them is passed on, so a function
// that fails midway leaves nothing behind and may be called again.
type FlatMapValues[K, V, VR any] struct {
	Node    string
	Handler task.Handler
	New     func() FlatFunc[K, V, VR]
	Out     *Outlet[K, VR]
}

// Build makes the node of one task.
func (f *FlatMapValues[K, V, VR]) Build(b *Builder) (Sink[K, V], error) {
	n := &flatMapValues[K, V, VR]{site: b.Site(f.Node, task.Process, f.Handler), fn: f.New(), nils: NilOf[VR]()}
	next, err := f.Out.Build(b)
	n.next = next
	return n, err
}

type flatMapValues[K, V, VR any] struct {
	site   *Site
	fn     FlatFunc[K, V, VR]
	nils   Nil[VR]
	next   Sink[K, VR]
	out    Record[K, VR]
	values []VR
}

// Push implements Sink.
func (n *flatMapValues[K, V, VR]) Push(r *Record[K, V]) error {
	if err := n.call(r); err != nil {
		done, err := n.site.retry(err, func() error { return n.call(r) })
		if err != nil || !done {
			return err
		}
	}
	for i := range n.values {
		n.out = Record[K, VR]{Key: r.Key, NullKey: r.NullKey, TimeMs: r.TimeMs, Headers: r.Headers,
			Value: n.values[i], NullValue: n.nils.Is(&n.values[i])}
		if err := pushBranch(n.site.task, n.next, &n.out); err != nil {
			return err
		}
	}
	clear(n.values) // hold on to the slice, not to what the values point to
	return nil
}

func (n *flatMapValues[K, V, VR]) call(r *Record[K, V]) (err error) {
	n.site.enter()
	n.values, err = n.fn(n.site.ctx, r, n.values[:0])
	n.site.leave()
	return err
}

// DropNullKeys leaves out what has no key.
type DropNullKeys[K, V any] struct {
	Node string
	Out  *Outlet[K, V]
}

// Build makes the node of one task.
func (d *DropNullKeys[K, V]) Build(b *Builder) (Sink[K, V], error) {
	next, err := d.Out.Build(b)
	return &dropNullKeys[K, V]{site: b.Site(d.Node, task.Process, nil), next: next}, err
}

type dropNullKeys[K, V any] struct {
	site *Site
	next Sink[K, V]
}

// Push implements Sink.
func (n *dropNullKeys[K, V]) Push(r *Record[K, V]) error {
	if r.NullKey {
		n.site.drop(dropNullKey)
		return nil
	}
	return n.next.Push(r)
}
