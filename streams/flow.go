package streams

import (
	"context"
	"strconv"

	"github.com/millrace/millrace/streams/internal/operator"
)

// Merge is the stream of all records of these streams. Records of one stream
// keep their order; between streams there is none but that of processing. What
// keeps state by key behind a merge needs topics with the same number of
// partitions, or a repartition.
func (s Stream[K, V]) Merge(others ...Stream[K, V]) Stream[K, V] {
	all := append([]Stream[K, V]{s}, others...)
	next := s
	next.place, next.child = behind[K, V](s.app, s.node, "merge", ""), nil
	for i, o := range all {
		if o.app != s.app {
			s.app.graph.Fail(next.node, "the stream %s belongs to another application", o.node.Name)
			continue
		}
		if i > 0 {
			s.app.graph.Link(o.node, next.node)
		}
		next.rekeyed = next.rekeyed || o.rekeyed
		o.out.Attach(next.node.Name, func(b *operator.Builder) (operator.Sink[K, V], error) {
			return operator.Join(b, next.out, func() (operator.Sink[K, V], error) { return next.out.Build(b) })
		})
	}
	return next
}

// Peek calls f for each record and passes it on. A null value of a type without
// nil is passed on without a call. What f does outside of the application is
// done again when a record is processed again after a crash.
func (s Stream[K, V]) Peek(f func(K, V), opts ...Opt) Stream[K, V] {
	return s.filter("peek", func() operator.Predicate[K, V] {
		nils := operator.NilOf[V]()
		return func(_ context.Context, r *operator.Record[K, V]) (bool, error) {
			if !nils.Strict(r.NullValue) {
				f(r.Key, r.Value)
			}
			return true, nil
		}
	}, opts)
}

// TryPeek is Peek with a function that sees the whole record and may fail.
func (s Stream[K, V]) TryPeek(f func(context.Context, *Record[K, V]) error, opts ...Opt) Stream[K, V] {
	return s.filter("peek", func() operator.Predicate[K, V] {
		var in Record[K, V]
		nils := operator.NilOf[V]()
		return func(ctx context.Context, r *operator.Record[K, V]) (bool, error) {
			if nils.Strict(r.NullValue) {
				return true, nil
			}
			in.show(r)
			return true, f(ctx, &in)
		}
	}, opts)
}

// Case is one way out of a Split; make it with When.
type Case[V any] struct {
	match func(V) bool
	opts  []Opt
}

// When is the way of the values that match. As names the way; without it the
// name is its number.
func When[V any](match func(V) bool, opts ...Opt) Case[V] { return Case[V]{match, opts} }

// TryCase is one way out of a TrySplit; make it with TryWhen.
type TryCase[K, V any] struct {
	match func(context.Context, *Record[K, V]) (bool, error)
	opts  []Opt
}

// TryWhen is When with a function that sees the whole record and may fail.
func TryWhen[K, V any](match func(context.Context, *Record[K, V]) (bool, error), opts ...Opt) TryCase[K, V] {
	return TryCase[K, V]{match, opts}
}

// Split sends each record the way of the first case that matches. It returns one
// stream for each case and, as the last, that of the rest, where null values of
// types without nil go too. A stream that nothing is added to drops its records.
//
//	big, small, rest := …
//	ways := orders.Split(streams.When(isBig), streams.When(isSmall))
//	big, small, rest = ways[0], ways[1], ways[2]
func (s Stream[K, V]) Split(cases ...Case[V]) []Stream[K, V] {
	all := make([]way[K, V], len(cases))
	for i, c := range cases {
		all[i] = way[K, V]{func() operator.Predicate[K, V] { return operator.FilterFunc[K](c.match) }, c.opts}
	}
	return s.split(all)
}

// TrySplit is Split with functions that see the whole record and may fail.
func (s Stream[K, V]) TrySplit(cases ...TryCase[K, V]) []Stream[K, V] {
	all := make([]way[K, V], len(cases))
	for i, c := range cases {
		all[i] = way[K, V]{tryPredicate(c.match), c.opts}
	}
	return s.split(all)
}

// way is a case as its node wants it.
type way[K, V any] struct {
	match func() operator.Predicate[K, V]
	opts  []Opt
}

func (s Stream[K, V]) split(ways []way[K, V]) []Stream[K, V] {
	n := s.app.graph.Add(s.node, "split", "")
	n.Detail = pair[K, V]()
	op := &operator.Split[K, V]{}
	streams := make([]Stream[K, V], 0, len(ways)+1)
	for i, w := range ways {
		o := s.app.collect("case "+strconv.Itoa(i+1)+" of "+n.Name, w.opts, forJoin)
		if o.as == "" {
			o.as = n.Name + "." + strconv.Itoa(i+1)
		}
		next := s
		next.child = nil
		next.place = behind[K, V](s.app, n, "case", o.as)
		op.Cases = append(op.Cases, operator.Case[K, V]{Node: next.node.Name, Handler: s.app.handler(o), New: w.match, Out: next.out})
		streams = append(streams, next)
	}
	rest := s
	rest.child = nil
	rest.place = behind[K, V](s.app, n, "rest", "")
	op.Rest = rest.out
	s.out.Attach(n.Name, op.Build)
	return append(streams, rest)
}

// ToTable keeps the latest value of each key. Null keys are dropped and counted,
// null values delete rows.
func (s Stream[K, V]) ToTable(opts ...Opt) Table[K, V] {
	a := s.app
	o := a.collect("to-table behind "+s.node.Name, opts, forAggregate)
	in := s.repartition(o.as, false, o)
	t := stored(a, in.node, "to-table", o, in.key, in.val)
	op := &operator.ToTable[K, V]{Node: t.node.Name, Store: t.node.Name, Handler: a.handler(o), Key: t.key, Value: t.val, Demand: t.demand, Out: t.behindCache(o)}
	in.out.Attach(t.node.Name, op.Build)
	return t
}

// Route writes each record to the topic that f names for it. The topics must
// exist, or be ones that the cluster creates when they are written to. A null
// value of a type without nil reaches f as the zero value.
func (s Stream[K, V]) Route(f func(K, V) string, opts ...Opt) {
	s.route(func() operator.RowFunc[K, V, string] {
		return func(_ context.Context, r *operator.Record[K, V]) (string, error) { return f(r.Key, r.Value), nil }
	}, opts)
}

// TryRoute is Route with a function that sees the whole record and may fail.
func (s Stream[K, V]) TryRoute(f func(context.Context, *Record[K, V]) (string, error), opts ...Opt) {
	s.route(func() operator.RowFunc[K, V, string] {
		var in Record[K, V]
		return func(ctx context.Context, r *operator.Record[K, V]) (string, error) {
			in.show(r)
			return f(ctx, &in)
		}
	}, opts)
}

func (s Stream[K, V]) route(f func() operator.RowFunc[K, V, string], opts []Opt) {
	o := s.app.collect("route behind "+s.node.Name, opts, forSink)
	n := s.app.graph.Add(s.node, "route", o.as)
	n.Detail = pair[K, V]()
	op := &operator.To[K, V]{Node: n.Name, Route: f, Handler: s.app.handler(o), Partition: partitioner[K, V](s.app, n, o),
		Key: codec(s.app, n, "key", o.key, s.key), Value: codec(s.app, n, "value", o.val, s.val)}
	s.out.Attach(n.Name, op.Build)
}
