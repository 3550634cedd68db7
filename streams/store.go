package streams

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/millrace/millrace/streams/internal/operator"
	"github.com/millrace/millrace/streams/internal/topology"
)

// ErrNotUsed is what a panic says when a function asks for a store that its
// operator was not given with Use. It fails the record like any other panic.
var ErrNotUsed = errors.New("the operator does not use this store: name it with Use")

// declaration is a store, or timers, that user code reaches by name.
type declaration struct {
	app   *App
	name  string
	shape string
	kept  options // how it is kept
	open  func(*operator.Builder, *operator.Site) (any, error)
	node  *topology.Node // once somebody uses it
	// codecs are those of its keys and values, *operator.Codec of either type.
	codecs [2]any
}

// declared implements StoreRef; what it returns is known in this file only.
func (d *declaration) declared() any { return d }

// declare notes a store and its codecs.
func declare[K, V any](a *App, kind, name, allowed string, opts []Opt) (*declaration, options, *operator.Codec[K], *operator.Codec[V]) {
	o := a.collect(kind+" "+name, opts, allowed)
	d := &declaration{app: a, name: name, shape: kind + " " + pair[K, V](), kept: o}
	// Where mistakes in its serdes are reported.
	at := &topology.Node{Name: name, Store: &topology.Store{Changelog: topology.InternalName(a.id, name, topology.Changelog)}}
	key, val := codec[K](a, at, "key", o.key, nil), codec[V](a, at, "value", o.val, nil)
	readable(a, at, "key", key)
	readable(a, at, "value", val)
	d.codecs = [2]any{key, val}
	a.resolve = append(a.resolve, func() error {
		if d.node == nil {
			return fmt.Errorf("store %s is declared, but no operator uses it: name it with Use", name)
		}
		return nil
	})
	return d, o, key, val
}

// use makes the stores that an operator names part of the topology.
func (a *App) use(n *topology.Node, o options) []operator.StoreUse {
	var uses []operator.StoreUse
	for _, ref := range o.uses {
		d := ref.declared().(*declaration)
		if d.app != a {
			a.graph.Fail(n, "the store %s belongs to another application", d.name)
			continue
		}
		if d.node == nil {
			d.node = a.graph.Store(d.name)
			d.node.Shape = d.shape
			d.node.Store = a.keep(d.node, d.name, d.kept)
		}
		n.Reads = append(n.Reads, d.name)
		uses = append(uses, operator.StoreUse{Name: d.name, Open: d.open})
	}
	return uses
}

// handle finds what a context gives of a store.
func handle[T any](ctx context.Context, d *declaration) T {
	if scope, ok := operator.ScopeOf(ctx); ok {
		if h, ok := scope.Store(d.name).(T); ok {
			return h
		}
	}
	panic(fmt.Errorf("store %s: %w", d.name, ErrNotUsed))
}

// KVRef is a declared store of rows by key.
type KVRef[K, V any] struct{ *declaration }

// Store declares a store for functions and processors, which get it by Use. Each
// task has its part, of the keys that it processes: a function must not look for
// others there. The store is on disk and has a changelog; what is written counts
// when the record's transaction commits. The options are KeySerde, ValSerde,
// InMemory and Retention: with it, a row is gone when stream time is that far past
// its timestamp.
func (a *App) Store[K, V any](name string, opts ...Opt) KVRef[K, V] {
	d, o, key, val := declare[K, V](a, "rows", name, forStore, opts)
	d.open = operator.OpenKV(name, key, val, o.retention)
	ref := KVRef[K, V]{d}
	showTable(a, name, ref.View)
	return ref
}

// In is the store as the function with this context has it.
func (r KVRef[K, V]) In(ctx context.Context) KV[K, V] {
	return handle[*operator.KVStore[K, V]](ctx, r.declaration)
}

// KV is a store of rows by key. It is valid during the call that its context was
// given to. An error from it means that the store cannot be read or that a key or
// value does not encode. Range and All end early when the store cannot be read, and
// the task fails after the function.
type KV[K, V any] interface {
	Get(K) (v V, ok bool, err error)
	// GetWithTime is Get with the row's timestamp: that of the record, or timer,
	// which wrote it.
	GetWithTime(K) (v V, at time.Time, ok bool, err error)
	// Put sets a row; a nil value deletes it.
	Put(K, V) error
	PutWithTime(K, V, time.Time) error
	Delete(K) error
	// PutIfAbsent sets a row unless there is one, which it then returns.
	PutIfAbsent(K, V) (before V, was bool, err error)
	// Range yields rows with from <= key < to in order of the keys' bytes; Prefix,
	// those whose key's bytes begin with some; All, all of them. Backward and
	// AllBackward are Range and All in the opposite order. Rows may be written
	// meanwhile.
	Range(from, to K) iter.Seq2[K, V]
	Backward(from, to K) iter.Seq2[K, V]
	Prefix(prefix []byte) iter.Seq2[K, V]
	All() iter.Seq2[K, V]
	AllBackward() iter.Seq2[K, V]
}

// VersionedRef is a declared versioned store.
type VersionedRef[K, V any] struct{ *declaration }

// VersionedStore declares a store that knows what the value of a key was as of any
// time within its history, which ends at the highest time of a version put into the
// store. See Store for the rest.
func (a *App) VersionedStore[K, V any](name string, history time.Duration, opts ...Opt) VersionedRef[K, V] {
	d, _, key, val := declare[K, V](a, "versions", name, forVersioned, opts)
	if history < time.Millisecond {
		a.errs = append(a.errs, fmt.Errorf("versioned store %s: history is %v, at least 1 ms is needed", name, history))
	}
	d.open = operator.OpenVersioned(name, key, val, history)
	return VersionedRef[K, V]{d}
}

// In is the store as the function with this context has it.
func (r VersionedRef[K, V]) In(ctx context.Context) VersionedKV[K, V] {
	return handle[*operator.VersionedStore[K, V]](ctx, r.declaration)
}

// VersionedKV is a store of versions; see KV for contexts and errors.
type VersionedKV[K, V any] interface {
	// Put makes v the value of a key from a time on, until the next version begins:
	// until is when, the zero time if there is none. ok is false if the time is
	// before the history: then nothing is done.
	Put(k K, v V, at time.Time) (until time.Time, ok bool, err error)
	// Delete makes a key absent from a time on.
	Delete(k K, at time.Time) (until time.Time, ok bool, err error)
	// Get is the newest value of a key, however old, with when it began.
	Get(K) (v V, from time.Time, ok bool, err error)
	// GetAsOf is the value that a key had at a time. Before the history it finds
	// only a value that is still the newest.
	GetAsOf(k K, at time.Time) (v V, from time.Time, ok bool, err error)
}
