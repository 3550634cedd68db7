package operator

import (
	"iter"

	"github.com/millrace/millrace/streams/state"
)

// PutIfAbsent sets the value of a key that has none; otherwise it returns the one
// there is.
func (s *KVStore[K, V]) PutIfAbsent(k K, v V) (before V, was bool, err error) {
	if before, was, err = s.Get(k); err != nil || was {
		return before, was, err
	}
	return before, false, s.Put(k, v)
}

// All yields all rows in order of their keys' bytes.
func (s *KVStore[K, V]) All() iter.Seq2[K, V] { return s.scan(s.store.Range(nil, nil)) }

// AllBackward is All in descending order.
func (s *KVStore[K, V]) AllBackward() iter.Seq2[K, V] { return s.scan(s.store.Backward(nil, nil)) }

// Prefix yields the rows whose key's bytes begin with prefix.
func (s *KVStore[K, V]) Prefix(prefix []byte) iter.Seq2[K, V] {
	prefix = append([]byte{}, prefix...)
	return s.scan(s.store.Range(prefix, successor(nil, prefix)))
}

// Range yields the rows with from <= key < to, compared as bytes.
func (s *KVStore[K, V]) Range(from, to K) iter.Seq2[K, V] {
	return s.between(from, to, s.store.Range)
}

// Backward is Range in descending order.
func (s *KVStore[K, V]) Backward(from, to K) iter.Seq2[K, V] {
	return s.between(from, to, s.store.Backward)
}

func (s *KVStore[K, V]) between(from, to K, rows func(from, to []byte) iter.Seq2[state.Row, error]) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		a, err := s.key.Append([]byte{}, &from)
		if err != nil {
			s.site.fail(s.store.wrap(err))
			return
		}
		b, err := s.key.Append([]byte{}, &to)
		if err != nil {
			s.site.fail(s.store.wrap(err))
			return
		}
		s.scan(rows(a, b))(yield)
	}
}

func (s *KVStore[K, V]) scan(rows iter.Seq2[state.Row, error]) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for row, err := range rows {
			if err != nil {
				s.site.fail(err)
				return
			}
			if s.expired(row.Value) {
				continue
			}
			k, err := s.key.Serde.Decode(row.Key)
			if err != nil {
				s.site.fail(s.store.wrap(err))
				return
			}
			v, _, err := s.decode(row.Value)
			if err != nil || !yield(k, v) {
				return
			}
		}
	}
}
