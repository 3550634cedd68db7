package streams

import (
	"fmt"
	"time"

	"github.com/millrace/millrace/streams/internal/operator"
	"github.com/millrace/millrace/streams/window"
)

// ErrBufferFull is in the error of an application that failed as updates were to be
// held back and there was no room for them; see FailWhenFull.
var ErrBufferFull = operator.ErrBufferFull

// MaxRecords limits for how many keys updates are held back.
func MaxRecords(n int) Opt { return Opt{"MaxRecords", func(o *options) { o.maxRecords = n }} }

// MaxBytes limits how many bytes, of keys and values and what belongs to them, are
// held back.
func MaxBytes(n int) Opt { return Opt{"MaxBytes", func(o *options) { o.maxBytes = n }} }

// FailWhenFull fails the application when more would have to be held back than is
// allowed, instead of letting the earliest updates go before their time.
func FailWhenFull() Opt { return Opt{"FailWhenFull", func(o *options) { o.failFull = true }} }

// Suppress holds updates back: of each key only the latest goes out, when stream
// time is wait past the time of the first that was held back. Keys go in order of
// that time and their bytes. Stream time is the highest time of an update that has
// come here. With MaxRecords or MaxBytes, a buffer that is full lets the earliest go
// at once, which may be the one that has just come, or fails with FailWhenFull.
//
// The updates are in a store: none is lost in a crash.
func (t Table[K, V]) Suppress(wait time.Duration, opts ...Opt) Table[K, V] {
	o := t.app.collect("suppress behind "+t.node.Name, opts, forSuppress)
	next := t
	next.place = behind[K, V](t.app, t.node, "suppress", o.as)
	n := next.node
	if t.history > 0 {
		t.app.graph.Fail(n, "updates of a versioned table cannot be held back: its rows are those of all times")
	}
	op := held(t.place, next.place, t.key, t.val, "rows "+pair[K, V](), wait, o)
	op.From = t.view
	next.val = op.Value
	next.view, next.stores = op.View, append(append([]string{}, t.stores...), n.Name)
	next.hold = t.raise // a look-up needs the row before the one that is held back
	return next
}

// Suppress holds updates back; see Table.Suppress.
func (t WTable[K, V]) Suppress(wait time.Duration, opts ...Opt) WTable[K, V] {
	return t.suppress("suppress", wait, opts)
}

// SuppressUntilClose holds updates back until the window closes and lets the last
// one go, in order of window end and then key; deletions do not go out. It is for
// what OnClose cannot do: behind Filter, and with a buffer that is limited, where
// only FailWhenFull keeps the results final. A session goes out when stream time
// reaches its last record + gap + grace, 1 ms before OnClose, as in Kafka Streams.
func (t WTable[K, V]) SuppressUntilClose(opts ...Opt) WTable[K, V] {
	next := t.suppress("suppress-until-close", -1, opts)
	next.final = true
	if t.windows.Unlimited {
		t.app.graph.Fail(next.node, "an unlimited window never closes")
	}
	return next
}

func (t WTable[K, V]) suppress(kind string, wait time.Duration, opts []Opt) WTable[K, V] {
	o := t.app.collect(kind+" behind "+t.node.Name, opts, forSuppress)
	next := t
	n := t.app.graph.Add(t.node, kind, o.as)
	n.Detail = t.node.Detail
	next.place = place[window.Windowed[K], V]{t.app, n, new(operator.Outlet[window.Windowed[K], V])}
	next.filtered = true
	op := held(t.place, next.place, t.windowedKey(), t.val, "rows "+pair[K, V]()+" of windows", max(wait, 0), o)
	next.val = op.Value
	if wait < 0 {
		op.Final = true
		// A session's last millisecond belongs to it, and Kafka lets it go with it.
		after := t.windows.GraceMs
		if t.sessions {
			after += t.windows.SizeMs - 1
		}
		op.Due = func(k *window.Windowed[K]) int64 { return k.Window.EndMs() + after }
	}
	return next
}

// held adds the node that holds updates back between two places.
func held[K, V any](from, to place[K, V], key *operator.Codec[K], val *operator.Codec[V], shape string, wait time.Duration, o options) *operator.Suppress[K, V] {
	a, n := to.app, to.node
	if wait < 0 || wait%time.Millisecond != 0 || o.maxRecords < 0 || o.maxBytes < 0 {
		a.graph.Fail(n, "wait %v must be whole milliseconds, and no limit (%d records, %d bytes) negative", wait, o.maxRecords, o.maxBytes)
	}
	if o.failFull && o.maxRecords == 0 && o.maxBytes == 0 {
		a.graph.Fail(n, "FailWhenFull without MaxRecords or MaxBytes")
	}
	n.Detail += fmt.Sprintf(" %v", wait)
	n.Shape = "held-back " + shape
	n.Store = a.keep(n, n.Name, o)
	op := &operator.Suppress[K, V]{Node: n.Name, Store: n.Name, Handler: a.handler(o), Key: key, Value: codec(a, n, "value", nil, val),
		WaitMs: wait.Milliseconds(), MaxRecords: o.maxRecords, MaxBytes: o.maxBytes, Fail: o.failFull, Out: to.out}
	from.out.Attach(n.Name, op.Build)
	return op
}
