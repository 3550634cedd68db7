package operator

import "time"

// VersionedStore is what user code of one node gets of a declared versioned store;
// see versions for what it keeps. Its methods run inside user code.
type VersionedStore[K, V any] struct {
	site *Site
	rows *versions
	key  *Codec[K]
	val  *Codec[V]
	nils Nil[V]
	kbuf []byte
	buf  []byte
}

// OpenVersioned opens the store for a site.
func OpenVersioned[K, V any](name string, key *Codec[K], val *Codec[V], history time.Duration) func(*Builder, *Site) (any, error) {
	return func(b *Builder, s *Site) (any, error) {
		rows, err := newVersions(b, name, history.Milliseconds())
		return &VersionedStore[K, V]{site: s, rows: rows, key: key, val: val, nils: NilOf[V](), buf: buffer()}, err
	}
}

// Put makes v the value of a key from a time on, until the next version begins. ok
// is false if the time is before the history that is kept: then nothing is done.
// until is the zero time for the newest version.
func (s *VersionedStore[K, V]) Put(k K, v V, at time.Time) (until time.Time, ok bool, err error) {
	if s.nils.Is(&v) {
		return s.put(k, nil, at)
	}
	if s.buf, err = s.val.Append(s.buf[:0], &v); err != nil {
		return until, false, err
	}
	return s.put(k, s.buf, at)
}

// Delete makes a key absent from a time on; otherwise it is like Put.
func (s *VersionedStore[K, V]) Delete(k K, at time.Time) (until time.Time, ok bool, err error) {
	return s.put(k, nil, at)
}

func (s *VersionedStore[K, V]) put(k K, value []byte, at time.Time) (until time.Time, ok bool, err error) {
	if s.kbuf, err = s.key.Append(s.kbuf[:0], &k); err != nil {
		return until, false, err
	}
	ms, ok, err := s.rows.put(s.kbuf, value, at.UnixMilli())
	if err != nil {
		return until, false, s.site.fail(err)
	}
	if ok && ms != never {
		until = time.UnixMilli(ms).UTC()
	}
	return until, ok, nil
}

// Get is the newest value of a key, with when it began.
func (s *VersionedStore[K, V]) Get(k K) (v V, from time.Time, ok bool, err error) {
	return s.read(k, never)
}

// GetAsOf is the value that a key had at a time, with when it began.
func (s *VersionedStore[K, V]) GetAsOf(k K, at time.Time) (v V, from time.Time, ok bool, err error) {
	return s.read(k, at.UnixMilli())
}

func (s *VersionedStore[K, V]) read(k K, ms int64) (v V, from time.Time, ok bool, err error) {
	if s.kbuf, err = s.key.Append(s.kbuf[:0], &k); err != nil {
		return v, from, false, err
	}
	value, fromMs, ok, err := s.rows.asOf(s.kbuf, ms)
	if err != nil {
		return v, from, false, s.site.fail(err)
	}
	if !ok {
		return v, from, false, nil
	}
	if v, err = s.val.Serde.Decode(value); err != nil {
		return v, from, false, s.site.fail(s.rows.store.wrap(err))
	}
	return v, time.UnixMilli(fromMs).UTC(), true, nil
}
