package operator

import (
	"encoding/binary"
	"fmt"

	"github.com/millrace/millrace/streams/state"
	"github.com/millrace/millrace/streams/window"
)

// Rows is a typed view of a store whose values carry a timestamp: 8 bytes of
// milliseconds, big endian, then the encoded value, which is the format of
// Kafka's own timestamped stores. It owns the scratch space of its encoding.
type Rows[V any] struct {
	name  string
	site  *Site
	store state.Store
	value *Codec[V]
	buf   []byte
}

// NewRows opens a store.
func NewRows[V any](b *Builder, site *Site, store string, value *Codec[V]) (*Rows[V], error) {
	s, err := b.Store(store)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", store, err)
	}
	return &Rows[V]{name: store, site: site, store: s, value: value, buf: buffer()}, nil
}

// Get reads the row of an encoded key. An error means that the store cannot be
// trusted: it is not a matter of the record.
func (s *Rows[V]) Get(key []byte, v *V) (timeMs int64, ok bool, err error) {
	row, ok, err := s.store.Get(key)
	if err != nil || !ok {
		return 0, false, err
	}
	timeMs, err = s.decode(row, v)
	return timeMs, err == nil, err
}

// GetOld reads the row of an encoded key as the old value of an update.
func (s *Rows[V]) GetOld(key []byte, old *Old[V]) error {
	var zero V
	old.Value = zero
	_, ok, err := s.Get(key, &old.Value)
	old.Null = !ok
	return err
}

// timeOf is the timestamp of an encoded row.
func (s *Rows[V]) timeOf(row []byte) (int64, error) {
	if len(row) < 8 {
		return 0, fmt.Errorf("store %s: a row has %d bytes, its timestamp alone takes 8", s.name, len(row))
	}
	return int64(binary.BigEndian.Uint64(row)), nil
}

func (s *Rows[V]) decode(row []byte, v *V) (timeMs int64, err error) {
	if timeMs, err = s.timeOf(row); err != nil {
		return 0, err
	}
	s.site.enter()
	*v, err = s.value.Serde.Decode(row[8:])
	s.site.leave()
	if err != nil {
		return 0, fmt.Errorf("store %s: a row does not decode as the type of this release: %w", s.name, err)
	}
	return timeMs, nil
}

// Encode prepares the row that Put writes; it fails if the value cannot be
// encoded, which is a matter of the record.
func (s *Rows[V]) Encode(v *V, timeMs int64) (err error) {
	s.buf = binary.BigEndian.AppendUint64(s.buf[:0], uint64(timeMs))
	s.site.enter()
	s.buf, err = s.value.Append(s.buf, v)
	s.site.leave()
	return err
}

// Put writes what Encode prepared.
func (s *Rows[V]) Put(key []byte) error { return s.store.Put(key, s.buf) }

// Delete removes a row.
func (s *Rows[V]) Delete(key []byte) error { return s.store.Delete(key) }

// Windows calls visit for each row of the windows with from <= start < to, in
// order of (start, key bytes). The key is valid during the call.
func (s *Rows[V]) Windows(from, to int64, visit func(startMs int64, key []byte, timeMs int64, v *V) error) error {
	if from = max(from, 0); from >= to {
		return nil
	}
	var v V
	for row, err := range s.store.Range(window.AppendRow(nil, from, nil), window.AppendRow(nil, to, nil)) {
		if err != nil {
			return err
		}
		start, key, err := window.SplitRow(row.Key)
		if err != nil {
			return fmt.Errorf("store %s: %w", s.name, err)
		}
		timeMs, err := s.decode(row.Value, &v)
		if err != nil {
			return err
		}
		if err := visit(start, key, timeMs, &v); err != nil {
			return err
		}
	}
	return nil
}

// Expire removes the windows with from <= start < to.
func (s *Rows[V]) Expire(from, to int64) error {
	if from = max(from, 0); from >= to {
		return nil
	}
	return s.store.Expire(window.AppendRow(nil, from, nil), window.AppendRow(nil, to, nil))
}
