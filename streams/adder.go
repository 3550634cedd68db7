package streams

import (
	"context"

	"github.com/millrace/millrace/streams/internal/operator"
)

// The functions below fit what a user gives to an aggregation to its node.

func adder[K, V, A any](agg Agg[V, A]) operator.Adder[K, V, A] {
	return operator.Adder[K, V, A]{Init: agg.Init, New: func() operator.AddFunc[K, V, A] {
		return func(_ context.Context, r *operator.Record[K, V], a A, _ bool) (A, error) {
			return agg.Add(a, r.Value), nil
		}
	}}
}

// tryAdder is that of a function that sees the whole record and may fail.
func tryAdder[K, V, A any](init func() A, add func(context.Context, *Record[K, V], A) (A, error)) operator.Adder[K, V, A] {
	return operator.Adder[K, V, A]{Init: init, New: tryAdd(add)}
}

func tryAdd[K, V, A any](add func(context.Context, *Record[K, V], A) (A, error)) func() operator.AddFunc[K, V, A] {
	return func() operator.AddFunc[K, V, A] {
		var in Record[K, V]
		return func(ctx context.Context, r *operator.Record[K, V], a A, _ bool) (A, error) {
			in.show(r)
			return add(ctx, &in, a)
		}
	}
}

// counter counts records, whatever their values.
func counter[K, V any]() operator.Adder[K, V, int64] {
	return operator.Adder[K, V, int64]{Init: func() int64 { return 0 }, New: step[K, V](1)}
}

func step[K, V any](by int64) func() operator.AddFunc[K, V, int64] {
	return func() operator.AddFunc[K, V, int64] {
		return func(_ context.Context, _ *operator.Record[K, V], n int64, _ bool) (int64, error) { return n + by, nil }
	}
}

// reducer takes the first value as it is.
func reducer[K, V any](f func(V, V) V) operator.Adder[K, V, V] {
	return operator.Adder[K, V, V]{Init: zero[V], New: func() operator.AddFunc[K, V, V] {
		return func(_ context.Context, r *operator.Record[K, V], a V, fresh bool) (V, error) {
			if fresh {
				return r.Value, nil
			}
			return f(a, r.Value), nil
		}
	}}
}

func tryReducer[K, V any](f func(context.Context, V, *Record[K, V]) (V, error)) operator.Adder[K, V, V] {
	return operator.Adder[K, V, V]{Init: zero[V], New: func() operator.AddFunc[K, V, V] {
		var in Record[K, V]
		return func(ctx context.Context, r *operator.Record[K, V], a V, fresh bool) (V, error) {
			if fresh {
				return r.Value, nil
			}
			in.show(r)
			return f(ctx, a, &in)
		}
	}}
}

func zero[T any]() (none T) { return none }
