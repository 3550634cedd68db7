package streams

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/millrace/millrace/streams/internal/operator"
	"github.com/millrace/millrace/streams/window"
)

// WindowView looks at the rows of a windowed table; see View. Rows are there until
// stream time has passed their window's end by the retention.
type WindowView[K, V any] struct {
	at       lookup
	key      *operator.Codec[K]
	val      *operator.Codec[V]
	spec     window.Spec
	sessions bool
}

// Get returns the value of a key in the window that starts at a time; of a session,
// or a sliding window, in the first that starts then.
func (v WindowView[K, V]) Get(ctx context.Context, k K, start time.Time) (value V, ok bool, err error) {
	if v.sessions {
		for row, err := range v.Fetch(ctx, k, start, start.Add(time.Millisecond)) {
			if err != nil {
				return value, false, err
			}
			if row.Key.Window.Start.Equal(start) {
				return row.Value, true, nil
			}
		}
		return value, false, nil
	}
	row, ok, err := v.get(ctx, k, start.UnixMilli())
	return row.Value, ok, err
}

// Fetch yields the windows of a key that share a moment with [from, to), the earliest
// first.
func (v WindowView[K, V]) Fetch(ctx context.Context, k K, from, to time.Time) iter.Seq2[Row[Windowed[K], V], error] {
	return func(yield func(Row[Windowed[K], V], error) bool) {
		if v.at.err != nil || v.sessions {
			v.fetchSessions(ctx, k, from, to)(yield)
			return
		}
		if v.spec.Unlimited {
			to = time.UnixMilli(min(to.UnixMilli(), v.spec.FirstStartOf(from.UnixMilli())+1))
		}
		end := to.UnixMilli()
		first := v.spec.FirstStartOf(max(from.UnixMilli(), 0))
		for start, n := first, 0; start < end; start, n = v.spec.Next(start), n+1 {
			if n == maxWindows {
				yield(Row[Windowed[K], V]{}, v.at.wrap(fmt.Errorf("more than %d windows between %v and %v", maxWindows, from, to)))
				return
			}
			row, ok, err := v.get(ctx, k, start)
			if (ok || err != nil) && !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// maxWindows is how many windows of a key are looked up at once.
const maxWindows = 100_000

// Window yields the rows of the window that starts at a time, of all keys, in order of
// their bytes. Sessions and sliding windows, which each key has its own, have none.
func (v WindowView[K, V]) Window(ctx context.Context, start time.Time) iter.Seq2[Row[Windowed[K], V], error] {
	return v.All(ctx, start, start.Add(time.Millisecond))
}

// All yields the rows of all keys whose windows start at from or later and before to,
// in order of start and key; of sessions and sliding windows all rows, by key.
func (v WindowView[K, V]) All(ctx context.Context, from, to time.Time) iter.Seq2[Row[Windowed[K], V], error] {
	return func(yield func(Row[Windowed[K], V], error) bool) {
		a, b := window.AppendRow(nil, max(from.UnixMilli(), 0), nil), window.AppendRow(nil, max(to.UnixMilli(), 0), nil)
		if v.sessions {
			a, b = []byte{1}, []byte{2}
		}
		for f, err := range v.at.scan(ctx, nil, a, b) {
			var row Row[Windowed[K], V]
			if err == nil {
				row, err = v.decode(f.Key, f.Value)
			}
			if err == nil && v.sessions && !(row.Key.Window.Start.Before(to) && !row.Key.Window.Start.Before(from)) {
				continue
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

func (v WindowView[K, V]) get(ctx context.Context, k K, start int64) (row Row[Windowed[K], V], ok bool, err error) {
	if v.at.err != nil {
		return row, false, v.at.err
	}
	home, err := v.key.Append([]byte{}, &k)
	if err != nil {
		return row, false, v.at.wrap(err)
	}
	key := window.AppendRow(nil, start, home)
	raw, _, err := v.at.get(ctx, home, key)
	if err != nil || raw == nil {
		return row, false, err
	}
	row, err = v.decode(key, raw)
	return row, err == nil, err
}

// fetchSessions is Fetch for rows that lie by key and end: 1, length of the key, key,
// end, start.
func (v WindowView[K, V]) fetchSessions(ctx context.Context, k K, from, to time.Time) iter.Seq2[Row[Windowed[K], V], error] {
	return func(yield func(Row[Windowed[K], V], error) bool) {
		home, err := []byte{}, v.at.err
		if err == nil {
			home, err = v.key.Append(home, &k)
		}
		if err != nil {
			yield(Row[Windowed[K], V]{}, v.at.wrap(err))
			return
		}
		prefix := append(binary.BigEndian.AppendUint32([]byte{1}, uint32(len(home))), home...)
		a := binary.BigEndian.AppendUint64(slices.Clone(prefix), uint64(max(from.UnixMilli(), 0)))
		b := binary.BigEndian.AppendUint64(slices.Clone(prefix), math.MaxUint64)
		for f, err := range v.at.scan(ctx, home, a, b) {
			var row Row[Windowed[K], V]
			if err == nil {
				row, err = v.decode(f.Key, f.Value)
			}
			if err == nil && !row.Key.Window.Start.Before(to) {
				continue
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

func (v WindowView[K, V]) decode(key, raw []byte) (row Row[Windowed[K], V], err error) {
	var start, end int64
	home := key
	if v.sessions {
		n := len(key)
		if n < 21 {
			return row, v.at.wrap(fmt.Errorf("the row of a session has a key of %d bytes, at least 21 are needed", n))
		}
		home = key[5 : n-16]
		end, start = int64(binary.BigEndian.Uint64(key[n-16:]))+1, int64(binary.BigEndian.Uint64(key[n-8:]))
	} else {
		if start, home, err = window.SplitRow(key); err != nil {
			return row, v.at.wrap(err)
		}
		end = v.spec.EndOf(start)
	}
	if row.Key.Key, err = v.key.Serde.Decode(home); err == nil {
		row.Key.Window = window.Between(start, end)
		row.Value, row.Time, err = decodeRow(v.val, raw)
	}
	return row, v.at.wrap(err)
}
