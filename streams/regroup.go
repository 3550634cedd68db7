package streams

import (
	"context"

	"github.com/millrace/millrace/streams/internal/operator"
)

// TGrouped is a table about to be aggregated by a key made of its rows. Each row
// counts in one group at a time: an update takes the old value away from its
// group and adds the new one to its own. When the group stays the same that
// gives one result, else two, the old group's first.
type TGrouped[K, V any] struct {
	place[K, operator.Change[V]]
	key *operator.Codec[K]
}

// GroupBy groups the rows by a key, with a value of them that is to be
// aggregated. Rows with a null key or value belong to no group. The changes of
// groups go through a repartition topic; As names it.
func (t Table[K, V]) GroupBy[KR, VR any](f func(K, V) (KR, VR), opts ...Opt) TGrouped[KR, VR] {
	return regroup(t, func() operator.GroupFunc[K, V, KR, VR] {
		key, val := operator.NilOf[KR](), operator.NilOf[VR]()
		return func(_ context.Context, in *operator.Record[K, V], out *operator.Record[KR, VR]) error {
			out.Key, out.Value = f(in.Key, in.Value)
			out.NullKey, out.NullValue = key.Is(&out.Key), val.Is(&out.Value)
			return nil
		}
	}, opts)
}

// TryGroupBy is GroupBy with a function that sees the row as a record and may
// fail. Old and new value of an update come with the update's time and headers.
func (t Table[K, V]) TryGroupBy[KR, VR any](f func(context.Context, *Record[K, V]) (KR, VR, error), opts ...Opt) TGrouped[KR, VR] {
	return regroup(t, func() operator.GroupFunc[K, V, KR, VR] {
		var row Record[K, V]
		key, val := operator.NilOf[KR](), operator.NilOf[VR]()
		return func(ctx context.Context, in *operator.Record[K, V], out *operator.Record[KR, VR]) (err error) {
			row.show(in)
			out.Key, out.Value, err = f(ctx, &row)
			out.NullKey, out.NullValue = key.Is(&out.Key), val.Is(&out.Value)
			return err
		}
	}, opts)
}

func regroup[K, V, KR, VR any](t Table[K, V], f func() operator.GroupFunc[K, V, KR, VR], opts []Opt) TGrouped[KR, VR] {
	a := t.app
	o := a.collect("group-by behind "+t.node.Name, opts, forGroup)
	t.raise()
	near := Stream[KR, operator.Change[VR]]{place: behind[KR, operator.Change[VR]](a, t.node, "group-by", o.as), rekeyed: true}
	n := near.node
	n.Detail = pair[KR, VR]()
	near.key = codec[KR](a, n, "key", o.key, nil)
	inner := codec[VR](a, n, "value", o.val, nil)
	near.val = new(operator.Codec[operator.Change[VR]])
	a.resolve = append(a.resolve, func() error {
		if inner.Serde != nil { // else its own error says it
			*near.val = operator.NewCodec(operator.ChangeSerde(inner.Serde))
		}
		return nil
	})
	readable(a, n, "value", inner)
	op := &operator.GroupTable[K, V, KR, VR]{Node: n.Name, Handler: a.handler(o), Key: near.key, New: f, Out: near.out}
	t.out.Attach(n.Name, op.Build)
	far := near.repartition("", false, options{onError: o.onError})
	far.node.Detail = pair[KR, VR]() + " changes"
	return TGrouped[KR, VR]{far.place, far.key}
}

// Count counts the rows of each group.
func (g TGrouped[K, V]) Count(opts ...Opt) Table[K, int64] {
	r := operator.Retractor[K, V, int64]{Adder: counter[K, V](), Subtract: step[K, V](-1)}
	return keep(g.place, g.key, "count", r.Fold(), opts)
}

// Reduce keeps one value of each group: the first as it is, then what add makes
// of it and the next, and what subtract makes of it and one that leaves. A nil
// result deletes the row.
func (g TGrouped[K, V]) Reduce(add, subtract func(V, V) V, opts ...Opt) Table[K, V] {
	r := operator.Retractor[K, V, V]{Adder: reducer[K](add), Subtract: reducer[K](subtract).New}
	return keep(g.place, g.key, "reduce", r.Fold(), opts)
}

// TableAgg is an aggregation of a table: where it starts, how a value is added
// and how it is taken away. Make one with Balance.
type TableAgg[V, A any] struct {
	Init     func() A
	Add      func(A, V) A
	Subtract func(A, V) A
}

// Balance starts with what init returns, calls add for each value that joins a
// group and subtract for each that leaves it. The aggregate given to them may be
// changed in place and returned. A nil aggregate deletes the row.
func Balance[V, A any](init func() A, add, subtract func(A, V) A) TableAgg[V, A] {
	return TableAgg[V, A]{init, add, subtract}
}

// Total adds up a number taken from each value of a group.
func Total[V any, N Num](number func(V) N) TableAgg[V, N] {
	return TableAgg[V, N]{
		Init:     zero[N],
		Add:      func(sum N, v V) N { return sum + number(v) },
		Subtract: func(sum N, v V) N { return sum - number(v) },
	}
}

// Aggregate keeps an aggregate of each group.
func (g TGrouped[K, V]) Aggregate[A any](agg TableAgg[V, A], opts ...Opt) Table[K, A] {
	r := operator.Retractor[K, V, A]{
		Adder:    adder[K](Agg[V, A]{agg.Init, agg.Add}),
		Subtract: adder[K](Agg[V, A]{agg.Init, agg.Subtract}).New,
	}
	return keep(g.place, g.key, "aggregate", r.Fold(), opts)
}

// TryAggregate is Aggregate with functions that see key and value as a record
// and may fail. When one fails, the row stays as it was.
func (g TGrouped[K, V]) TryAggregate[A any](init func() A, add, subtract func(context.Context, *Record[K, V], A) (A, error), opts ...Opt) Table[K, A] {
	r := operator.Retractor[K, V, A]{Adder: tryAdder(init, add), Subtract: tryAdd(subtract)}
	return keep(g.place, g.key, "aggregate", r.Fold(), opts)
}
