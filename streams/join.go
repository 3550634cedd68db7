package streams

import (
	"context"
	"time"

	"github.com/millrace/millrace/streams/internal/operator"
)

// JoinTable joins each record of the stream with the row that the table has for
// its key at that moment. Records without a row give nothing; those with a null
// key or value are dropped and counted. The result has the record's key, time
// and headers; updates of the table alone give nothing.
//
// A table that is Versioned is asked for the row of the record's time. With Grace,
// records wait until stream time is that far past them, so that rows which come
// later still count, and go out in order of time.
//
// The topics of both sides must have the same number of partitions.
func (s Stream[K, V]) JoinTable[VT, VR any](t Table[K, VT], f func(V, VT) VR, opts ...Opt) Stream[K, VR] {
	return joinTable(s, t, false, func() operator.JoinFunc[K, V, VT, VR] {
		return func(_ context.Context, r *operator.Record[K, V], row VT, _ bool) (VR, error) {
			return f(r.Value, row), nil
		}
	}, opts)
}

// TryJoinTable is JoinTable with a function that sees the whole record and may
// fail.
func (s Stream[K, V]) TryJoinTable[VT, VR any](t Table[K, VT], f func(context.Context, *Record[K, V], VT) (VR, error), opts ...Opt) Stream[K, VR] {
	return joinTable(s, t, false, func() operator.JoinFunc[K, V, VT, VR] {
		var in Record[K, V]
		return func(ctx context.Context, r *operator.Record[K, V], row VT, _ bool) (VR, error) {
			in.show(r)
			return f(ctx, &in, row)
		}
	}, opts)
}

// Maybe is the side of a join that may be missing: V is the zero value unless OK.
type Maybe[T any] struct {
	V  T
	OK bool
}

// LeftJoinTable is JoinTable that keeps the records without a row, those with a
// null key included. Null values are dropped and counted.
func (s Stream[K, V]) LeftJoinTable[VT, VR any](t Table[K, VT], f func(V, Maybe[VT]) VR, opts ...Opt) Stream[K, VR] {
	return joinTable(s, t, true, func() operator.JoinFunc[K, V, VT, VR] {
		return func(_ context.Context, r *operator.Record[K, V], row VT, found bool) (VR, error) {
			return f(r.Value, Maybe[VT]{row, found}), nil
		}
	}, opts)
}

// TryLeftJoinTable is LeftJoinTable with a function that sees the whole record
// and may fail.
func (s Stream[K, V]) TryLeftJoinTable[VT, VR any](t Table[K, VT], f func(context.Context, *Record[K, V], Maybe[VT]) (VR, error), opts ...Opt) Stream[K, VR] {
	return joinTable(s, t, true, func() operator.JoinFunc[K, V, VT, VR] {
		var in Record[K, V]
		return func(ctx context.Context, r *operator.Record[K, V], row VT, found bool) (VR, error) {
			in.show(r)
			return f(ctx, &in, Maybe[VT]{row, found})
		}
	}, opts)
}

func joinTable[K, V, VT, VR any](s Stream[K, V], t Table[K, VT], left bool, f func() operator.JoinFunc[K, V, VT, VR], opts []Opt) Stream[K, VR] {
	kind := "join-table"
	if left {
		kind = "left-join-table"
	}
	o := s.app.collect(kind+" behind "+s.node.Name, opts, forTableJoin)
	if s.key == nil {
		s.key = t.key // nothing else is said of the new key: partition it as the table is
	}
	in := s.repartition("", left, options{onError: o.onError})
	next := Stream[K, VR]{place: behind[K, VR](s.app, in.node, kind, o.as), key: in.key}
	if s.app != t.app {
		s.app.graph.Fail(next.node, "the table %s belongs to another application", t.node.Name)
		return next
	}
	t.held()
	next.node.Reads = t.stores
	s.app.graph.Copartition(in.node, t.node)
	// The table's own codec: a row is found by the bytes of its key.
	op := &operator.JoinTable[K, V, VT, VR]{Node: next.node.Name, Left: left, Table: t.view, Handler: s.app.handler(o), Key: t.key, New: f, Out: next.out}
	op.AsOf = t.history > 0
	if o.grace == 0 {
		in.out.Attach(next.node.Name, op.Build)
		return next
	}
	n := next.node
	switch {
	case o.grace < 0 || o.grace%time.Millisecond != 0:
		s.app.graph.Fail(n, "grace %v must be whole milliseconds", o.grace)
	case t.history < o.grace:
		s.app.graph.Fail(n, "grace %v needs a table that is Versioned, with at least that much history", o.grace)
	}
	n.Detail += " grace " + o.grace.String()
	n.Shape = "waiting records " + pair[K, V]()
	n.Store = s.app.keep(n, n.Name, o)
	wait := &operator.JoinGrace[K, V, VT, VR]{JoinTable: *op, Store: n.Name, Value: codec(s.app, n, "value", nil, in.val), GraceMs: o.grace.Milliseconds()}
	readable(s.app, n, "value", wait.Value)
	in.out.Attach(n.Name, wait.Build)
	return next
}
