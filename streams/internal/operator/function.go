package operator

import (
	"context"
	"iter"
)

// The functions below dress a pure user function for its node and apply the
// rules of null (see the package comment) around it.

// FilterFunc is a predicate over values.
func FilterFunc[K, V any](f func(V) bool) Predicate[K, V] {
	nils := NilOf[V]()
	return func(_ context.Context, r *Record[K, V]) (bool, error) {
		if nils.Strict(r.NullValue) {
			return false, nil
		}
		return f(r.Value), nil
	}
}

// MapValuesFunc changes the value and keeps the key.
func MapValuesFunc[K, V, VR any](f func(V) VR) Func[K, V, K, VR] {
	in, out := NilOf[V](), NilOf[VR]()
	return func(_ context.Context, r *Record[K, V], to *Record[K, VR]) (bool, error) {
		to.Key, to.NullKey = r.Key, r.NullKey
		if in.Strict(r.NullValue) {
			var zero VR
			to.Value, to.NullValue = zero, true
			return true, nil
		}
		to.Value = f(r.Value)
		to.NullValue = out.Is(&to.Value)
		return true, nil
	}
}

// MapFunc changes key and value.
func MapFunc[K, V, KR, VR any](f func(K, V) (KR, VR)) Func[K, V, KR, VR] {
	in, key, val := NilOf[V](), NilOf[KR](), NilOf[VR]()
	return func(_ context.Context, r *Record[K, V], to *Record[KR, VR]) (bool, error) {
		if in.Strict(r.NullValue) {
			return false, nil
		}
		to.Key, to.Value = f(r.Key, r.Value)
		to.NullKey, to.NullValue = key.Is(&to.Key), val.Is(&to.Value)
		return true, nil
	}
}

// SelectKeyFunc takes a new key from the value and keeps the value; the key of
// a null value is null.
func SelectKeyFunc[K, V, KR any](f func(V) KR) Func[K, V, KR, V] {
	in, key := NilOf[V](), NilOf[KR]()
	return func(_ context.Context, r *Record[K, V], to *Record[KR, V]) (bool, error) {
		to.Value, to.NullValue = r.Value, r.NullValue
		if in.Strict(r.NullValue) {
			var zero KR
			to.Key, to.NullKey = zero, true
			return true, nil
		}
		to.Key = f(r.Value)
		to.NullKey = key.Is(&to.Key)
		return true, nil
	}
}

// RekeyFunc takes a new key from the key, value or not.
func RekeyFunc[K, V, KR any](f func(K) KR) Func[K, V, KR, V] {
	key := NilOf[KR]()
	return func(_ context.Context, r *Record[K, V], to *Record[KR, V]) (bool, error) {
		to.Value, to.NullValue = r.Value, r.NullValue
		to.Key = f(r.Key)
		to.NullKey = key.Is(&to.Key)
		return true, nil
	}
}

// PassFunc changes nothing: a table's updates as the records of a stream.
func PassFunc[K, V any]() Func[K, V, K, V] {
	return func(_ context.Context, r *Record[K, V], to *Record[K, V]) (bool, error) {
		*to = *r
		to.Old, to.Outdated = nil, false
		return true, nil
	}
}

// FlatMapValuesFunc appends what an iterator yields.
func FlatMapValuesFunc[K, V, VR any](f func(V) iter.Seq[VR]) FlatFunc[K, V, VR] {
	nils := NilOf[V]()
	return func(_ context.Context, r *Record[K, V], to []VR) ([]VR, error) {
		if nils.Strict(r.NullValue) {
			return to, nil
		}
		for v := range f(r.Value) {
			to = append(to, v)
		}
		return to, nil
	}
}
