package operator

import (
	"bytes"
	"iter"
	"time"

	"github.com/millrace/millrace/streams/window"
)

// timedStore is what window and session stores have in common: rows of encoded keys
// and values in segments, each with a window. Its methods run inside user code.
type timedStore[K, V any] struct {
	site *Site
	rows *segmented
	key  *Codec[K]
	val  *Codec[V]
	nils Nil[V]
	// window is that of a row.
	window    func(ms, more int64) window.Window
	kbuf, buf []byte
}

func newTimed[K, V any](s *Site, rows *segmented, key *Codec[K], val *Codec[V], w func(ms, more int64) window.Window) timedStore[K, V] {
	return timedStore[K, V]{site: s, rows: rows, key: key, val: val, nils: NilOf[V](), window: w, buf: buffer()}
}

// put writes a row, a nil value removes it. A row that is older than the retention is
// counted as late.
func (s *timedStore[K, V]) put(k K, ms, more int64, v V) (err error) {
	if s.kbuf, err = s.key.Append(s.kbuf[:0], &k); err != nil {
		return err
	}
	kept, err := s.rows.take(ms)
	if err != nil {
		return s.site.fail(err)
	}
	if !kept {
		s.site.drop(dropLate)
		return nil
	}
	if s.nils.Is(&v) {
		return s.done(s.rows.remove(s.kbuf, ms, more))
	}
	if s.buf, err = s.val.Append(s.buf[:0], &v); err != nil {
		return err
	}
	return s.done(s.rows.put(s.kbuf, ms, more, s.buf))
}

func (s *timedStore[K, V]) remove(k K, ms, more int64) (err error) {
	if s.kbuf, err = s.key.Append(s.kbuf[:0], &k); err != nil {
		return err
	}
	return s.done(s.rows.remove(s.kbuf, ms, more))
}

func (s *timedStore[K, V]) get(k K, ms, more int64) (v V, ok bool, err error) {
	if s.kbuf, err = s.key.Append(s.kbuf[:0], &k); err != nil {
		return v, false, err
	}
	row, ok, err := s.rows.get(s.kbuf, ms, more)
	if err != nil || !ok {
		return v, false, s.done(err)
	}
	if v, err = s.val.Serde.Decode(row); err != nil {
		return v, false, s.done(s.rows.store.wrap(err))
	}
	return v, true, nil
}

// done fails the task if the store cannot be trusted.
func (s *timedStore[K, V]) done(err error) error {
	if err != nil {
		return s.site.fail(err)
	}
	return nil
}

// ofKey yields the rows of a key that pass, with their windows.
func (s *timedStore[K, V]) ofKey(k K, from, to int64, down bool, pass func(r segmentRow) bool) iter.Seq2[window.Window, V] {
	return func(yield func(window.Window, V) bool) {
		key, err := s.key.Append([]byte{}, &k)
		if err != nil {
			s.site.fail(s.rows.store.wrap(err))
			return
		}
		for r, err := range s.rows.ofKey(key, from, to, down) {
			if err != nil {
				s.site.fail(err)
				return
			}
			if pass != nil && !pass(r) {
				continue
			}
			w := s.window(r.ms, r.more)
			v, err := s.val.Serde.Decode(r.value)
			if err != nil {
				s.site.fail(s.rows.store.wrap(err))
				return
			}
			if !yield(w, v) {
				return
			}
		}
	}
}

// ofAll yields the rows of all keys that pass.
func (s *timedStore[K, V]) ofAll(from, to int64, down bool, pass func(r segmentRow) bool) iter.Seq2[window.Windowed[K], V] {
	return func(yield func(window.Windowed[K], V) bool) {
		for r, err := range s.rows.ofAll(from, to, down) {
			if err != nil {
				s.site.fail(err)
				return
			}
			if pass != nil && !pass(r) {
				continue
			}
			w := s.window(r.ms, r.more)
			v, err := s.val.Serde.Decode(r.value)
			var k K
			if err == nil {
				k, err = s.key.Serde.Decode(r.key)
			}
			if err != nil {
				s.site.fail(s.rows.store.wrap(err))
				return
			}
			if !yield(window.Windowed[K]{Key: k, Window: w}, v) {
				return
			}
		}
	}
}

// keysBetween lets rows pass with from <= key < to, compared as bytes.
func (s *timedStore[K, V]) keysBetween(from, to K) (pass func(segmentRow) bool, ok bool) {
	a, err := s.key.Append([]byte{}, &from)
	if err != nil {
		s.site.fail(s.rows.store.wrap(err))
		return nil, false
	}
	b, err := s.key.Append([]byte{}, &to)
	if err != nil {
		s.site.fail(s.rows.store.wrap(err))
		return nil, false
	}
	return func(r segmentRow) bool { return bytes.Compare(r.key, a) >= 0 && bytes.Compare(r.key, b) < 0 }, true
}

// WindowStore is what user code of one node gets of a declared window store.
type WindowStore[K, V any] struct{ timedStore[K, V] }

// OpenWindows opens the store for a site.
func OpenWindows[K, V any](name string, key *Codec[K], val *Codec[V], size, retention time.Duration) func(*Builder, *Site) (any, error) {
	return func(b *Builder, s *Site) (any, error) {
		rows, err := newSegmented(b, "windows", name, retention, 0)
		if err != nil {
			return nil, err
		}
		of := func(ms, _ int64) window.Window { return window.Between(ms, ms+size.Milliseconds()) }
		return &WindowStore[K, V]{newTimed(s, rows, key, val, of)}, nil
	}
}

// Put sets the row of a key and the window that starts at a time.
func (s *WindowStore[K, V]) Put(k K, start time.Time, v V) error {
	return s.put(k, start.UnixMilli(), 0, v)
}

// Delete removes a row.
func (s *WindowStore[K, V]) Delete(k K, start time.Time) error {
	return s.remove(k, start.UnixMilli(), 0)
}

// Get reads a row.
func (s *WindowStore[K, V]) Get(k K, start time.Time) (V, bool, error) {
	return s.get(k, start.UnixMilli(), 0)
}

// Fetch yields the windows of a key that start between two times.
func (s *WindowStore[K, V]) Fetch(k K, from, to time.Time) iter.Seq2[window.Window, V] {
	a, b := spanMs(from, to)
	return s.ofKey(k, a, b, ascending, nil)
}

// Backward is Fetch in descending order.
func (s *WindowStore[K, V]) Backward(k K, from, to time.Time) iter.Seq2[window.Window, V] {
	a, b := spanMs(from, to)
	return s.ofKey(k, a, b, descending, nil)
}

// All yields the windows of all keys that start between two times.
func (s *WindowStore[K, V]) All(from, to time.Time) iter.Seq2[window.Windowed[K], V] {
	a, b := spanMs(from, to)
	return s.ofAll(a, b, ascending, nil)
}

// AllBackward is All in the opposite order.
func (s *WindowStore[K, V]) AllBackward(from, to time.Time) iter.Seq2[window.Windowed[K], V] {
	a, b := spanMs(from, to)
	return s.ofAll(a, b, descending, nil)
}

// Range is All for the keys with first <= key < last.
func (s *WindowStore[K, V]) Range(first, last K, from, to time.Time) iter.Seq2[window.Windowed[K], V] {
	return func(yield func(window.Windowed[K], V) bool) {
		if pass, ok := s.keysBetween(first, last); ok {
			a, b := spanMs(from, to)
			s.ofAll(a, b, ascending, pass)(yield)
		}
	}
}
