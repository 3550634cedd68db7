package operator

import (
	"encoding/binary"
	"time"

	"github.com/millrace/millrace/streams/state"
)

// KVStore is what user code of one node gets of a declared store of rows by key. A
// row has a timestamp, that of the record or timer which wrote it. Its methods run
// inside user code, so none of them enters the site.
//
// With a retention, a row is gone when the task's stream time is that far past
// its timestamp. It is hidden to the millisecond, and removed by a sweep that looks
// at a few rows for each that is written.
type KVStore[K, V any] struct {
	site      *Site
	store     rawStore
	key       *Codec[K]
	val       *Codec[V]
	nils      Nil[V]
	retention int64
	sweep     *sweep
	kbuf, buf []byte
}

// OpenKV opens the store for a site.
func OpenKV[K, V any](name string, key *Codec[K], val *Codec[V], retention time.Duration) func(*Builder, *Site) (any, error) {
	return func(b *Builder, s *Site) (any, error) {
		store, err := openRaw(b, name)
		if err != nil {
			return nil, err
		}
		// The sweep is one for all nodes that use the store.
		sw, err := Join(b, "sweep "+name, func() (*sweep, error) { return &sweep{store: store}, nil })
		return &KVStore[K, V]{site: s, store: store, key: key, val: val, nils: NilOf[V](), retention: retention.Milliseconds(), sweep: sw}, err
	}
}

// expired reports a row that has outlived the retention.
func (s *KVStore[K, V]) expired(row []byte) bool {
	return s.retention > 0 && len(row) >= 8 && int64(binary.BigEndian.Uint64(row)) <= s.site.task.streamMs-s.retention
}

func (s *KVStore[K, V]) decode(row []byte) (v V, at time.Time, err error) {
	if len(row) < 8 {
		return v, at, s.site.fail(s.store.short(row, 8))
	}
	if v, err = s.val.Serde.Decode(row[8:]); err != nil {
		return v, at, s.site.fail(s.store.wrap(err))
	}
	return v, time.UnixMilli(int64(binary.BigEndian.Uint64(row))).UTC(), nil
}

// Get returns the value of a key.
func (s *KVStore[K, V]) Get(k K) (V, bool, error) {
	v, _, ok, err := s.GetWithTime(k)
	return v, ok, err
}

// GetWithTime is Get with the row's timestamp.
func (s *KVStore[K, V]) GetWithTime(k K) (v V, at time.Time, ok bool, err error) {
	if s.kbuf, err = s.key.Append(s.kbuf[:0], &k); err != nil {
		return v, at, false, err
	}
	row, ok, err := s.store.Get(s.kbuf)
	if err != nil {
		return v, at, false, s.site.fail(err)
	}
	if !ok || s.expired(row) {
		return v, at, false, nil
	}
	v, at, err = s.decode(row)
	return v, at, err == nil, err
}

// Put sets the value of a key; a nil value deletes it.
func (s *KVStore[K, V]) Put(k K, v V) error { return s.put(k, v, max(s.site.task.moment(), 0)) }

// PutWithTime is Put with a timestamp for the row.
func (s *KVStore[K, V]) PutWithTime(k K, v V, at time.Time) error { return s.put(k, v, at.UnixMilli()) }

func (s *KVStore[K, V]) put(k K, v V, ms int64) (err error) {
	if s.nils.Is(&v) {
		return s.Delete(k)
	}
	if s.kbuf, err = s.key.Append(s.kbuf[:0], &k); err != nil {
		return err
	}
	s.buf = binary.BigEndian.AppendUint64(s.buf[:0], uint64(ms))
	if s.buf, err = s.val.Append(s.buf, &v); err != nil {
		return err
	}
	if err := s.store.Put(s.kbuf, s.buf); err != nil {
		return s.site.fail(err)
	}
	if s.retention > 0 {
		if err := s.sweep.step(func(_, value []byte) bool { return s.expired(value) }); err != nil {
			return s.site.fail(err)
		}
	}
	return nil
}

// Delete removes a key.
func (s *KVStore[K, V]) Delete(k K) (err error) {
	if s.kbuf, err = s.key.Append(s.kbuf[:0], &k); err != nil {
		return err
	}
	if err := s.store.Delete(s.kbuf); err != nil {
		return s.site.fail(err)
	}
	return nil
}

// sweep walks over a store again and again, a few rows at a time, and removes what
// time has passed. It remembers where it is in memory only: what it removes is
// hidden already, so a restart may begin again.
type sweep struct {
	store rawStore
	count int
	at    []byte
	gone  [][]byte
}

// Each sweepEvery writes, sweepRows rows are looked at: faster than rows come.
const sweepEvery, sweepRows = 16, 64

func (s *sweep) step(gone func(key, value []byte) bool) error {
	if s.count++; s.count < sweepEvery {
		return nil
	}
	s.count = 0
	n := 0
	last := []byte(nil)
	for row, err := range s.store.Range(s.at, nil) {
		if err != nil {
			return err
		}
		if n++; n > sweepRows {
			last = append(last, row.Key...)
			break
		}
		if gone(row.Key, row.Value) {
			s.gone = append(s.gone, append([]byte{}, row.Key...))
		}
	}
	s.at = last
	for _, key := range s.gone {
		if err := s.store.Expire(key, append(key, 0)); err != nil {
			return err
		}
	}
	clear(s.gone)
	s.gone = s.gone[:0]
	return nil
}

var _ state.Store = rawStore{}
