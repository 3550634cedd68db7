package state

// merged is one key as memory and image together know it.
type merged struct {
	key          []byte
	open         kind   // what the open transaction did to it
	value        []byte // its value when open is present
	committed    []byte
	hasCommitted bool
}

// merge visits in key order every key in [from, to) that the memory or the
// image knows, until visit returns false. The image pushes its rows; before
// each of them the memory is drained up to its key. visit may write: entries
// that are new wait outside the order until the next merge begins.
func (o *Overlay) merge(from, to []byte, visit func(merged) bool) error {
	if emptyRange(from, to) {
		return nil
	}
	o.table.index()
	w := walk{at: o.table.seek(from), to: to}
	for row, err := range o.image.Range(from, to) {
		if err != nil {
			return o.fail("range", err)
		}
		for w.before(row.Key) {
			if !visit(w.take()) {
				return nil
			}
		}
		if !visit(w.match(row)) {
			return nil
		}
	}
	for w.more() {
		if !visit(w.take()) {
			return nil
		}
	}
	return nil
}

// walk is a position in the ordered memory.
type walk struct {
	at  *entry
	to  []byte
	key []byte // scratch: keys live in strings, visitors want bytes
}

func (w *walk) more() bool { return w.at != nil && inRange(w.at.key, w.to) }

func (w *walk) before(key []byte) bool { return w.more() && w.at.key < string(key) }

// take yields the next entry, of which the image has no row.
func (w *walk) take() merged {
	e := w.at
	w.at = e.next[0]
	w.key = append(w.key[:0], e.key...)
	return merged{
		key:          w.key,
		open:         e.open.kind,
		value:        e.open.value(),
		committed:    e.committed.value(),
		hasCommitted: e.committed.kind == present,
	}
}

// match combines an image row with the entry of the same key, if there is one.
func (w *walk) match(row Row) merged {
	if w.at == nil || w.at.key != string(row.Key) {
		return merged{key: row.Key, committed: row.Value, hasCommitted: true}
	}
	known := w.at.committed.kind != unknown
	m := w.take()
	if !known {
		m.committed, m.hasCommitted = row.Value, true
	}
	return m
}
