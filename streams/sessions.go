package streams

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace/millrace/streams/internal/operator"
	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/streams/window"
)

// SGrouped is a grouped stream about to be aggregated by key and session.
type SGrouped[K, V any] struct {
	grouped Grouped[K, V]
	windows sessionWindows
}

// sessionWindows describes sessions.
type sessionWindows struct {
	spec window.Sessions
	err  error
}

// Sessions splits the groups by session: records of a key that are no further
// apart than the gap. A record may extend a session or merge two; then a deletion
// goes out for each session that is replaced, oldest first, and the new session
// after them, also when its bounds stay the same. With OnClose there are only
// final results. A record is late, and dropped, when the session that it would be
// in ended longer than gap plus grace before stream time.
//
// As a Window, a session starts with its first record and ends 1 ms after its
// last. The option is Grace.
func (g Grouped[K, V]) Sessions(gap time.Duration, opts ...Opt) SGrouped[K, V] {
	return SGrouped[K, V]{g, sessionsOf(gap, opts)}
}

func sessionsOf(gap time.Duration, opts []Opt) sessionWindows {
	o, err := collect(opts, forWindows)
	spec := window.SessionsOf(gap, o.grace)
	if err == nil && (gap%time.Millisecond != 0 || o.grace%time.Millisecond != 0) {
		err = fmt.Errorf("session gap %v and grace %v must be whole milliseconds, as timestamps are", gap, o.grace)
	}
	if err == nil {
		err = spec.Validate()
	}
	return sessionWindows{spec, err}
}

// MergeAgg is an aggregation whose results can be merged. Make one with
// MergeFold.
type MergeAgg[V, A any] struct {
	Init  func() A
	Add   func(A, V) A
	Merge func(a, b A) A
}

// MergeFold is Fold with a function that merges two aggregates. A session starts
// with what init returns, then each session that the record touches is merged
// into it, the oldest first, then the record is added: so merge must take what
// init returns for nothing. The first aggregate given to merge may be changed in
// place and returned.
func MergeFold[V, A any](init func() A, add func(A, V) A, merge func(a, b A) A) MergeAgg[V, A] {
	return MergeAgg[V, A]{init, add, merge}
}

// Count counts the records of each session. Null keys are not counted, null
// values are.
func (g SGrouped[K, V]) Count(opts ...Opt) WTable[K, int64] {
	return sessions(g, "count", counter[K, V](), pureMerge(func(a, b int64) int64 { return a + b }), true, opts)
}

// Reduce keeps one value of each session; f must be the same whichever way
// values are grouped, as it also merges sessions.
func (g SGrouped[K, V]) Reduce(f func(V, V) V, opts ...Opt) WTable[K, V] {
	merge := func() operator.MergeFunc[V] {
		return func(_ context.Context, a, b V, fresh bool) (V, error) {
			if fresh {
				return b, nil
			}
			return f(a, b), nil
		}
	}
	return sessions(g, "reduce", reducer[K](f), merge, !operator.NilOf[V]().Strict(true), opts)
}

// Aggregate keeps an aggregate of the values of each session. Null keys are
// dropped; null values too, but for types that have a nil: those are added.
func (g SGrouped[K, V]) Aggregate[A any](agg MergeAgg[V, A], opts ...Opt) WTable[K, A] {
	add := adder[K](Agg[V, A]{agg.Init, agg.Add})
	return sessions(g, "aggregate", add, pureMerge(agg.Merge), !operator.NilOf[V]().Strict(true), opts)
}

// TryAggregate is Aggregate with functions that may fail; add sees the whole
// record. When one fails, the sessions stay as they were.
func (g SGrouped[K, V]) TryAggregate[A any](init func() A, add func(context.Context, *Record[K, V], A) (A, error), merge func(ctx context.Context, a, b A) (A, error), opts ...Opt) WTable[K, A] {
	try := func() operator.MergeFunc[A] {
		return func(ctx context.Context, a, b A, _ bool) (A, error) { return merge(ctx, a, b) }
	}
	return sessions(g, "aggregate", tryAdder(init, add), try, !operator.NilOf[V]().Strict(true), opts)
}

func pureMerge[A any](merge func(a, b A) A) func() operator.MergeFunc[A] {
	return func() operator.MergeFunc[A] {
		return func(_ context.Context, a, b A, _ bool) (A, error) { return merge(a, b), nil }
	}
}

func sessions[K, V, A any](g SGrouped[K, V], kind string, add operator.Adder[K, V, A], merge func() operator.MergeFunc[A], takesNull bool, opts []Opt) WTable[K, A] {
	s := g.grouped.input()
	t, o := keepSessions[K, A](s.app, s.node, s.key, "session-"+kind, g.windows, opts)
	g.windows.attach(s.place, t, "", add, merge, takesNull, o)
	return t
}

// keepSessions adds the node that keeps the sessions of one stream or several.
func keepSessions[K, A any](a *App, parent *topology.Node, key *operator.Codec[K], kind string, w sessionWindows, opts []Opt) (WTable[K, A], options) {
	o := a.collect(kind+" behind "+parent.Name, opts, forWindowed)
	n := a.graph.Add(parent, kind, o.as)
	if w.err != nil {
		a.graph.Fail(n, "%w", w.err)
	}
	// Two gaps, as a record that is just not late reaches back by one.
	least := time.Duration(2*w.spec.GapMs+w.spec.GraceMs) * time.Millisecond
	if o.retention != 0 && o.retention < least {
		a.graph.Fail(n, "retention is %v, at least two gaps plus grace (%v) is needed", o.retention, least)
	}
	o.retention = max(o.retention, least)
	n.Detail = pair[K, A]() + " " + w.spec.String()
	n.Shape = "sessions " + pair[K, A]()
	n.Store = a.keep(n, n.Name, o)
	n.Store.RetentionMs = o.retention.Milliseconds()
	t := openWindows[K, A](a, n, o, key)
	t.sessions, t.windows = true, window.Spec{SizeMs: w.spec.GapMs, GraceMs: w.spec.GraceMs}
	showWindows(a, n.Name, t.View)
	a.graph.Copartition(parent, parent)
	t.cache(o)
	return t, o
}

// attach adds the node of one stream; part tells those apart that are aggregated
// together.
func (w sessionWindows) attach[K, V, A any](s place[K, V], t WTable[K, A], part string, add operator.Adder[K, V, A], merge func() operator.MergeFunc[A], takesNull bool, o options) {
	op := &operator.SessionAggregate[K, V, A]{Node: t.node.Name, Part: part, Store: t.node.Name, Handler: t.app.handler(o), LateTo: o.lateTo,
		Spec: w.spec, RetentionMs: o.retention.Milliseconds(),
		Key: t.key, Value: t.val, Adder: add, Merge: merge, TakesNull: takesNull, Demand: t.demand, Updates: t.updates, Closed: t.closed}
	s.out.Attach(t.node.Name, op.Build)
}
