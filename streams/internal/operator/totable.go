package operator

import "github.com/millrace/millrace/streams/internal/task"

// ToTable keeps the latest value of each key of a stream in a store and passes
// each update on, a null value as a deletion. Rows are overwritten in the order
// of arrival. Records with a null key are dropped.
type ToTable[K, V any] struct {
	Node    string
	Store   string
	Handler task.Handler
	Key     *Codec[K]
	Value   *Codec[V]
	Demand  *Demand // for the old values of rows
	Out     *Outlet[K, V]
}

// Build makes the node of one task.
func (t *ToTable[K, V]) Build(b *Builder) (Sink[K, V], error) {
	n := &toTable[K, V]{site: b.Site(t.Node, task.Encode, t.Handler), key: t.Key, kbuf: buffer()}
	var err error
	if n.rows, err = NewRows(b, n.site, t.Store, t.Value); err != nil {
		return nil, err
	}
	if t.Demand.raised {
		n.old = new(Old[V])
	}
	n.next, err = t.Out.Build(b)
	return n, err
}

type toTable[K, V any] struct {
	site *Site
	key  *Codec[K]
	rows *Rows[V]
	next Sink[K, V]
	out  Record[K, V]
	old  *Old[V] // nil: nobody asks
	kbuf []byte
}

// Push implements Sink.
func (n *toTable[K, V]) Push(r *Record[K, V]) error {
	if r.NullKey {
		n.site.drop(dropNullKey)
		return nil
	}
	if err := n.encode(r); err != nil {
		done, err := n.site.retry(err, func() error { return n.encode(r) })
		if err != nil || !done {
			return err
		}
	}
	if n.old != nil {
		if err := n.rows.GetOld(n.kbuf, n.old); err != nil {
			return err
		}
	}
	if err := n.write(r); err != nil {
		return err
	}
	n.out = *r
	n.out.Old = n.old
	return n.next.Push(&n.out)
}

func (n *toTable[K, V]) encode(r *Record[K, V]) (err error) {
	n.site.enter()
	n.kbuf, err = n.key.Append(n.kbuf[:0], &r.Key)
	n.site.leave()
	if err != nil || r.NullValue {
		return err
	}
	return n.rows.Encode(&r.Value, r.TimeMs)
}

func (n *toTable[K, V]) write(r *Record[K, V]) error {
	if r.NullValue {
		return n.rows.Delete(n.kbuf)
	}
	return n.rows.Put(n.kbuf)
}
