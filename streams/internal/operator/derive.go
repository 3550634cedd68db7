package operator

import "github.com/millrace/millrace/streams/internal/task"

// MapTable replaces the values of a table. A deletion passes as such, without a
// call of the function.
type MapTable[K, V, VR any] struct {
	Node    string
	Handler task.Handler
	Key     *Codec[K]
	New     func() RowFunc[K, V, VR]
	From    View[V]
	Out     *Outlet[K, VR]
}

// Build makes the node of one task.
func (m *MapTable[K, V, VR]) Build(b *Builder) (Sink[K, V], error) {
	n := &mapTable[K, V, VR]{site: b.Site(m.Node, task.Process, m.Handler), fn: m.New(), nils: NilOf[VR]()}
	next, err := m.Out.Build(b)
	n.next = next
	return n, err
}

// View is that of the table behind the node.
func (m *MapTable[K, V, VR]) View(b *Builder, site *Site) (Reader[VR], error) {
	from, err := m.From(b, site)
	return &mapReader[K, V, VR]{site: site, from: from, key: m.Key, fn: m.New(), nils: NilOf[VR]()}, err
}

type mapTable[K, V, VR any] struct {
	site *Site
	fn   RowFunc[K, V, VR]
	nils Nil[VR]
	next Sink[K, VR]
	in   Record[K, V]
	out  Record[K, VR]
	old  Old[VR]
}

// Push implements Sink.
func (n *mapTable[K, V, VR]) Push(r *Record[K, V]) error {
	if err := n.call(r); err != nil {
		done, err := n.site.retry(err, func() error { return n.call(r) })
		if err != nil || !done {
			return err
		}
	}
	return n.next.Push(&n.out)
}

func (n *mapTable[K, V, VR]) call(r *Record[K, V]) (err error) {
	n.out = Record[K, VR]{Key: r.Key, NullKey: r.NullKey, TimeMs: r.TimeMs, Headers: r.Headers, NullValue: true, Outdated: r.Outdated}
	if !r.NullValue {
		n.site.enter()
		n.out.Value, err = n.fn(n.site.ctx, r)
		n.site.leave()
		if err != nil {
			return err
		}
		n.out.NullValue = n.nils.Is(&n.out.Value)
	}
	if r.Old == nil {
		return nil
	}
	n.old = Old[VR]{Null: true}
	n.out.Old = &n.old
	if r.Old.Null {
		return nil
	}
	n.in = Record[K, V]{Key: r.Key, NullKey: r.NullKey, Value: r.Old.Value, TimeMs: r.TimeMs}
	n.site.enter()
	n.old.Value, err = n.fn(n.site.ctx, &n.in)
	n.site.leave()
	n.old.Null = n.nils.Is(&n.old.Value)
	return err
}

// FilterTable keeps the rows of a table that pass. A row that passes no longer
// goes out as a deletion; one that passes neither before nor after an update
// does not go out at all.
type FilterTable[K, V any] struct {
	Node    string
	Handler task.Handler
	Key     *Codec[K]
	New     func() Predicate[K, V]
	From    View[V] // nil: nobody looks rows up
	Out     *Outlet[K, V]
}

// Build makes the node of one task.
func (f *FilterTable[K, V]) Build(b *Builder) (Sink[K, V], error) {
	n := &filterTable[K, V]{site: b.Site(f.Node, task.Process, f.Handler), keep: f.New()}
	next, err := f.Out.Build(b)
	n.next = next
	return n, err
}

// View is that of the table behind the node.
func (f *FilterTable[K, V]) View(b *Builder, site *Site) (Reader[V], error) {
	from, err := f.From(b, site)
	return &filterReader[K, V]{site: site, from: from, key: f.Key, keep: f.New()}, err
}

type filterTable[K, V any] struct {
	site *Site
	keep Predicate[K, V]
	next Sink[K, V]
	in   Record[K, V]
	out  Record[K, V]
	old  Old[V]
}

// Push implements Sink.
func (n *filterTable[K, V]) Push(r *Record[K, V]) error {
	if err := n.call(r); err != nil {
		done, err := n.site.retry(err, func() error { return n.call(r) })
		if err != nil || !done {
			return err
		}
	}
	if n.out.NullValue && n.old.Null {
		return nil
	}
	return n.next.Push(&n.out)
}

func (n *filterTable[K, V]) call(r *Record[K, V]) error {
	passes, err := n.test(r)
	if err != nil {
		return err
	}
	n.out = Record[K, V]{Key: r.Key, NullKey: r.NullKey, TimeMs: r.TimeMs, Headers: r.Headers, NullValue: !passes, Old: &n.old, Outdated: r.Outdated}
	if passes {
		n.out.Value = r.Value
	}
	n.in = Record[K, V]{Key: r.Key, NullKey: r.NullKey, Value: r.Old.Value, NullValue: r.Old.Null, TimeMs: r.TimeMs}
	passed, err := n.test(&n.in)
	n.old = Old[V]{Null: !passed}
	if passed {
		n.old.Value = r.Old.Value
	}
	return err
}

func (n *filterTable[K, V]) test(r *Record[K, V]) (passes bool, err error) {
	if r.NullValue {
		return false, nil
	}
	n.site.enter()
	passes, err = n.keep(n.site.ctx, r)
	n.site.leave()
	return passes, err
}
