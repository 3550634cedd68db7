package operator

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/millrace/millrace/streams/internal/task"
)

// heldBack is a row of a buffer, taken apart.
type heldBack struct {
	dueMs, timeMs int64
	flags         byte
	headers       []task.Header
	old, value    []byte
}

var errHeld = errors.New("a row is no update that was held back")

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

// appendHeaders writes the number of headers, then each with its lengths; a null
// value has none.
func appendHeaders(dst []byte, headers []task.Header) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(headers)))
	for _, h := range headers {
		dst = append(binary.AppendUvarint(dst, uint64(len(h.Key))), h.Key...)
		if h.Value == nil {
			dst = append(dst, 0)
			continue
		}
		dst = append(binary.AppendUvarint(append(dst, 1), uint64(len(h.Value))), h.Value...)
	}
	return dst
}

func splitHeaders(b []byte) (headers []task.Header, rest []byte, ok bool) {
	count, n := binary.Uvarint(b)
	if n <= 0 || count > uint64(len(b)) {
		return nil, nil, false
	}
	b = b[n:]
	for range count {
		var key, value []byte
		if key, b, ok = cutBytes(b); !ok || len(b) == 0 {
			return nil, nil, false
		}
		has := b[0] == 1
		if b = b[1:]; has {
			if value, b, ok = cutBytes(b); !ok {
				return nil, nil, false
			}
			value = append([]byte{}, value...)
		}
		headers = append(headers, task.Header{Key: string(key), Value: value})
	}
	return headers, b, true
}

// cutBytes takes bytes with their length in front off.
func cutBytes(b []byte) (x, rest []byte, ok bool) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, nil, false
	}
	return b[n : n+int(size)], b[n+int(size):], true
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
