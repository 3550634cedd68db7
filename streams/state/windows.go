package state

import (
	"bytes"
	"slices"
	"strings"
)

// windowBytes is what a row of a windowed store begins with: the start of its window,
// big endian.
const windowBytes = 8

// windows has the entries of a table by window: records come for few windows at a
// time, so each map that is looked into is small. Windows pass one after the other
// and their rows go all together, for which no order is needed among the rows.
type windows[E any] struct {
	byStart map[string]*windowRows[E]
	sorted  []*windowRows[E] // by start
	last    *windowRows[E]
}

type windowRows[E any] struct {
	start   string
	byKey   map[string]E
	entries []E // in the order they came in
}

func newWindows[E any]() *windows[E] { return &windows[E]{byStart: map[string]*windowRows[E]{}} }

func (w *windows[E]) reset() {
	clear(w.byStart)
	clear(w.sorted)
	w.sorted, w.last = w.sorted[:0], nil
}

// startOf is the window of a key; one that is too short for a start is in the window
// of its own bytes, which no whole window is.
func startOf(key []byte) []byte { return key[:min(len(key), windowBytes)] }

func (w *windows[E]) get(key []byte) (e E, ok bool) {
	start := startOf(key)
	if w.last == nil || w.last.start != string(start) {
		rows := w.byStart[string(start)]
		if rows == nil {
			return e, false
		}
		w.last = rows
	}
	e, ok = w.last.byKey[string(key)]
	return e, ok
}

// add takes an entry that is not there yet.
func (w *windows[E]) add(key string, e E) {
	start := key[:min(len(key), windowBytes)]
	if w.last == nil || w.last.start != start {
		size := 0
		if w.last != nil {
			size = len(w.last.byKey) // as many as last time, most likely
		}
		w.last = w.byStart[start]
		if w.last == nil {
			w.last = &windowRows[E]{start: start, byKey: make(map[string]E, size)}
			w.byStart[start] = w.last
			at, _ := slices.BinarySearchFunc(w.sorted, start, (*windowRows[E]).compare)
			w.sorted = slices.Insert(w.sorted, at, w.last)
		}
	}
	w.last.byKey[key] = e
	w.last.entries = append(w.last.entries, e)
}

func (r *windowRows[E]) compare(start string) int { return strings.Compare(r.start, start) }

// between yields the windows with from <= start < to.
func (w *windows[E]) between(from, to []byte) []*windowRows[E] {
	if bytes.Compare(from, to) >= 0 {
		return nil
	}
	a, _ := slices.BinarySearchFunc(w.sorted, string(from), (*windowRows[E]).compare)
	b, _ := slices.BinarySearchFunc(w.sorted, string(to), (*windowRows[E]).compare)
	return w.sorted[a:b]
}
