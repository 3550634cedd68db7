package streams

import (
	"context"

	"github.com/millrace/millrace/streams/internal/operator"
	"github.com/millrace/millrace/streams/internal/topology"
)

// Grouped is a stream about to be aggregated by key.
type Grouped[K, V any] struct {
	stream Stream[K, V]
	name   string // of the repartition topic, if there has to be one
	opts   options
}

// GroupBy groups by a key taken from the value. Records go through a
// repartition topic, which drops null keys; As names it.
func (s Stream[K, V]) GroupBy[KR any](f func(V) KR, opts ...Opt) Grouped[KR, V] {
	return groupBy(s, func() operator.Func[K, V, KR, V] { return operator.SelectKeyFunc[K](f) }, opts)
}

// TryGroupBy is GroupBy with a function that sees the whole record and may
// fail.
func (s Stream[K, V]) TryGroupBy[KR any](f func(context.Context, *Record[K, V]) (KR, error), opts ...Opt) Grouped[KR, V] {
	return groupBy(s, trySelectKey(f), opts)
}

func groupBy[K, V, KR any](s Stream[K, V], f func() operator.Func[K, V, KR, V], opts []Opt) Grouped[KR, V] {
	o := s.app.collect("group-by behind "+s.node.Name, opts, forGroup)
	step := []Opt{As(o.as)}
	if o.onError != nil {
		step = append(step, OnError(o.onError))
	}
	return Grouped[KR, V]{stream: selectKey(s, "group-by", f, step), opts: o}
}

// GroupByKey groups by the key as it is. A repartition topic is put in only if
// the key was changed upstream; As names it.
func (s Stream[K, V]) GroupByKey(opts ...Opt) Grouped[K, V] {
	o := s.app.collect("group-by-key behind "+s.node.Name, opts, forGroup)
	return Grouped[K, V]{stream: s, name: o.as, opts: o}
}

// input is the grouped stream in the tasks that own its keys.
func (g Grouped[K, V]) input() Stream[K, V] {
	s := g.stream.repartition(g.name, g.opts)
	if g.opts.key != nil && !g.stream.rekeyed {
		s.key = codec[K](s.app, s.node, "key", g.opts.key, nil)
	}
	return s
}

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

// adder fits an aggregation to its node.
func adder[K, V, A any](agg Agg[V, A]) operator.Adder[K, V, A] {
	return operator.Adder[K, V, A]{Init: agg.Init, New: func() operator.AddFunc[K, V, A] {
		return func(_ context.Context, r *operator.Record[K, V], a A) (A, error) { return agg.Add(a, r.Value), nil }
	}}
}

// tryAdder fits a function that sees the whole record and may fail.
func tryAdder[K, V, A any](init func() A, add func(context.Context, *Record[K, V], A) (A, error)) operator.Adder[K, V, A] {
	return operator.Adder[K, V, A]{Init: init, New: func() operator.AddFunc[K, V, A] {
		var in Record[K, V]
		return func(ctx context.Context, r *operator.Record[K, V], a A) (A, error) {
			in.show(r)
			return add(ctx, &in, a)
		}
	}}
}

// counter counts records, whatever their values.
func counter[K, V any]() operator.Adder[K, V, int64] {
	return operator.Adder[K, V, int64]{Init: func() int64 { return 0 }, New: func() operator.AddFunc[K, V, int64] {
		return func(_ context.Context, _ *operator.Record[K, V], n int64) (int64, error) { return n + 1, nil }
	}}
}

// Count counts the records of each key. Null keys and null values are not
// counted.
func (g Grouped[K, V]) Count(opts ...Opt) Table[K, int64] {
	return aggregate(g, "count", counter[K, V](), opts)
}

// Aggregate keeps an aggregate of each key's values. Null keys and null values
// are dropped.
func (g Grouped[K, V]) Aggregate[A any](agg Agg[V, A], opts ...Opt) Table[K, A] {
	return aggregate(g, "aggregate", adder[K](agg), opts)
}

// TryAggregate is Aggregate with a function that sees the whole record and may
// fail. When it fails, the row stays as it was.
func (g Grouped[K, V]) TryAggregate[A any](init func() A, add func(context.Context, *Record[K, V], A) (A, error), opts ...Opt) Table[K, A] {
	return aggregate(g, "aggregate", tryAdder(init, add), opts)
}

func aggregate[K, V, A any](g Grouped[K, V], kind string, add operator.Adder[K, V, A], opts []Opt) Table[K, A] {
	s := g.input()
	a := s.app
	o := a.collect(kind+" behind "+s.node.Name, opts, forAggregate)
	t := Table[K, A]{place: behind[K, A](a, s.node, kind, o.as)}
	n := t.node
	n.Shape = "rows " + pair[K, A]()
	n.Store = &topology.Store{Name: n.Name, InMemory: o.inMemory, Changelog: topology.InternalName(a.id, n.Name, topology.Changelog)}
	t.store = n.Name
	t.key, t.val = codec(a, n, "key", o.key, s.key), codec[A](a, n, "value", o.val, nil)
	readable(a, n, "value", t.val)
	op := &operator.Aggregate[K, V, A]{Node: n.Name, Store: t.store, Handler: a.handler(o), Key: t.key, Value: t.val, Adder: add, Out: t.out}
	s.out.Attach(op.Build)
	return t
}
