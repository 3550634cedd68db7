package streams

import (
	"time"

	"github.com/millrace/millrace/streams/internal/operator"
	"github.com/millrace/millrace/streams/internal/topology"
)

// Table is the latest value of each key: a stream of updates kept in a store. A
// null value deletes the key's row.
type Table[K, V any] struct {
	place[K, V]
	key    *operator.Codec[K]
	val    *operator.Codec[V]
	view   operator.View[V] // of its rows, for look-ups
	stores []string         // that the view reads
	demand *operator.Demand // for the old values of rows
	// history is how far back rows are known as they were, 0 if only as they are.
	history time.Duration
	hold    func() // makes a table keep its rows that does so only on demand; else nil
}

// held says that rows of the table, or their old values, are needed.
func (t Table[K, V]) held() {
	if t.hold != nil {
		t.hold()
	}
}

// raise says that old values of rows are needed.
func (t Table[K, V]) raise() {
	t.held()
	t.demand.Raise()
}

// Table reads a topic as a table. Its store needs no changelog of its own: the
// topic is it, and should be compacted, not cut by age. Records with a null key
// are dropped and counted. Rows are overwritten in the order of arrival,
// whatever their timestamps say.
//
// Reading the same topic again, with the same types and without options, is the
// same table.
func (a *App) Table[K, V any](topic string, opts ...Opt) Table[K, V] {
	type id struct{ topic, types string }
	same := id{topic, pair[K, V]()}
	if t, ok := a.sources[same].(Table[K, V]); ok && len(opts) == 0 {
		return t
	}
	o := a.collect("table "+topic, opts, forTable)
	n := a.graph.Source("table", topic, o.as)
	n.Detail = pair[K, V]()
	t := Table[K, V]{place: place[K, V]{a, n, new(operator.Outlet[K, V])}, stores: []string{n.Name}, demand: new(operator.Demand)}
	t.key, t.val = codec[K](a, n, "key", o.key, nil), codec[V](a, n, "value", o.val, nil)
	readable(a, n, "key", t.key)
	readable(a, n, "value", t.val)
	if a.versioned(n, o, &t) {
		return t
	}
	t.view = operator.StoreView(n.Name, t.val)
	src := &operator.TableSource[K, V]{Node: n.Name, Topic: topic, Store: n.Name, Handler: a.handler(o), Key: t.key, Value: t.val, Demand: t.demand, Out: t.out}
	n.Root = &operator.Root{Topic: topic, Build: src.Build}
	n.Store = a.keep(n, n.Name, o)
	n.Store.Changelog, n.Store.FromSource = topic, src.Restorer()
	if o.unlogged || o.changelog != nil {
		a.graph.Fail(n, "the topic %s is the changelog of this table, Logged and ChangelogConfig have no effect", topic)
	}
	n.Shape = "rows " + pair[K, V]()
	showTable(a, n.Name, t.View)
	if _, ok := a.sources[same]; !ok {
		a.sources[same] = t
	}
	return t
}

// Versioned makes a table remember how its rows were, for that long before the
// highest time of a row. A stream that joins it meets the row of its own time
// (and, with Grace, waits for it); joins of tables and groups leave updates out that
// are older than the newest of their key. Rows older than the history are dropped
// and counted as late. Its store has a changelog of its own, as a compacted topic
// forgets what a row was.
func Versioned(history time.Duration) Opt {
	return Opt{"Versioned", func(o *options) { o.history = history }}
}

// versioned makes a table a versioned one, if the options say so.
func (a *App) versioned[K, V any](n *topology.Node, o options, t *Table[K, V]) bool {
	if o.history == 0 {
		return false
	}
	if o.history < time.Millisecond {
		a.graph.Fail(n, "history is %v, at least 1 ms is needed", o.history)
	}
	t.history = o.history
	n.Shape = "versions " + pair[K, V]()
	n.Store = a.keep(n, n.Name, o)
	src := &operator.VersionedSource[K, V]{Node: n.Name, Topic: n.Topic, Store: n.Name, HistoryMs: o.history.Milliseconds(),
		Handler: a.handler(o), Key: t.key, Value: t.val, Demand: t.demand, Out: t.out}
	t.view = src.View
	n.Root = &operator.Root{Topic: n.Topic, Build: src.Build}
	return true
}

// ToStream is the stream of the table's updates, a deletion as a null value.
func (t Table[K, V]) ToStream(opts ...Opt) Stream[K, V] {
	next := transform(t.place, "to-stream", operator.PassFunc[K, V], opts)
	return Stream[K, V]{place: next, key: t.key, val: t.val}
}

// To writes the table's updates to a topic, a deletion as a null value.
func (t Table[K, V]) To(topic string, opts ...Opt) { to(t.place, topic, t.key, t.val, opts) }
