package streams

// Agg is an aggregation: where it starts and how a value is added. Make one
// with Sum or Fold.
type Agg[V, A any] struct {
	Init func() A
	Add  func(A, V) A
}

// Num is what Sum can add.
type Num interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// Sum adds up a number taken from each value.
func Sum[V any, N Num](number func(V) N) Agg[V, N] {
	return Agg[V, N]{Init: func() N { return 0 }, Add: func(sum N, v V) N { return sum + number(v) }}
}

// Fold starts with what init returns and calls add for each value. The
// aggregate given to add may be changed in place and returned. A nil aggregate
// deletes the row.
func Fold[V, A any](init func() A, add func(A, V) A) Agg[V, A] {
	return Agg[V, A]{Init: init, Add: add}
}
