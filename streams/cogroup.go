package streams

import (
	"context"

	"github.com/millrace/millrace/streams/internal/operator"
	"github.com/millrace/millrace/streams/internal/topology"
)

// Cogrouped are several grouped streams about to be aggregated into one table.
type Cogrouped[K, A any] struct {
	parts []copart[K, A]
}

// copart is one of the streams; its type of values is inside.
type copart[K, A any] struct {
	app    *App
	node   *topology.Node // that its records come from
	key    *operator.Codec[K]
	attach func(t Table[K, A], init func() A, o options)
}

// Cogroup begins an aggregate that several streams add to, each by a function of
// its own. The records of a key are added in the order of processing; null keys
// and null values are dropped.
//
//	orders.GroupByKey().Cogroup(addOrder).
//		With(refunds.GroupByKey(), addRefund).
//		Aggregate(newBalance)
func (g Grouped[K, V]) Cogroup[A any](add func(A, V) A) Cogrouped[K, A] {
	return Cogrouped[K, A]{}.With(g, add)
}

// With adds one more stream.
func (c Cogrouped[K, A]) With[V any](g Grouped[K, V], add func(A, V) A) Cogrouped[K, A] {
	return c.with(part(g, func(init func() A) operator.Adder[K, V, A] { return adder[K](Agg[V, A]{init, add}) }))
}

// TryWith is With with a function that sees the whole record and may fail.
func (c Cogrouped[K, A]) TryWith[V any](g Grouped[K, V], add func(context.Context, *Record[K, V], A) (A, error)) Cogrouped[K, A] {
	return c.with(part(g, func(init func() A) operator.Adder[K, V, A] { return tryAdder(init, add) }))
}

func (c Cogrouped[K, A]) with(p copart[K, A]) Cogrouped[K, A] {
	return Cogrouped[K, A]{append(c.parts[:len(c.parts):len(c.parts)], p)}
}

func part[K, V, A any](g Grouped[K, V], add func(init func() A) operator.Adder[K, V, A]) copart[K, A] {
	s := g.input()
	return copart[K, A]{
		app: s.app, node: s.node, key: s.key,
		attach: func(t Table[K, A], init func() A, o options) {
			op := &operator.Aggregate[K, V, A]{Node: t.node.Name, Store: t.node.Name, Handler: t.app.handler(o), Key: t.key, Value: t.val,
				Adder: add(init), Demand: t.demand, Out: t.out, Shared: true}
			s.out.Attach(op.Build)
		},
	}
}

// Aggregate keeps one aggregate per key, starting with what init returns. A nil
// aggregate deletes the row.
func (c Cogrouped[K, A]) Aggregate(init func() A, opts ...Opt) Table[K, A] {
	first := c.parts[0]
	a := first.app
	o := a.collect("cogroup behind "+first.node.Name, opts, forAggregate)
	t := stored[K, A](a, first.node, "cogroup", o, first.key, nil)
	for i, p := range c.parts {
		if p.app != a {
			a.graph.Fail(t.node, "the stream %s belongs to another application", p.node.Name)
			continue
		}
		if i > 0 {
			a.graph.Link(p.node, t.node)
			a.graph.Copartition(first.node, p.node)
		}
		p.attach(t, init, o)
	}
	return t
}
