package streams

import (
	"context"

	"github.com/millrace/millrace/streams/internal/operator"
	"github.com/millrace/millrace/streams/window"
)

// Filter is the table of the rows whose value passes. A row that passes no more
// goes out as a deletion; a row that never passed does not go out. The new table
// keeps nothing of its own: a look-up asks this one and filters again.
func (t Table[K, V]) Filter(keep func(V) bool, opts ...Opt) Table[K, V] {
	return filterTable(t, func() operator.Predicate[K, V] { return operator.FilterFunc[K](keep) }, opts)
}

// TryFilter is Filter with a function that sees key and value and may fail. The
// record has headers when it is an update, none when a row is looked up, and the
// update's time for both old and new value.
func (t Table[K, V]) TryFilter(keep func(context.Context, *Record[K, V]) (bool, error), opts ...Opt) Table[K, V] {
	return filterTable(t, tryPredicate(keep), opts)
}

func filterTable[K, V any](t Table[K, V], f func() operator.Predicate[K, V], opts []Opt) Table[K, V] {
	o := t.app.collect("filter behind "+t.node.Name, opts, forJoin)
	next := t
	next.place = behind[K, V](t.app, t.node, "filter", o.as)
	t.raise()
	op := &operator.FilterTable[K, V]{Node: next.node.Name, Handler: t.app.handler(o), Key: t.key, New: f, From: t.view, Out: next.out}
	next.view = op.View
	t.out.Attach(next.node.Name, op.Build)
	return next
}

// MapValues is the table with values replaced; a deletion is passed on without a
// call, a nil result deletes. The new table keeps nothing of its own: a look-up
// asks this one and calls f.
func (t Table[K, V]) MapValues[VR any](f func(V) VR, opts ...Opt) Table[K, VR] {
	return mapTable(t, func() operator.RowFunc[K, V, VR] {
		return func(_ context.Context, r *operator.Record[K, V]) (VR, error) { return f(r.Value), nil }
	}, opts)
}

// TryMapValues is MapValues with a function that sees key and value and may
// fail; see TryFilter for time and headers.
func (t Table[K, V]) TryMapValues[VR any](f func(context.Context, *Record[K, V]) (VR, error), opts ...Opt) Table[K, VR] {
	return mapTable(t, func() operator.RowFunc[K, V, VR] {
		var in Record[K, V]
		return func(ctx context.Context, r *operator.Record[K, V]) (VR, error) {
			in.show(r)
			return f(ctx, &in)
		}
	}, opts)
}

func mapTable[K, V, VR any](t Table[K, V], f func() operator.RowFunc[K, V, VR], opts []Opt) Table[K, VR] {
	o := t.app.collect("map-values behind "+t.node.Name, opts, forJoin)
	next := Table[K, VR]{place: behind[K, VR](t.app, t.node, "map-values", o.as), key: t.key, stores: t.stores, demand: t.demand, hold: t.hold, history: t.history}
	op := &operator.MapTable[K, V, VR]{Node: next.node.Name, Handler: t.app.handler(o), Key: t.key, New: f, From: t.view, Out: next.out}
	next.view = op.View
	t.out.Attach(next.node.Name, op.Build)
	return next
}

// Filter is the windowed table of the results whose value passes; see
// Table.Filter. Behind OnClose it leaves out final results.
func (t WTable[K, V]) Filter(keep func(V) bool, opts ...Opt) WTable[K, V] {
	return filterWindowed(t, func() operator.Predicate[window.Windowed[K], V] {
		return operator.FilterFunc[window.Windowed[K]](keep)
	}, opts)
}

// TryFilter is Filter with a function that sees window, key and value and may
// fail. Time and headers of the record are those of the result.
func (t WTable[K, V]) TryFilter(keep func(context.Context, Window, *Record[K, V]) (bool, error), opts ...Opt) WTable[K, V] {
	return filterWindowed(t, func() operator.Predicate[window.Windowed[K], V] {
		var in Record[K, V]
		nils := operator.NilOf[V]()
		return func(ctx context.Context, r *operator.Record[window.Windowed[K], V]) (bool, error) {
			if nils.Strict(r.NullValue) {
				return false, nil
			}
			in.showWindowed(r)
			return keep(ctx, r.Key.Window, &in)
		}
	}, opts)
}

func filterWindowed[K, V any](t WTable[K, V], f func() operator.Predicate[window.Windowed[K], V], opts []Opt) WTable[K, V] {
	o := t.app.collect("filter behind "+t.node.Name, opts, forJoin)
	next := t
	n := t.app.graph.Add(t.node, "filter", o.as)
	n.Detail = t.node.Detail
	next.place = place[window.Windowed[K], V]{t.app, n, new(operator.Outlet[window.Windowed[K], V])}
	if t.final {
		op := &operator.Filter[window.Windowed[K], V]{Node: n.Name, Handler: t.app.handler(o), New: f, Out: next.out}
		t.out.Attach(n.Name, op.Build)
		return next
	}
	t.demand.Raise()
	op := &operator.FilterTable[window.Windowed[K], V]{Node: n.Name, Handler: t.app.handler(o), New: f, Out: next.out}
	t.out.Attach(n.Name, op.Build)
	next.filtered = true
	return next
}
