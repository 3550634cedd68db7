package streams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/millrace/millrace/streams/internal/operator"
)

// shownStore is a store as the HTTP handler sees it, without its types.
type shownStore struct {
	kind string
	get  func(ctx context.Context, r *Running, key string, opts []ViewOpt) (any, bool, error) // nil: only by range
	scan func(ctx context.Context, r *Running, from, to string, opts []ViewOpt) iter.Seq2[any, error]
}

// shownRow is a row in an answer.
type shownRow struct {
	Key   any        `json:"key"`
	Start *time.Time `json:"start,omitempty"`
	End   *time.Time `json:"end,omitempty"`
	Value any        `json:"value"`
	Time  time.Time  `json:"time"`
}

// showTable makes a table known to the handler.
func showTable[K, V any](a *App, name string, view func(*Running, ...ViewOpt) View[K, V]) {
	a.shown[name] = shownStore{
		kind: "table " + pair[K, V](),
		get: func(ctx context.Context, r *Running, text string, opts []ViewOpt) (any, bool, error) {
			k, err := keyOfText[K](text)
			if err != nil {
				return nil, false, err
			}
			row, ok, err := view(r, opts...).Row(ctx, k)
			return shownRow{Key: row.Key, Value: row.Value, Time: row.Time}, ok, err
		},
		scan: func(ctx context.Context, r *Running, from, to string, opts []ViewOpt) iter.Seq2[any, error] {
			v := view(r, opts...)
			return func(yield func(any, error) bool) {
				a, err := edge(v.key, from)
				b, err2 := edge(v.key, to)
				if err = errors.Join(err, err2); err != nil {
					yield(nil, err)
					return
				}
				for row, err := range v.rows(ctx, a, b, nil) {
					if !yield(shownRow{Key: row.Key, Value: row.Value, Time: row.Time}, err) {
						return
					}
				}
			}
		},
	}
}

// showWindows makes a windowed table known to the handler. Its ranges are of time.
func showWindows[K, V any](a *App, name string, view func(*Running, ...ViewOpt) WindowView[K, V]) {
	a.shown[name] = shownStore{
		kind: "windows " + pair[K, V](),
		scan: func(ctx context.Context, r *Running, from, to string, opts []ViewOpt) iter.Seq2[any, error] {
			return func(yield func(any, error) bool) {
				a, err := timeOfText(from, time.UnixMilli(0))
				b, err2 := timeOfText(to, time.UnixMilli(1<<50))
				if err = errors.Join(err, err2); err != nil {
					yield(nil, err)
					return
				}
				for row, err := range view(r, opts...).All(ctx, a, b) {
					w := row.Key.Window
					if !yield(shownRow{Key: row.Key.Key, Start: &w.Start, End: &w.End, Value: row.Value, Time: row.Time}, err) {
						return
					}
				}
			}
		},
	}
}

// edge is one end of a range; "" is open.
func edge[K any](c *operator.Codec[K], text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	k, err := keyOfText[K](text)
	if err != nil {
		return nil, err
	}
	return c.Append([]byte{}, &k)
}

// keyOfText reads a key that is written as people write it.
func keyOfText[K any](text string) (k K, err error) {
	if v := reflect.ValueOf(&k).Elem(); v.Kind() == reflect.String {
		v.SetString(text)
		return k, nil
	}
	if err := json.Unmarshal([]byte(text), &k); err != nil {
		if json.Unmarshal([]byte(strconv.Quote(text)), &k) == nil {
			return k, nil
		}
		return k, fmt.Errorf("%w: %q: %w", errBadKey, text, err)
	}
	return k, nil
}

// timeOfText reads a time: RFC 3339, or milliseconds since 1970.
func timeOfText(text string, otherwise time.Time) (time.Time, error) {
	if text == "" {
		return otherwise, nil
	}
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.UnixMilli(ms), nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return t, fmt.Errorf("%w: %q is neither RFC 3339 nor milliseconds", errBadKey, text)
	}
	return t, nil
}

// serveStores lists the stores.
func (r *Running) serveStores(w http.ResponseWriter, _ *http.Request) {
	type store struct {
		Name       string `json:"name"`
		Kind       string `json:"kind"`
		Partitions int32  `json:"partitions"`
	}
	var all []store
	for _, name := range slices.Sorted(maps.Keys(r.app.shown)) {
		if n, err := r.job.Units(name); err == nil {
			all = append(all, store{name, r.app.shown[name].(shownStore).kind, n})
		}
	}
	writeJSON(w, all)
}

// serveRows answers about one store.
func (r *Running) serveRows(w http.ResponseWriter, req *http.Request) {
	s, ok := r.app.shown[req.PathValue("store")].(shownStore)
	if !ok {
		http.Error(w, "no such store", http.StatusNotFound)
		return
	}
	ctx, cancel := context.WithTimeout(req.Context(), askTime)
	defer cancel()
	q := req.URL.Query()
	stale, limit, err := numbers(q.Get("stale"), q.Get("limit"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var opts []ViewOpt
	if q.Has("stale") {
		opts = append(opts, Stale(stale))
	}
	if !q.Has("key") {
		serveRange(w, s.scan(ctx, r, q.Get("from"), q.Get("to"), opts), limit)
		return
	}
	if s.get == nil {
		http.Error(w, "rows of windows are asked for by range of time: from, to", http.StatusBadRequest)
		return
	}
	row, ok, err := s.get(ctx, r, q.Get("key"), opts)
	switch {
	case err != nil:
		http.Error(w, err.Error(), statusOf(err))
	case !ok:
		http.Error(w, "no such key", http.StatusNotFound)
	default:
		writeJSON(w, row)
	}
}

// defaultRows is how many rows a range has without a limit.
const defaultRows = 1000

func numbers(stale, limit string) (s int64, l int, err error) {
	l = defaultRows
	if stale != "" {
		if s, err = strconv.ParseInt(stale, 10, 64); err != nil || s < 0 {
			return s, l, fmt.Errorf("stale is %q, must be a number of records", stale)
		}
	}
	if limit != "" {
		if l, err = strconv.Atoi(limit); err != nil || l < 1 {
			return s, l, fmt.Errorf("limit is %q, must be a number of rows", limit)
		}
	}
	return s, l, nil
}

// serveRange writes rows, one a line. An error after the first line ends the answer
// early, without a last chunk, which clients notice.
func serveRange(w http.ResponseWriter, rows iter.Seq2[any, error], limit int) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	n := 0
	for row, err := range rows {
		if err != nil && n == 0 {
			http.Error(w, err.Error(), statusOf(err))
			return
		}
		raw, merr := json.Marshal(row)
		if err != nil || merr != nil {
			panic(http.ErrAbortHandler)
		}
		if _, err := w.Write(append(raw, '\n')); err != nil {
			return
		}
		if n++; n == limit {
			return
		}
	}
}
