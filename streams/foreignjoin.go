package streams

import (
	"context"

	"github.com/millrace/millrace/streams/internal/operator"
)

// JoinFK joins each row with the row of the other table that its foreign key
// names; the result has this table's keys. An update of this table gives one
// result, an update of the other one for each row that refers to it. A nil foreign
// key refers to nothing.
//
// The result has the larger of the two times if this table's row has caused it,
// else the other row's. A row that is deleted, or does not refer to a row any
// more, is deleted from the result.
//
// The rows meet in the tasks that own the foreign keys, by way of two topics of
// the application's own; the two tables need not have the same number of
// partitions, but the other table's topic must be partitioned by the bytes of its
// keys, as producers do it by default.
func (t Table[K, V]) JoinFK[KO, VO, VR any](o Table[KO, VO], fk func(K, V) KO, f func(V, VO) VR, opts ...Opt) Table[K, VR] {
	key := func() operator.KeyFunc[K, V, KO] {
		nils := operator.NilOf[KO]()
		return func(_ context.Context, r *operator.Record[K, V]) (KO, bool, error) {
			key := fk(r.Key, r.Value)
			return key, nils.Is(&key), nil
		}
	}
	return joinForeign(t, o, false, key, func() operator.JoinFunc[K, V, VO, VR] {
		return func(_ context.Context, r *operator.Record[K, V], row VO, _ bool) (VR, error) {
			return f(r.Value, row), nil
		}
	}, opts)
}

// LeftJoinFK is JoinFK that keeps the rows without a row of the other table, those
// without a foreign key included.
func (t Table[K, V]) LeftJoinFK[KO, VO, VR any](o Table[KO, VO], fk func(K, V) Maybe[KO], f func(V, Maybe[VO]) VR, opts ...Opt) Table[K, VR] {
	key := func() operator.KeyFunc[K, V, KO] {
		return func(_ context.Context, r *operator.Record[K, V]) (KO, bool, error) {
			key := fk(r.Key, r.Value)
			return key.V, !key.OK, nil
		}
	}
	return joinForeign(t, o, true, key, func() operator.JoinFunc[K, V, VO, VR] {
		return func(_ context.Context, r *operator.Record[K, V], row VO, found bool) (VR, error) {
			return f(r.Value, Maybe[VO]{row, found}), nil
		}
	}, opts)
}

// TryJoinFK is JoinFK with functions that see the whole row as a record and may
// fail. The record that f gets has the time of the result.
func (t Table[K, V]) TryJoinFK[KO, VO, VR any](o Table[KO, VO], fk func(context.Context, *Record[K, V]) (Maybe[KO], error), f func(context.Context, *Record[K, V], VO) (VR, error), opts ...Opt) Table[K, VR] {
	return joinForeign(t, o, false, tryForeignKey(fk), func() operator.JoinFunc[K, V, VO, VR] {
		var in Record[K, V]
		return func(ctx context.Context, r *operator.Record[K, V], row VO, _ bool) (VR, error) {
			in.show(r)
			return f(ctx, &in, row)
		}
	}, opts)
}

// TryLeftJoinFK is LeftJoinFK with functions that may fail; see TryJoinFK.
func (t Table[K, V]) TryLeftJoinFK[KO, VO, VR any](o Table[KO, VO], fk func(context.Context, *Record[K, V]) (Maybe[KO], error), f func(context.Context, *Record[K, V], Maybe[VO]) (VR, error), opts ...Opt) Table[K, VR] {
	return joinForeign(t, o, true, tryForeignKey(fk), func() operator.JoinFunc[K, V, VO, VR] {
		var in Record[K, V]
		return func(ctx context.Context, r *operator.Record[K, V], row VO, found bool) (VR, error) {
			in.show(r)
			return f(ctx, &in, Maybe[VO]{row, found})
		}
	}, opts)
}

func tryForeignKey[K, V, KO any](fk func(context.Context, *Record[K, V]) (Maybe[KO], error)) func() operator.KeyFunc[K, V, KO] {
	return func() operator.KeyFunc[K, V, KO] {
		var in Record[K, V]
		return func(ctx context.Context, r *operator.Record[K, V]) (KO, bool, error) {
			in.show(r)
			key, err := fk(ctx, &in)
			return key.V, !key.OK, err
		}
	}
}

func joinForeign[K, V, KO, VO, VR any](t Table[K, V], o Table[KO, VO], left bool, key func() operator.KeyFunc[K, V, KO], f func() operator.JoinFunc[K, V, VO, VR], opts []Opt) Table[K, VR] {
	a, kind := t.app, "join-fk"
	if left {
		kind = "left-join-fk"
	}
	opt := a.collect(kind+" behind "+t.node.Name, opts, forForeign)
	next := Table[K, VR]{place: behind[K, VR](a, t.node, kind, opt.as), key: t.key, demand: new(operator.Demand)}
	n := next.node
	if a != o.app {
		a.graph.Fail(n, "the table %s belongs to another application", o.node.Name)
		return next
	}
	t.held()
	o.held()
	n.Reads = t.stores
	n.Shape = "subscribed rows of " + typeName[K]() + " with foreign keys " + typeName[KO]()
	n.Store = a.keep(n, n.Name, opt)

	// The right side, behind the topic of subscriptions.
	sent, asked := a.graph.Repartition(n, n.Name+".subscriptions")
	sent.Detail, asked.Detail = pair[KO, K](), pair[KO, K]()
	r := a.graph.Add(asked, "subscriptions", n.Name+".subscriptions")
	r.Detail, r.Reads = pair[KO, VO](), o.stores
	r.Named, asked.Named = n.Named, n.Named
	r.Shape = "subscriptions of " + typeName[K]() + " to " + typeName[KO]()
	r.Store = a.keep(r, r.Name, opt)
	a.graph.Link(o.node, r)
	a.graph.Copartition(asked, o.node)
	// And back, behind the topic of answers.
	replied, answered := a.graph.Repartition(r, n.Name+".answers")
	replied.Detail, answered.Detail = pair[K, VO](), pair[K, VO]()
	answered.Named = n.Named
	a.graph.Link(answered, n)
	a.graph.Copartition(answered, t.node)

	op := &operator.ForeignJoin[K, V, KO, VO, VR]{Node: n.Name, Handler: a.handler(opt), LeftAlone: left, Left: t.view, Right: o.view,
		LeftKey: t.key, RightKey: o.key, RightVal: codec(a, r, "value", nil, o.val), Key: key, New: f, Out: next.out,
		Subscribed: n.Name, Subscriptions: r.Name, SubscribeTopic: sent.Topic, AnswerTopic: replied.Topic, Demand: next.demand}
	readable(a, n, "key", t.key)
	t.out.Attach(n.Name, op.BuildLeft)
	o.out.Attach(r.Name, op.BuildRight)
	asked.Root = &operator.Root{Topic: asked.Topic, Build: op.BuildSubscriptions}
	answered.Root = &operator.Root{Topic: answered.Topic, Build: op.BuildAnswers}

	// A look-up of a result cannot reach the other side's task: the results are
	// kept as soon as somebody wants them.
	result := n.Name + ".result"
	next.val = codec[VR](a, n, "value", opt.val, nil)
	next.view, next.stores = operator.StoreView(result, next.val), []string{result}
	op.Value = next.val
	next.hold = func() {
		if op.Result != "" {
			return
		}
		op.Result = result
		kept := a.graph.Add(n, "result", result)
		kept.Named = n.Named
		kept.Detail, kept.Shape = pair[K, VR](), "rows "+pair[K, VR]()
		kept.Store = a.keep(kept, result, opt)
		readable(a, kept, "value", next.val)
	}
	return next
}
