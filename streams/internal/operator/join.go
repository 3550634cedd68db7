package operator

import (
	"context"

	"github.com/millrace/millrace/streams/internal/task"
)

// JoinFunc makes the joined value of a record and the row of its key.
type JoinFunc[K, V, VT, VR any] func(ctx context.Context, r *Record[K, V], row VT) (VR, error)

// JoinTable joins a stream with a table: each record of the stream meets the
// row that the table has for its key at that moment. Records without a row,
// a key or a value give nothing.
type JoinTable[K, V, VT, VR any] struct {
	Node    string
	Store   string // of the table
	Handler task.Handler
	Key     *Codec[K]
	Row     *Codec[VT]
	New     func() JoinFunc[K, V, VT, VR]
	Out     *Outlet[K, VR]
}

// Build makes the node of one task.
func (j *JoinTable[K, V, VT, VR]) Build(b *Builder) (Sink[K, V], error) {
	n := &joinTable[K, V, VT, VR]{site: b.Site(j.Node, j.Handler), key: j.Key, fn: j.New(), nils: NilOf[VR](), kbuf: buffer()}
	var err error
	if n.rows, err = NewRows(b, j.Store, j.Row); err != nil {
		return nil, err
	}
	n.next, err = j.Out.Build(b)
	return n, err
}

type joinTable[K, V, VT, VR any] struct {
	site *Site
	key  *Codec[K]
	rows *Rows[VT]
	fn   JoinFunc[K, V, VT, VR]
	nils Nil[VR]
	next Sink[K, VR]
	out  Record[K, VR]
	row  VT
	kbuf []byte
}

// Push implements Sink.
func (n *joinTable[K, V, VT, VR]) Push(r *Record[K, V]) error {
	switch {
	case r.NullKey:
		n.site.drop(dropNullKey)
		return nil
	case r.NullValue:
		n.site.drop(dropNullValue)
		return nil
	}
	for {
		found, fatal, err := n.call(r)
		if fatal != nil {
			return fatal
		}
		if err == nil {
			n.site.ok()
			if !found {
				return nil
			}
			n.out.NullValue = n.nils.Is(&n.out.Value)
			return n.next.Push(&n.out)
		}
		again, err := n.site.failed(task.Process, err)
		if err != nil || !again {
			return err
		}
	}
}

// call looks the row up and joins; fatal is an error of the store.
func (n *joinTable[K, V, VT, VR]) call(r *Record[K, V]) (found bool, fatal, err error) {
	defer n.site.recovered(&err)
	if n.kbuf, err = n.key.Append(n.kbuf[:0], &r.Key); err != nil {
		return false, nil, err
	}
	_, found, fatal = n.rows.Get(n.kbuf, &n.row)
	if fatal != nil || !found {
		return false, fatal, nil
	}
	n.out.Key, n.out.NullKey, n.out.TimeMs, n.out.Headers = r.Key, false, r.TimeMs, r.Headers
	n.out.Value, err = n.fn(n.site.task.ctx, r, n.row)
	return true, nil, err
}
