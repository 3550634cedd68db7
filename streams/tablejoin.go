package streams

import (
	"context"

	"github.com/millrace/millrace/streams/internal/operator"
)

// Join is the table of the keys that both tables have, with what f makes of the
// two values. Each update of either side sends the result with the larger of the
// two rows' times. A deletion on one side is sent on if the other has a row, also
// when it is repeated. The result is not stored: a look-up joins again.
//
// The topics of both sides must have the same number of partitions.
func (t Table[K, V]) Join[VO, VR any](o Table[K, VO], f func(V, VO) VR, opts ...Opt) Table[K, VR] {
	return joinTables(t, o, "join", operator.Sides{}, pairOf[K](func(v Maybe[V], x Maybe[VO]) VR { return f(v.V, x.V) }), opts)
}

// LeftJoin is Join with the keys that only this table has.
func (t Table[K, V]) LeftJoin[VO, VR any](o Table[K, VO], f func(V, Maybe[VO]) VR, opts ...Opt) Table[K, VR] {
	return joinTables(t, o, "left-join", operator.Sides{LeftAlone: true}, pairOf[K](func(v Maybe[V], x Maybe[VO]) VR { return f(v.V, x) }), opts)
}

// OuterJoin is Join with the keys that only one of the tables has.
func (t Table[K, V]) OuterJoin[VO, VR any](o Table[K, VO], f func(Maybe[V], Maybe[VO]) VR, opts ...Opt) Table[K, VR] {
	return joinTables(t, o, "outer-join", operator.Sides{LeftAlone: true, RightAlone: true}, pairOf[K](f), opts)
}

// TryJoin is Join with a function that may fail. The record is the update with
// this table's value; a look-up gives it no headers.
func (t Table[K, V]) TryJoin[VO, VR any](o Table[K, VO], f func(context.Context, *Record[K, V], VO) (VR, error), opts ...Opt) Table[K, VR] {
	return joinTables(t, o, "join", operator.Sides{}, tryPair(func(ctx context.Context, r *Record[K, V], x Maybe[VO]) (VR, error) {
		return f(ctx, r, x.V)
	}), opts)
}

// TryLeftJoin is LeftJoin with a function that may fail; see TryJoin.
func (t Table[K, V]) TryLeftJoin[VO, VR any](o Table[K, VO], f func(context.Context, *Record[K, V], Maybe[VO]) (VR, error), opts ...Opt) Table[K, VR] {
	return joinTables(t, o, "left-join", operator.Sides{LeftAlone: true}, tryPair(func(ctx context.Context, r *Record[K, V], x Maybe[VO]) (VR, error) {
		return f(ctx, r, x)
	}), opts)
}

// TryOuterJoin is OuterJoin with a function that may fail; see TryJoin.
func (t Table[K, V]) TryOuterJoin[VO, VR any](o Table[K, VO], f func(context.Context, *Record[K, Maybe[V]], Maybe[VO]) (VR, error), opts ...Opt) Table[K, VR] {
	sides := operator.Sides{LeftAlone: true, RightAlone: true}
	return joinTables(t, o, "outer-join", sides, tryOuter(f), opts)
}

func tryOuter[K, V, VO, VR any](f func(context.Context, *Record[K, Maybe[V]], Maybe[VO]) (VR, error)) func() operator.PairFunc[K, V, VO, VR] {
	return func() operator.PairFunc[K, V, VO, VR] {
		var in Record[K, Maybe[V]]
		return func(ctx context.Context, r *operator.Record[K, struct{}], v V, hasV bool, x VO, hasX bool) (VR, error) {
			in = showPair(r, Maybe[V]{v, hasV})
			return f(ctx, &in, Maybe[VO]{x, hasX})
		}
	}
}

func pairOf[K, V, VO, VR any](f func(Maybe[V], Maybe[VO]) VR) func() operator.PairFunc[K, V, VO, VR] {
	return func() operator.PairFunc[K, V, VO, VR] {
		return func(_ context.Context, _ *operator.Record[K, struct{}], v V, hasV bool, x VO, hasX bool) (VR, error) {
			return f(Maybe[V]{v, hasV}, Maybe[VO]{x, hasX}), nil
		}
	}
}

func tryPair[K, V, VO, VR any](f func(context.Context, *Record[K, V], Maybe[VO]) (VR, error)) func() operator.PairFunc[K, V, VO, VR] {
	return func() operator.PairFunc[K, V, VO, VR] {
		var in Record[K, V]
		return func(ctx context.Context, r *operator.Record[K, struct{}], v V, _ bool, x VO, hasX bool) (VR, error) {
			in = showPair(r, v)
			return f(ctx, &in, Maybe[VO]{x, hasX})
		}
	}
}

// showPair is the public record of one side of a pair.
func showPair[K, V any](r *operator.Record[K, struct{}], v V) (in Record[K, V]) {
	in.show(&operator.Record[K, V]{Key: r.Key, Value: v, TimeMs: r.TimeMs, Headers: r.Headers})
	return in
}

func joinTables[K, V, VO, VR any](t Table[K, V], o Table[K, VO], kind string, sides operator.Sides, f func() operator.PairFunc[K, V, VO, VR], opts []Opt) Table[K, VR] {
	opt := t.app.collect(kind+" behind "+t.node.Name, opts, forJoin)
	next := Table[K, VR]{place: behind[K, VR](t.app, t.node, kind, opt.as), key: t.key, demand: new(operator.Demand)}
	if t.app != o.app {
		t.app.graph.Fail(next.node, "the table %s belongs to another application", o.node.Name)
		return next
	}
	t.app.graph.Link(o.node, next.node)
	t.app.graph.Copartition(t.node, o.node)
	next.stores = append(append([]string{}, t.stores...), o.stores...)
	next.node.Reads = next.stores
	t.raise()
	o.raise()
	op := &operator.TableJoin[K, V, VO, VR]{Node: next.node.Name, Handler: t.app.handler(opt), Sides: sides, Key: t.key, New: f, Left: t.view, Right: o.view, Out: next.out}
	next.view = op.View
	t.out.Attach(next.node.Name, op.BuildLeft)
	o.out.Attach(next.node.Name, op.BuildRight)
	return next
}
