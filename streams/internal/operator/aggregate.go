package operator

import (
	"context"

	"github.com/millrace/millrace/streams/internal/task"
)

// AddFunc adds a record to an aggregate; fresh says that there was none and a is
// what Init returned. The aggregate given is the node's own: it may be changed
// in place.
type AddFunc[K, V, A any] func(ctx context.Context, r *Record[K, V], a A, fresh bool) (A, error)

// Adder is what an aggregation does with records.
type Adder[K, V, A any] struct {
	Init func() A
	New  func() AddFunc[K, V, A]
}

// Aggregate keeps one aggregate per key. Records with a null key or a null
// value are dropped. The result carries the highest timestamp of the key's
// records since its row was made; an aggregate that becomes nil deletes the row
// and goes out as a null value.
type Aggregate[K, V, A any] struct {
	Node    string
	Store   string
	Handler task.Handler
	Key     *Codec[K]
	Value   *Codec[A]
	Adder   Adder[K, V, A]
	Demand  *Demand // for the old values of rows
	// Shared: other nodes work on the same store and pass on to the same nodes.
	Shared bool
	Out    *Outlet[K, A]
}

// Build makes the node of one task.
func (a *Aggregate[K, V, A]) Build(b *Builder) (Sink[K, V], error) {
	n := &aggregate[K, V, A]{site: b.Site(a.Node, task.Process, a.Handler), key: a.Key, kbuf: buffer()}
	rows, err := NewRows(b, n.site, a.Store, a.Value)
	if err != nil {
		return nil, err
	}
	n.fold = newFold(n.site, rows, a.Adder, a.Demand)
	if a.Shared {
		n.next, err = Join(b, a.Out, func() (Sink[K, A], error) { return a.Out.Build(b) })
	} else {
		n.next, err = a.Out.Build(b)
	}
	return n, err
}

type aggregate[K, V, A any] struct {
	site *Site
	key  *Codec[K]
	fold fold[K, V, A]
	next Sink[K, A]
	out  Record[K, A]
	kbuf []byte
}

// Push implements Sink.
func (n *aggregate[K, V, A]) Push(r *Record[K, V]) error {
	switch {
	case r.NullKey:
		n.site.drop(dropNullKey)
		return nil
	case r.NullValue:
		n.site.drop(dropNullValue)
		return nil
	}
	done, err := n.fold.update(r, func() (row []byte, err error) {
		n.kbuf, err = n.key.Append(n.kbuf[:0], &r.Key)
		return n.kbuf, err
	})
	if err != nil || !done {
		return err
	}
	n.out.Key, n.out.Headers = r.Key, r.Headers
	n.out.Value, n.out.NullValue, n.out.TimeMs = n.fold.result, n.fold.null, n.fold.timeMs
	n.out.Old = n.fold.before
	return n.next.Push(&n.out)
}

// fold updates one row of a store by one record; plain and windowed
// aggregations differ only in the key of the row.
type fold[K, V, A any] struct {
	site *Site
	rows *Rows[A]
	init func() A
	add  AddFunc[K, V, A]
	nils Nil[A]

	// The row after the last update.
	result A
	null   bool
	timeMs int64
	// before is the row before the last update; nil if nobody asks for it. It is
	// decoded on its own, as add may change its aggregate in place.
	before *Old[A]
}

func newFold[K, V, A any](site *Site, rows *Rows[A], adder Adder[K, V, A], demand *Demand) fold[K, V, A] {
	f := fold[K, V, A]{site: site, rows: rows, init: adder.Init, add: adder.New(), nils: NilOf[A]()}
	if demand.raised {
		f.before = new(Old[A])
	}
	return f
}

// update adds r to its row. done false with a nil error: the record was left
// out by the error chain and the row is as before.
func (f *fold[K, V, A]) update(r *Record[K, V], rowKey func() ([]byte, error)) (done bool, err error) {
	key, fatal, err := f.compute(r, rowKey)
	if err != nil {
		done, err = f.site.retry(err, func() (err error) {
			key, fatal, err = f.compute(r, rowKey)
			return err
		})
		if err != nil || !done {
			return false, err
		}
	}
	switch {
	case fatal != nil:
		return false, fatal
	case f.null:
		return true, f.rows.Delete(key)
	}
	return true, f.rows.Put(key)
}

// compute reads the row, adds the record and encodes the new row, without
// writing it: an attempt that fails leaves nothing behind, and the next one
// reads the row again, as the aggregate may have been changed in place. fatal
// is an error of the store.
func (f *fold[K, V, A]) compute(r *Record[K, V], rowKey func() ([]byte, error)) (key []byte, fatal, err error) {
	f.site.enter()
	key, err = rowKey()
	f.site.leave()
	if err != nil {
		return nil, nil, err
	}
	var a A
	timeMs, ok, fatal := f.rows.Get(key, &a)
	if fatal == nil && f.before != nil {
		fatal = f.rows.GetOld(key, f.before)
	}
	if fatal != nil {
		return nil, fatal, nil
	}
	f.timeMs = r.TimeMs
	f.site.enter()
	if ok {
		f.timeMs = max(timeMs, r.TimeMs)
	} else {
		a = f.init()
	}
	f.result, err = f.add(f.site.ctx, r, a, !ok)
	f.site.leave()
	if err != nil {
		return nil, nil, err
	}
	if f.null = f.nils.Is(&f.result); f.null {
		return key, nil, nil
	}
	return key, nil, f.rows.Encode(&f.result, f.timeMs)
}
