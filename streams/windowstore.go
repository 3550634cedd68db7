package streams

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/millrace/millrace/streams/internal/operator"
)

// WindowRef is a declared window store.
type WindowRef[K, V any] struct{ *declaration }

// WindowStore declares a store of rows by key and window. Windows have a size; where
// they start is for the processor to say. A row is kept until a window has been put
// that starts retention later. See Store for the rest; the options are those of Store
// but for Retention.
func (a *App) WindowStore[K, V any](name string, size, retention time.Duration, opts ...Opt) WindowRef[K, V] {
	d, _, key, val := declare[K, V](a, "windows", name, forTimed, opts)
	if size < time.Millisecond || size%time.Millisecond != 0 {
		a.errs = append(a.errs, fmt.Errorf("window store %s: size is %v, at least 1 ms is needed, and whole ones", name, size))
	}
	if retention < size {
		a.errs = append(a.errs, fmt.Errorf("window store %s: retention is %v, at least the size of a window (%v) is needed", name, retention, size))
	}
	d.shape += " in segments of " + operator.SegmentOf(retention).String()
	d.open = operator.OpenWindows(name, key, val, size, retention)
	return WindowRef[K, V]{d}
}

// In is the store as the function with this context has it.
func (r WindowRef[K, V]) In(ctx context.Context) WindowKV[K, V] {
	return handle[*operator.WindowStore[K, V]](ctx, r.declaration)
}

// WindowKV is a store of rows by key and window; see KV for contexts and errors. Rows
// whose window starts too long ago for the retention are not found, and those that
// are put are dropped and counted as late. Windows start in 1970 or later.
//
// Ranges are of the times at which windows start, from <= start < to, where the zero
// time leaves an end open. Those of all keys come in the order of segments of half the
// retention, within one by length and bytes of the key, then by time: always the same,
// but good for nothing else.
type WindowKV[K, V any] interface {
	// Put sets the row of a key and the window that starts at a time; a nil value
	// deletes it.
	Put(k K, start time.Time, v V) error
	Delete(k K, start time.Time) error
	Get(k K, start time.Time) (v V, ok bool, err error)
	// Fetch yields windows of a key, the earliest first; Backward, the latest.
	Fetch(k K, from, to time.Time) iter.Seq2[Window, V]
	Backward(k K, from, to time.Time) iter.Seq2[Window, V]
	// All yields windows of all keys; AllBackward, in the opposite order; Range, those
	// of the keys with first <= key < last in order of the keys' bytes.
	All(from, to time.Time) iter.Seq2[Windowed[K], V]
	AllBackward(from, to time.Time) iter.Seq2[Windowed[K], V]
	Range(first, last K, from, to time.Time) iter.Seq2[Windowed[K], V]
}

// SessionRef is a declared session store.
type SessionRef[K, V any] struct{ *declaration }

// SessionStore declares a store of rows by key and session, which is a window of any
// size. A row is kept until a session has been put that ends retention later. See
// Store for the rest; the options are those of Store but for Retention.
func (a *App) SessionStore[K, V any](name string, retention time.Duration, opts ...Opt) SessionRef[K, V] {
	d, _, key, val := declare[K, V](a, "sessions", name, forTimed, opts)
	if retention < time.Millisecond {
		a.errs = append(a.errs, fmt.Errorf("session store %s: retention is %v, at least 1 ms is needed", name, retention))
	}
	d.shape += " in segments of " + operator.SegmentOf(retention).String()
	d.open = operator.OpenSessions(name, key, val, retention)
	return SessionRef[K, V]{d}
}

// In is the store as the function with this context has it.
func (r SessionRef[K, V]) In(ctx context.Context) SessionKV[K, V] {
	return handle[*operator.SessionStore[K, V]](ctx, r.declaration)
}

// SessionKV is a store of rows by key and session; see WindowKV for order and
// retention. A session's End is 1 ms after its last record, as everywhere: one of a
// single record is 1 ms long. Ranges are of the sessions that share a moment with
// [from, to).
type SessionKV[K, V any] interface {
	// Put sets the row of a session; a nil value deletes it. A session that grows is
	// another: delete the old one.
	Put(k K, session Window, v V) error
	Delete(k K, session Window) error
	Get(k K, session Window) (v V, ok bool, err error)
	// Fetch yields sessions of a key, the one that ends first before others;
	// Backward, in the opposite order.
	Fetch(k K, from, to time.Time) iter.Seq2[Window, V]
	Backward(k K, from, to time.Time) iter.Seq2[Window, V]
	// All yields sessions of all keys; AllBackward, in the opposite order.
	All(from, to time.Time) iter.Seq2[Windowed[K], V]
	AllBackward(from, to time.Time) iter.Seq2[Windowed[K], V]
}
