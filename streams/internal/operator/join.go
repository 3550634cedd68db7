package operator

import (
	"context"
	"errors"

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
	n := &joinTable[K, V, VT, VR]{site: b.Site(j.Node, task.Process, j.Handler), key: j.Key, fn: j.New(), nils: NilOf[VR](), kbuf: buffer()}
	var err error
	if n.rows, err = NewRows(b, n.site, j.Store, j.Row); err != nil {
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
	found, fatal, err := n.call(r)
	if err != nil {
		_, err = n.site.retry(err, func() (err error) {
			found, fatal, err = n.call(r)
			return err
		})
	}
	if err = errors.Join(fatal, err); err != nil || !found {
		return err
	}
	n.out.NullValue = n.nils.Is(&n.out.Value)
	return n.next.Push(&n.out)
}

// call looks the row up and joins; fatal is an error of the store. found stays
// false when there is an error.
func (n *joinTable[K, V, VT, VR]) call(r *Record[K, V]) (found bool, fatal, err error) {
	n.site.enter()
	n.kbuf, err = n.key.Append(n.kbuf[:0], &r.Key)
	n.site.leave()
	if err != nil {
		return false, nil, err
	}
	_, found, fatal = n.rows.Get(n.kbuf, &n.row)
	if fatal != nil || !found {
		return false, fatal, nil
	}
	n.out.Key, n.out.NullKey, n.out.TimeMs, n.out.Headers = r.Key, false, r.TimeMs, r.Headers
	n.site.enter()
	n.out.Value, err = n.fn(n.site.ctx, r, n.row)
	n.site.leave()
	return err == nil, nil, err
}
