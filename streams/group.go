package streams

import (
	"context"

	"github.com/millrace/millrace/streams/internal/operator"
	"github.com/millrace/millrace/streams/internal/topology"
)

// Grouped is a stream about to be aggregated by key.
type Grouped[K, V any] struct {
	stream Stream[K, V]
	name   string // of the repartition topic, if there has to be one
	opts   options
}

// GroupBy groups by a key taken from the value. Records go through a
// repartition topic, which drops null keys; As names it.
func (s Stream[K, V]) GroupBy[KR any](f func(V) KR, opts ...Opt) Grouped[KR, V] {
	return groupBy(s, func() operator.Func[K, V, KR, V] { return operator.SelectKeyFunc[K](f) }, opts)
}

// TryGroupBy is GroupBy with a function that sees the whole record and may
// fail.
func (s Stream[K, V]) TryGroupBy[KR any](f func(context.Context, *Record[K, V]) (KR, error), opts ...Opt) Grouped[KR, V] {
	return groupBy(s, trySelectKey(f), opts)
}

func groupBy[K, V, KR any](s Stream[K, V], f func() operator.Func[K, V, KR, V], opts []Opt) Grouped[KR, V] {
	o := s.app.collect("group-by behind "+s.node.Name, opts, forGroup)
	step := []Opt{As(o.as)}
	if o.onError != nil {
		step = append(step, OnError(o.onError))
	}
	return Grouped[KR, V]{stream: selectKey(s, "group-by", f, step), opts: o}
}

// GroupByKey groups by the key as it is. A repartition topic is put in only if
// the key was changed upstream; As names it.
func (s Stream[K, V]) GroupByKey(opts ...Opt) Grouped[K, V] {
	o := s.app.collect("group-by-key behind "+s.node.Name, opts, forGroup)
	return Grouped[K, V]{stream: s, name: o.as, opts: o}
}

// input is the grouped stream in the tasks that own its keys.
func (g Grouped[K, V]) input() Stream[K, V] {
	s := g.stream.repartition(g.name, false, g.opts)
	if g.opts.key != nil && !g.stream.rekeyed {
		s.key = codec[K](s.app, s.node, "key", g.opts.key, nil)
	}
	return s
}

// Count counts the records of each key. Null keys and null values are not
// counted.
func (g Grouped[K, V]) Count(opts ...Opt) Table[K, int64] {
	return aggregate(g, "count", counter[K, V](), opts)
}

// Reduce keeps one value of each key: the first as it is, then what f makes of
// it and the next. Null keys and null values are dropped; a nil result deletes
// the row.
func (g Grouped[K, V]) Reduce(f func(V, V) V, opts ...Opt) Table[K, V] {
	return aggregate(g, "reduce", reducer[K](f), opts)
}

// TryReduce is Reduce with a function that sees the whole new record and may
// fail. When it fails, the row stays as it was.
func (g Grouped[K, V]) TryReduce(f func(ctx context.Context, reduced V, r *Record[K, V]) (V, error), opts ...Opt) Table[K, V] {
	return aggregate(g, "reduce", tryReducer(f), opts)
}

// Aggregate keeps an aggregate of each key's values. Null keys and null values
// are dropped.
func (g Grouped[K, V]) Aggregate[A any](agg Agg[V, A], opts ...Opt) Table[K, A] {
	return aggregate(g, "aggregate", adder[K](agg), opts)
}

// TryAggregate is Aggregate with a function that sees the whole record and may
// fail. When it fails, the row stays as it was.
func (g Grouped[K, V]) TryAggregate[A any](init func() A, add func(context.Context, *Record[K, V], A) (A, error), opts ...Opt) Table[K, A] {
	return aggregate(g, "aggregate", tryAdder(init, add), opts)
}

func aggregate[K, V, A any](g Grouped[K, V], kind string, add operator.Adder[K, V, A], opts []Opt) Table[K, A] {
	s := g.input()
	return keep(s.place, s.key, kind, add, opts)
}

// keep adds an aggregation behind a place whose records are in the tasks that
// own their keys.
func keep[K, V, A any](s place[K, V], key *operator.Codec[K], kind string, add operator.Adder[K, V, A], opts []Opt) Table[K, A] {
	a := s.app
	o := a.collect(kind+" behind "+s.node.Name, opts, forAggregate)
	t := stored[K, A](a, s.node, kind, o, key, nil)
	op := &operator.Aggregate[K, V, A]{Node: t.node.Name, Store: t.node.Name, Handler: a.handler(o), Key: t.key, Value: t.val, Adder: add, Demand: t.demand, Out: t.behindCache(o)}
	s.out.Attach(t.node.Name, op.Build)
	return t
}

// behindCache is where the node of a table sends updates to: the table's end, or a
// cache in front of it.
func (t Table[K, V]) behindCache(o options) *operator.Outlet[K, V] {
	if o.cached <= 0 {
		return t.out
	}
	t.demand.Raise()
	return cache(t.app, t.node, t.key, o, t.out)
}

func cache[K, V any](a *App, n *topology.Node, key *operator.Codec[K], o options, out *operator.Outlet[K, V]) *operator.Outlet[K, V] {
	n.Detail += " cached"
	op := &operator.Cache[K, V]{Node: n.Name, Handler: a.handler(o), Key: key, MaxKeys: o.cached, Out: out}
	in := new(operator.Outlet[K, V])
	in.Attach("", op.Build) // it is a part of its table, which is counted already
	return in
}

// stored adds a node that keeps a table in a store of its own.
func stored[K, V any](a *App, parent *topology.Node, kind string, o options, key *operator.Codec[K], val *operator.Codec[V]) Table[K, V] {
	t := Table[K, V]{place: behind[K, V](a, parent, kind, o.as), demand: new(operator.Demand)}
	n := t.node
	n.Shape = "rows " + pair[K, V]()
	n.Store = a.keep(n, n.Name, o)
	t.key, t.val = codec(a, n, "key", o.key, key), codec(a, n, "value", o.val, val)
	readable(a, n, "value", t.val)
	t.view, t.stores = operator.StoreView(n.Name, t.val), []string{n.Name}
	a.graph.Copartition(parent, parent)
	showTable(a, n.Name, t.View)
	return t
}
