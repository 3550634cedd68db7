package operator

import (
	"context"
	"errors"

	"github.com/millrace/millrace/streams/internal/task"
)

// JoinFunc makes the joined value of a record and the row of its key; in a left
// join there may be none.
type JoinFunc[K, V, VT, VR any] func(ctx context.Context, r *Record[K, V], row VT, found bool) (VR, error)

// JoinTable joins a stream with a table: each record of the stream meets the
// row that the table has for its key at that moment. Records without a value
// give nothing; those without a key or a row only in a left join.
type JoinTable[K, V, VT, VR any] struct {
	Node string
	Left bool
	// Find, if set, gives the key that a record meets, in place of its own; null for
	// none.
	Find    func() FindFunc[K, V]
	AsOf    bool // the row is that of the record's time; the table is a versioned one
	Table   View[VT]
	Handler task.Handler
	Key     *Codec[K]
	New     func() JoinFunc[K, V, VT, VR]
	Out     *Outlet[K, VR]
}

// FindFunc appends the bytes of the key that a record meets.
type FindFunc[K, V any] func(ctx context.Context, dst []byte, r *Record[K, V]) (key []byte, null bool, err error)

// Build makes the node of one task.
func (j *JoinTable[K, V, VT, VR]) Build(b *Builder) (Sink[K, V], error) {
	n := &joinTable[K, V, VT, VR]{site: b.Site(j.Node, task.Process, j.Handler), left: j.Left, key: j.Key, fn: j.New(), nils: NilOf[VR](), kbuf: buffer()}
	var err error
	if n.rows, err = j.Table(b, n.site); err != nil {
		return nil, err
	}
	if j.Find != nil {
		n.keyOf = j.Find()
	}
	if j.AsOf {
		from, ok := n.rows.(AsOfReader[VT])
		if !ok {
			return nil, errNoHistory
		}
		n.at = &at[VT]{from: from}
		n.rows = n.at
	}
	n.next, err = j.Out.Build(b)
	return n, err
}

type joinTable[K, V, VT, VR any] struct {
	site  *Site
	left  bool
	key   *Codec[K]
	rows  Reader[VT]
	keyOf FindFunc[K, V] // nil: the record's key
	at    *at[VT]        // nil: rows are taken as they are now
	fn    JoinFunc[K, V, VT, VR]
	nils  Nil[VR]
	next  Sink[K, VR]
	out   Record[K, VR]
	row   VT
	kbuf  []byte
}

// Push implements Sink.
func (n *joinTable[K, V, VT, VR]) Push(r *Record[K, V]) error {
	switch {
	case r.NullKey && !n.left && n.keyOf == nil:
		n.site.drop(dropNullKey)
		return nil
	case r.NullValue:
		n.site.drop(dropNullValue)
		return nil
	}
	joined, fatal, err := n.call(r)
	if err != nil {
		_, err = n.site.retry(err, func() (err error) {
			joined, fatal, err = n.call(r)
			return err
		})
	}
	if err = errors.Join(fatal, err); err != nil || !joined {
		return err
	}
	n.out.NullValue = n.nils.Is(&n.out.Value)
	return n.next.Push(&n.out)
}

// call looks the row up and joins; fatal is an error of the store. joined stays
// false when there is an error.
func (n *joinTable[K, V, VT, VR]) call(r *Record[K, V]) (joined bool, fatal, err error) {
	found := false
	if !r.NullKey || n.keyOf != nil {
		if found, fatal, err = n.find(r); fatal != nil || err != nil {
			return false, fatal, err
		}
	}
	if !found {
		if !n.left {
			return false, nil, nil
		}
		var none VT
		n.row = none
	}
	n.out.Key, n.out.NullKey, n.out.TimeMs, n.out.Headers = r.Key, r.NullKey, r.TimeMs, r.Headers
	n.site.enter()
	n.out.Value, err = n.fn(n.site.ctx, r, n.row, found)
	n.site.leave()
	return err == nil, nil, err
}

// find looks the row up.
func (n *joinTable[K, V, VT, VR]) find(r *Record[K, V]) (found bool, fatal, err error) {
	null := false
	n.site.enter()
	if n.keyOf != nil {
		n.kbuf, null, err = n.keyOf(n.site.ctx, n.kbuf[:0], r)
	} else {
		n.kbuf, err = n.key.Append(n.kbuf[:0], &r.Key)
	}
	n.site.leave()
	if err != nil || null {
		return false, nil, err
	}
	if n.at != nil {
		n.at.ms = r.TimeMs
	}
	_, found, err = n.rows.Get(n.kbuf, &n.row)
	fatal, err = blame(err)
	return found, fatal, err
}
