package streams

import (
	"context"
	"iter"

	"github.com/millrace/millrace/streams/internal/operator"
)

// TryFilter is Filter with a function that sees the whole record and may fail.
func (s Stream[K, V]) TryFilter(keep func(context.Context, *Record[K, V]) (bool, error), opts ...Opt) Stream[K, V] {
	return s.filter("filter", tryPredicate(keep), opts)
}

func tryPredicate[K, V any](keep func(context.Context, *Record[K, V]) (bool, error)) func() operator.Predicate[K, V] {
	return func() operator.Predicate[K, V] {
		var in Record[K, V]
		nils := operator.NilOf[V]()
		return func(ctx context.Context, r *operator.Record[K, V]) (bool, error) {
			if nils.Strict(r.NullValue) {
				return false, nil
			}
			in.show(r)
			return keep(ctx, &in)
		}
	}
}

// TryMapValues is MapValues with a function that sees the whole record and may
// fail.
func (s Stream[K, V]) TryMapValues[VR any](f func(context.Context, *Record[K, V]) (VR, error), opts ...Opt) Stream[K, VR] {
	return mapValues(s, "map-values", func() operator.Func[K, V, K, VR] {
		var in Record[K, V]
		null, nils := operator.NilOf[V](), operator.NilOf[VR]()
		return func(ctx context.Context, r *operator.Record[K, V], to *operator.Record[K, VR]) (_ bool, err error) {
			to.Key, to.NullKey = r.Key, r.NullKey
			if null.Strict(r.NullValue) {
				var zero VR
				to.Value, to.NullValue = zero, true
				return true, nil
			}
			in.show(r)
			to.Value, err = f(ctx, &in)
			to.NullValue = nils.Is(&to.Value)
			return true, err
		}
	}, opts)
}

// TryMap is Map with a function that sees the whole record, may fail, and may
// set time and headers of the result.
func (s Stream[K, V]) TryMap[KR, VR any](f func(context.Context, *Record[K, V]) (Record[KR, VR], error), opts ...Opt) Stream[KR, VR] {
	next := transform(s.place, "map", func() operator.Func[K, V, KR, VR] {
		var in Record[K, V]
		null, key, val := operator.NilOf[V](), operator.NilOf[KR](), operator.NilOf[VR]()
		return func(ctx context.Context, r *operator.Record[K, V], to *operator.Record[KR, VR]) (bool, error) {
			if null.Strict(r.NullValue) {
				return false, nil
			}
			in.show(r)
			out, err := f(ctx, &in)
			out.store(to, key, val)
			return true, err
		}
	}, opts)
	return Stream[KR, VR]{place: next, rekeyed: true}
}

// TryFlatMapValues is FlatMapValues with a function that sees the whole record
// and may fail. An error in the sequence fails the record: none of its values
// is passed on.
func (s Stream[K, V]) TryFlatMapValues[VR any](f func(context.Context, *Record[K, V]) iter.Seq2[VR, error], opts ...Opt) Stream[K, VR] {
	return flatMapValues(s, "flat-map-values", func() operator.FlatFunc[K, V, VR] {
		var in Record[K, V]
		null := operator.NilOf[V]()
		return func(ctx context.Context, r *operator.Record[K, V], to []VR) ([]VR, error) {
			if null.Strict(r.NullValue) {
				return to, nil
			}
			in.show(r)
			for v, err := range f(ctx, &in) {
				if err != nil {
					return to, err
				}
				to = append(to, v)
			}
			return to, nil
		}
	}, opts)
}

// TrySelectKey is SelectKey with a function that sees the whole record and may
// fail.
func (s Stream[K, V]) TrySelectKey[KR any](f func(context.Context, *Record[K, V]) (KR, error), opts ...Opt) Stream[KR, V] {
	return selectKey(s, "select-key", trySelectKey(f), opts)
}

func trySelectKey[K, V, KR any](f func(context.Context, *Record[K, V]) (KR, error)) func() operator.Func[K, V, KR, V] {
	return func() operator.Func[K, V, KR, V] {
		var in Record[K, V]
		null, nils := operator.NilOf[V](), operator.NilOf[KR]()
		return func(ctx context.Context, r *operator.Record[K, V], to *operator.Record[KR, V]) (_ bool, err error) {
			to.Value, to.NullValue = r.Value, r.NullValue
			if null.Strict(r.NullValue) {
				var zero KR
				to.Key, to.NullKey = zero, true
				return true, nil
			}
			in.show(r)
			to.Key, err = f(ctx, &in)
			to.NullKey = nils.Is(&to.Key)
			return true, err
		}
	}
}
