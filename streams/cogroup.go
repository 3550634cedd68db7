package streams

import (
	"context"
	"strconv"
	"time"

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
	// With windows; part is the number among the streams.
	windowed func(t WTable[K, A], part string, w Windows, init func() A, o options)
	sessions func(t WTable[K, A], part string, w sessionWindows, init func() A, merge func(a, b A) A, o options)
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
	takesNull := !operator.NilOf[V]().Strict(true)
	return copart[K, A]{
		app: s.app, node: s.node, key: s.key,
		attach: func(t Table[K, A], init func() A, o options) {
			op := &operator.Aggregate[K, V, A]{Node: t.node.Name, Store: t.node.Name, Handler: t.app.handler(o), Key: t.key, Value: t.val,
				Adder: add(init), Demand: t.demand, Out: t.out, Shared: true}
			s.out.Attach(t.node.Name, op.Build)
		},
		windowed: func(t WTable[K, A], part string, w Windows, init func() A, o options) {
			w.attach(s.place, t, part, add(init), takesNull, o)
		},
		sessions: func(t WTable[K, A], part string, w sessionWindows, init func() A, merge func(a, b A) A, o options) {
			w.attach(s.place, t, part, add(init), pureMerge(merge), takesNull, o)
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
	t.out = t.behindCache(o)
	c.each(t.node, func(_ string, p copart[K, A]) { p.attach(t, init, o) })
	return t
}

// each links the streams to the node that they are aggregated at.
func (c Cogrouped[K, A]) each(n *topology.Node, attach func(part string, p copart[K, A])) {
	first := c.parts[0]
	for i, p := range c.parts {
		if p.app != first.app {
			first.app.graph.Fail(n, "the stream %s belongs to another application", p.node.Name)
			continue
		}
		if i > 0 {
			first.app.graph.Link(p.node, n)
			first.app.graph.Copartition(first.node, p.node)
		}
		attach(strconv.Itoa(i+1), p)
	}
}

// WCogrouped are several grouped streams about to be aggregated into one table by
// key and window.
type WCogrouped[K, A any] struct {
	cogrouped Cogrouped[K, A]
	windows   Windows
}

// Windowed splits the groups by window. Each stream has a stream time of its own
// by which its records are late, so one may be late for one stream and not for
// another. Windows close by the highest of them, and are kept for twice as long as
// those of a single stream.
func (c Cogrouped[K, A]) Windowed(w Windows) WCogrouped[K, A] { return WCogrouped[K, A]{c, w} }

// Aggregate keeps one aggregate per key and window, starting with what init
// returns. A nil aggregate deletes the row.
func (c WCogrouped[K, A]) Aggregate(init func() A, opts ...Opt) WTable[K, A] {
	first := c.cogrouped.parts[0]
	t, o := keepWindows[K, A](first.app, first.node, first.key, "windowed-cogroup", c.windows, 2, opts)
	c.cogrouped.each(t.node, func(part string, p copart[K, A]) { p.windowed(t, part, c.windows, init, o) })
	return t
}

// SCogrouped are several grouped streams about to be aggregated into one table by
// key and session.
type SCogrouped[K, A any] struct {
	cogrouped Cogrouped[K, A]
	windows   sessionWindows
}

// Sessions splits the groups by session, which records of all streams make
// together; see Grouped.Sessions, and Windowed for what is late.
func (c Cogrouped[K, A]) Sessions(gap time.Duration, opts ...Opt) SCogrouped[K, A] {
	return SCogrouped[K, A]{c, sessionsOf(gap, opts)}
}

// Aggregate keeps one aggregate per key and session. It starts with what init
// returns; see MergeFold for merge.
func (c SCogrouped[K, A]) Aggregate(init func() A, merge func(a, b A) A, opts ...Opt) WTable[K, A] {
	first := c.cogrouped.parts[0]
	t, o := keepSessions[K, A](first.app, first.node, first.key, "session-cogroup", c.windows, opts)
	c.cogrouped.each(t.node, func(part string, p copart[K, A]) { p.sessions(t, part, c.windows, init, merge, o) })
	return t
}
