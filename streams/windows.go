package streams

import (
	"context"
	"time"

	"github.com/millrace/millrace/streams/internal/operator"
	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/streams/window"
)

// WGrouped is a grouped stream about to be aggregated by key and window.
type WGrouped[K, V any] struct {
	grouped Grouped[K, V]
	windows Windows
}

// Windowed splits the groups by window.
func (g Grouped[K, V]) Windowed(w Windows) WGrouped[K, V] { return WGrouped[K, V]{g, w} }

// Count counts the records of each key and window. Null keys are not counted,
// null values are.
func (g WGrouped[K, V]) Count(opts ...Opt) WTable[K, int64] {
	return windowed(g, "count", counter[K, V](), true, opts)
}

// Reduce keeps one value of each key and window: the first as it is, then what f
// makes of it and the next. Null keys are dropped; null values too, but for types
// that have a nil: f gets those, and as a first value they are no row.
func (g WGrouped[K, V]) Reduce(f func(V, V) V, opts ...Opt) WTable[K, V] {
	return windowed(g, "reduce", reducer[K](f), !operator.NilOf[V]().Strict(true), opts)
}

// TryReduce is Reduce with a function that sees the whole new record and may
// fail. When it fails, the row stays as it was.
func (g WGrouped[K, V]) TryReduce(f func(ctx context.Context, reduced V, r *Record[K, V]) (V, error), opts ...Opt) WTable[K, V] {
	return windowed(g, "reduce", tryReducer(f), !operator.NilOf[V]().Strict(true), opts)
}

// Aggregate keeps an aggregate of the values of each key and window. Null keys
// are dropped; null values too, but for types that have a nil: those are added.
func (g WGrouped[K, V]) Aggregate[A any](agg Agg[V, A], opts ...Opt) WTable[K, A] {
	return windowed(g, "aggregate", adder[K](agg), !operator.NilOf[V]().Strict(true), opts)
}

// TryAggregate is Aggregate with a function that sees the whole record and may
// fail. When it fails, the row stays as it was.
func (g WGrouped[K, V]) TryAggregate[A any](init func() A, add func(context.Context, *Record[K, V], A) (A, error), opts ...Opt) WTable[K, A] {
	return windowed(g, "aggregate", tryAdder(init, add), !operator.NilOf[V]().Strict(true), opts)
}

// WTable is the latest value of each key and window.
type WTable[K, V any] struct {
	place[window.Windowed[K], V]
	closed *operator.Outlet[window.Windowed[K], V] // end of the final results; out is it too after OnClose
	// updates is where the node sends updates to: out, unless a cache is between.
	updates *operator.Outlet[window.Windowed[K], V]
	key     *operator.Codec[K]
	val     *operator.Codec[V]
	demand  *operator.Demand // for the old values of rows
	// windows say what a key on the wire means; sessions carry both their bounds.
	windows  window.Spec
	sessions bool
	// final: the results are final ones. filtered: some are left out already.
	final, filtered bool
}

func windowed[K, V, A any](g WGrouped[K, V], kind string, add operator.Adder[K, V, A], takesNull bool, opts []Opt) WTable[K, A] {
	s := g.grouped.input()
	t, o := keepWindows[K, A](s.app, s.node, s.key, "windowed-"+kind, g.windows, 1, opts)
	g.windows.attach(s.place, t, "", add, takesNull, o)
	return t
}

// keepWindows adds the node that keeps the windows of one stream or several, for
// times as long as its default demands.
func keepWindows[K, A any](a *App, parent *topology.Node, key *operator.Codec[K], kind string, w Windows, times int64, opts []Opt) (WTable[K, A], options) {
	o := a.collect(kind+" behind "+parent.Name, opts, forWindowed)
	n := a.graph.Add(parent, kind, o.as)
	if w.err != nil {
		a.graph.Fail(n, "%w", w.err)
	}
	least := w.retention()
	switch {
	case o.retention != 0 && w.spec.Unlimited:
		a.graph.Fail(n, "an unlimited window is kept for ever, Retention has no effect")
	case o.retention != 0 && o.retention < least && w.sliding:
		a.graph.Fail(n, "retention is %v, at least twice the window plus grace (%v) is needed", o.retention, least)
	case o.retention != 0 && o.retention < least:
		a.graph.Fail(n, "retention is %v, at least size plus grace (%v) is needed", o.retention, least)
	}
	o.retention = max(o.retention, time.Duration(times)*least)
	n.Detail = pair[K, A]() + " " + w.String()
	n.Shape = w.shape(pair[K, A]())
	n.Store = a.keep(n, n.Name, o)
	n.Store.Windowed, n.Store.RetentionMs = !w.sliding, o.retention.Milliseconds()
	a.graph.Copartition(parent, parent)
	t := openWindows[K, A](a, n, o, key)
	t.windows = w.spec
	showWindows(a, n.Name, t.View)
	t.cache(o)
	return t, o
}

// attach adds the node of one stream; part tells those apart that are aggregated
// together.
func (w Windows) attach[K, V, A any](s place[K, V], t WTable[K, A], part string, add operator.Adder[K, V, A], takesNull bool, o options) {
	if w.sliding {
		op := &operator.SlidingAggregate[K, V, A]{Node: t.node.Name, Part: part, Store: t.node.Name, Handler: t.app.handler(o), LateTo: o.lateTo,
			ReachMs: w.spec.SizeMs - 1, GraceMs: w.spec.GraceMs, RetentionMs: o.retention.Milliseconds(),
			Key: t.key, Value: t.val, Adder: add, Demand: t.demand, Updates: t.updates, Closed: t.closed}
		s.out.Attach(t.node.Name, op.Build)
		return
	}
	op := &operator.WindowedAggregate[K, V, A]{Node: t.node.Name, Part: part, Store: t.node.Name, Handler: t.app.handler(o), LateTo: o.lateTo,
		Spec: w.spec, RetentionMs: o.retention.Milliseconds(),
		Key: t.key, Value: t.val, Adder: add, TakesNull: takesNull, Demand: t.demand, Updates: t.updates, Closed: t.closed}
	s.out.Attach(t.node.Name, op.Build)
}

// openWindows makes the table of a node that keeps windows.
func openWindows[K, A any](a *App, n *topology.Node, o options, key *operator.Codec[K]) WTable[K, A] {
	t := WTable[K, A]{closed: new(operator.Outlet[window.Windowed[K], A]), demand: new(operator.Demand)}
	t.place = place[window.Windowed[K], A]{a, n, new(operator.Outlet[window.Windowed[K], A])}
	t.updates = t.out
	n.Topic = o.lateTo
	t.key, t.val = codec(a, n, "key", o.key, key), codec[A](a, n, "value", o.val, nil)
	readable(a, n, "key", t.key)
	readable(a, n, "value", t.val)
	return t
}

// cache puts a cache between the node and what follows updates of it.
func (t *WTable[K, V]) cache(o options) {
	if o.cached > 0 {
		t.demand.Raise()
		t.updates = cache(t.app, t.node, t.windowedKey(), o, t.out)
	}
}

// OnClose gives only final results: one for each key and window, when the
// window closes, in order of window end and then key. Stream time is what
// closes windows; in a partition without new records nothing closes.
func (t WTable[K, V]) OnClose(opts ...Opt) WTable[K, V] {
	o := t.app.collect("on-close behind "+t.node.Name, opts, forClose)
	if t.final {
		return t
	}
	n := t.app.graph.Add(t.node, "on-close", o.as)
	n.Detail = t.node.Detail
	if t.windows.Unlimited {
		t.app.graph.Fail(n, "an unlimited window never closes")
	}
	if t.filtered {
		t.app.graph.Fail(n, "OnClose belongs in front of Filter: it is the final results that are to be filtered")
	}
	final := t
	final.final = true
	final.place = place[window.Windowed[K], V]{t.app, n, t.closed}
	return final
}

// Map makes a record of each result. A deleted result of a type without nil is
// left out.
func (t WTable[K, V]) Map[KR, VR any](f func(Window, K, V) (KR, VR), opts ...Opt) Stream[KR, VR] {
	pure := func(k window.Windowed[K], v V) (KR, VR) { return f(k.Window, k.Key, v) }
	next := transform(t.place, "map", func() operator.Func[window.Windowed[K], V, KR, VR] { return operator.MapFunc(pure) }, opts)
	return Stream[KR, VR]{place: next, rekeyed: true}
}

// TryMap is Map with a function that sees the whole record and may fail. Time
// and headers of the record are those of the result.
func (t WTable[K, V]) TryMap[KR, VR any](f func(context.Context, Window, *Record[K, V]) (Record[KR, VR], error), opts ...Opt) Stream[KR, VR] {
	next := transform(t.place, "map", func() operator.Func[window.Windowed[K], V, KR, VR] {
		var in Record[K, V]
		null, key, val := operator.NilOf[V](), operator.NilOf[KR](), operator.NilOf[VR]()
		return func(ctx context.Context, r *operator.Record[window.Windowed[K], V], to *operator.Record[KR, VR]) (bool, error) {
			if null.Strict(r.NullValue) {
				return false, nil
			}
			in.showWindowed(r)
			out, err := f(ctx, r.Key.Window, &in)
			out.store(to, key, val)
			return true, err
		}
	}, opts)
	return Stream[KR, VR]{place: next, rekeyed: true}
}

// ToStream is the stream of the table's results, a deletion as a null value.
func (t WTable[K, V]) ToStream(opts ...Opt) WStream[K, V] {
	next := transform(t.place, "to-stream", operator.PassFunc[window.Windowed[K], V], opts)
	return WStream[K, V]{next, t}
}

// WStream is a stream of results with their windows.
type WStream[K, V any] struct {
	place[window.Windowed[K], V]
	table WTable[K, V]
}

// Rekey makes an ordinary stream with a key made of window and key; with
// WindowKey, a stream of Windowed keys.
func (t WStream[K, V]) Rekey[KR any](f func(Window, K) KR, opts ...Opt) Stream[KR, V] {
	pure := func(k window.Windowed[K]) KR { return f(k.Window, k.Key) }
	next := transform(t.place, "rekey", func() operator.Func[window.Windowed[K], V, KR, V] {
		return operator.RekeyFunc[window.Windowed[K], V](pure)
	}, opts)
	return Stream[KR, V]{place: next, val: t.table.val, rekeyed: true}
}

// To writes the results to a topic, keys as Kafka writes those of windows: the
// bytes of the key, then the window's start, 8 bytes big endian; for a session,
// the times of its last and of its first record.
func (t WStream[K, V]) To(topic string, opts ...Opt) {
	to(t.place, topic, t.table.windowedKey(), t.table.val, opts)
}

// windowedKey is the codec of key and window together.
func (t WTable[K, V]) windowedKey() *operator.Codec[window.Windowed[K]] {
	key := new(operator.Codec[window.Windowed[K]])
	t.app.resolve = append(t.app.resolve, func() error {
		inner := t.key.Serde
		switch {
		case inner == nil: // its own error says it
		case t.sessions:
			*key = operator.NewCodec(window.SessionSerde(inner))
		default:
			*key = operator.NewCodec(window.SpecSerde(inner, t.windows))
		}
		return nil
	})
	return key
}
