package operator

import (
	"iter"
	"math"
	"time"

	"github.com/millrace/millrace/streams/window"
)

// SessionStore is what user code of one node gets of a declared session store. The
// time of a row is the session's last millisecond, the rest of its key the first.
type SessionStore[K, V any] struct{ timedStore[K, V] }

// OpenSessions opens the store for a site.
func OpenSessions[K, V any](name string, key *Codec[K], val *Codec[V], retention time.Duration) func(*Builder, *Site) (any, error) {
	return func(b *Builder, s *Site) (any, error) {
		rows, err := newSegmented(b, "sessions", name, retention, 8)
		if err != nil {
			return nil, err
		}
		of := func(last, first int64) window.Window { return window.Between(first, last+1) }
		return &SessionStore[K, V]{newTimed(s, rows, key, val, of)}, nil
	}
}

// lastMs is the last millisecond of a session.
func lastMs(w window.Window) int64 { return w.EndMs() - 1 }

// Put sets the row of a session.
func (s *SessionStore[K, V]) Put(k K, w window.Window, v V) error {
	return s.put(k, lastMs(w), w.StartMs(), v)
}

// Delete removes a row.
func (s *SessionStore[K, V]) Delete(k K, w window.Window) error {
	return s.remove(k, lastMs(w), w.StartMs())
}

// Get reads a row.
func (s *SessionStore[K, V]) Get(k K, w window.Window) (V, bool, error) {
	return s.get(k, lastMs(w), w.StartMs())
}

// touching are the sessions that share a millisecond with [from, to).
func touching(from, to time.Time) (a int64, pass func(segmentRow) bool) {
	a, b := spanMs(from, to)
	return a, func(r segmentRow) bool { return r.more < b }
}

// Fetch yields the sessions of a key.
func (s *SessionStore[K, V]) Fetch(k K, from, to time.Time) iter.Seq2[window.Window, V] {
	a, pass := touching(from, to)
	return s.ofKey(k, a, math.MaxInt64, ascending, pass)
}

// Backward is Fetch in descending order.
func (s *SessionStore[K, V]) Backward(k K, from, to time.Time) iter.Seq2[window.Window, V] {
	a, pass := touching(from, to)
	return s.ofKey(k, a, math.MaxInt64, descending, pass)
}

// All yields the sessions of all keys.
func (s *SessionStore[K, V]) All(from, to time.Time) iter.Seq2[window.Windowed[K], V] {
	a, pass := touching(from, to)
	return s.ofAll(a, math.MaxInt64, ascending, pass)
}

// AllBackward is All in the opposite order.
func (s *SessionStore[K, V]) AllBackward(from, to time.Time) iter.Seq2[window.Windowed[K], V] {
	a, pass := touching(from, to)
	return s.ofAll(a, math.MaxInt64, descending, pass)
}
