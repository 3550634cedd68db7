package operator

import (
	"bytes"
	"encoding/binary"
)

func (n *suppress[K, V]) split(row []byte) (h heldBack, err error) {
	if len(row) < 18 {
		return h, n.store.short(row, 18)
	}
	h.dueMs, h.timeMs, h.flags = int64(binary.BigEndian.Uint64(row)), int64(binary.BigEndian.Uint64(row[8:])), row[16]
	var ok bool
	if h.headers, row, ok = splitHeaders(row[17:]); ok {
		h.old, h.value, ok = cutBytes(row)
	}
	if !ok {
		return h, n.store.wrap(errHeld)
	}
	return h, nil
}

// View is that of the table behind the buffer: of a key that is held back, the row
// before.
func (s *Suppress[K, V]) View(b *Builder, site *Site) (Reader[V], error) {
	store, err := openRaw(b, s.Store)
	if err != nil {
		return nil, err
	}
	from, err := s.From(b, site)
	return &suppressReader[K, V]{n: suppress[K, V]{op: s, site: site, store: store}, from: from}, err
}

type suppressReader[K, V any] struct {
	n    suppress[K, V]
	from Reader[V]
	key  []byte
}

// Get implements Reader.
func (r *suppressReader[K, V]) Get(key []byte, v *V) (timeMs int64, ok bool, err error) {
	r.key = append(append(r.key[:0], 1), key...)
	row, ok, err := r.n.store.Get(r.key)
	if err != nil {
		return 0, false, err
	}
	if !ok {
		return r.from.Get(key, v)
	}
	h, err := r.n.split(bytes.Clone(row))
	if err != nil || h.flags&heldOld == 0 || h.flags&heldOldNull != 0 {
		return 0, false, err
	}
	r.n.site.enter()
	*v, err = r.n.op.Value.Serde.Decode(h.old)
	r.n.site.leave()
	return h.timeMs, err == nil, err
}
