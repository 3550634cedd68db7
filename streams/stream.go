package streams

import (
	"errors"
	"iter"
	"regexp"
	"time"

	"github.com/millrace/millrace/streams/internal/operator"
	"github.com/millrace/millrace/streams/internal/task"
	"github.com/millrace/millrace/streams/internal/topology"
)

// Stream is an endless sequence of records with keys of type K and values of
// type V. It is a handle on a place in the topology: methods add nodes behind
// it and return the next place. Several nodes behind the same stream each get
// every record, in the order they were added in.
type Stream[K, V any] struct {
	place[K, V]
	// Codecs that came with the stream, nil where an operator has changed the
	// type: what a source was told about its serdes holds further down.
	key *operator.Codec[K]
	val *operator.Codec[V]
	// rekeyed: the key has changed since the records were last partitioned, so
	// whatever keeps state by key needs a repartition first.
	rekeyed bool
	// child gives a name to a part of a processor's output; else nil.
	child func(name string, out any)
}

// place is a place in the topology: a node and the typed end of it that others
// are added behind. It has no methods, so that a place of windowed keys may
// exist inside types that lead back to Stream; Go refuses a Stream of them
// there as an endless instantiation.
type place[K, V any] struct {
	app  *App
	node *topology.Node
	out  *operator.Outlet[K, V]
}

// behind makes the place of a new node behind parent.
func behind[K, V any](a *App, parent *topology.Node, kind, as string) place[K, V] {
	n := a.graph.Add(parent, kind, as)
	n.Detail = pair[K, V]()
	return place[K, V]{a, n, new(operator.Outlet[K, V])}
}

// Stream reads a topic. Reading the same topic again, with the same types and
// without options, is the same stream.
func (a *App) Stream[K, V any](topic string, opts ...Opt) Stream[K, V] {
	type id struct{ topic, types string }
	same := id{topic, pair[K, V]()}
	if s, ok := a.sources[same].(Stream[K, V]); ok && len(opts) == 0 {
		return s
	}
	o := a.collect("stream "+topic, opts, forSource)
	n := a.graph.Source("stream", topic, o.as)
	n.Detail = pair[K, V]()
	s := Stream[K, V]{place: place[K, V]{a, n, new(operator.Outlet[K, V])}}
	s.key, s.val = codec[K](a, n, "key", o.key, nil), codec[V](a, n, "value", o.val, nil)
	s.readFrom(topic, o, a.handler(o))
	if _, ok := a.sources[same]; !ok {
		a.sources[same] = s
	}
	return s
}

// StreamOf reads several topics as one stream, in order of time where they come
// together in a task. Options are those of each of the topics.
func (a *App) StreamOf[K, V any](topics []string, opts ...Opt) Stream[K, V] {
	var all []Stream[K, V]
	for _, topic := range topics {
		all = append(all, a.Stream[K, V](topic, opts...))
	}
	if len(all) == 0 {
		a.errs = append(a.errs, errors.New("StreamOf: no topic is given"))
		return a.Stream[K, V]("", opts...)
	}
	return all[0].Merge(all[1:]...)
}

// StreamMatching reads all topics whose whole name the pattern matches, as one stream,
// in order of time where they come together in a task. Topics that come or go while the
// application runs are noticed within LookForTopics: its workers commit and go on with
// the new set. Topics that the application itself names, and its internal ones, belong
// to no pattern. At least one must match at the start.
//
// Task n reads partition n of each topic, and there are as many tasks as the topic with
// the most partitions has. Once a store behind the stream has its changelog, that fixes
// the number: topics with more partitions are left out then, and the log says so. Name
// the stream with As; without, its name is what of the pattern may be part of a topic's.
func (a *App) StreamMatching[K, V any](pattern *regexp.Regexp, opts ...Opt) Stream[K, V] {
	o := a.collect("stream of topics matching "+pattern.String(), opts, forSource)
	whole := regexp.MustCompile("^(?:" + pattern.String() + ")$")
	name := o.as
	if name == "" {
		name = topology.PatternName(pattern)
	}
	topic := topology.PatternTopic(pattern)
	n := a.graph.Source("stream", topic, name)
	n.Detail, n.Pattern, n.Named = pair[K, V](), whole, o.as != ""
	s := Stream[K, V]{place: place[K, V]{a, n, new(operator.Outlet[K, V])}}
	s.key, s.val = codec[K](a, n, "key", o.key, nil), codec[V](a, n, "value", o.val, nil)
	s.readFrom(topic, o, a.handler(o))
	return s
}

// readFrom makes the stream's node the source of a topic.
func (s Stream[K, V]) readFrom(topic string, o options, handler task.Handler) {
	readable(s.app, s.node, "key", s.key)
	readable(s.app, s.node, "value", s.val)
	src := &operator.Source[K, V]{Node: s.node.Name, Topic: topic, Handler: handler, Key: s.key, Value: s.val, Out: s.out}
	s.node.Begin, src.Invalid = o.begin, operator.InvalidTime(o.invalid)
	s.node.Timed = o.invalid != 0
	if o.timestamps != nil {
		f, ok := o.timestamps.(func(*Record[K, V], time.Time) time.Time)
		if !ok {
			s.app.graph.Fail(s.node, "the records are %s, TimestampBy has a %T", pair[K, V](), o.timestamps)
		}
		s.node.Timed = true
		src.Time = func() operator.TimeFunc[K, V] {
			var in Record[K, V]
			return func(r *operator.Record[K, V], partitionMs int64) int64 {
				in.show(r)
				return f(&in, time.UnixMilli(partitionMs).UTC()).UnixMilli()
			}
		}
	}
	s.node.Root = &operator.Root{Topic: topic, Build: src.Build}
}

// Filter keeps the records whose value passes. A null value of a type without
// nil does not.
func (s Stream[K, V]) Filter(keep func(V) bool, opts ...Opt) Stream[K, V] {
	return s.filter("filter", func() operator.Predicate[K, V] { return operator.FilterFunc[K](keep) }, opts)
}

func (s Stream[K, V]) filter(kind string, f func() operator.Predicate[K, V], opts []Opt) Stream[K, V] {
	o := s.app.collect(kind+" behind "+s.node.Name, opts, forStep)
	next := s
	next.place, next.child = behind[K, V](s.app, s.node, kind, o.as), nil
	op := &operator.Filter[K, V]{Node: next.node.Name, Handler: s.app.handler(o), New: f, Out: next.out}
	s.out.Attach(next.node.Name, operator.Using(s.app.use(next.node, o), op.Build))
	return next
}

// transform adds a node that makes one record of each, or none.
func transform[K, V, KR, VR any](s place[K, V], kind string, f func() operator.Func[K, V, KR, VR], opts []Opt) place[KR, VR] {
	o := s.app.collect(kind+" behind "+s.node.Name, opts, forStep)
	next := behind[KR, VR](s.app, s.node, kind, o.as)
	op := &operator.Transform[K, V, KR, VR]{Node: next.node.Name, Handler: s.app.handler(o), New: f, Out: next.out}
	s.out.Attach(next.node.Name, operator.Using(s.app.use(next.node, o), op.Build))
	return next
}

// mapValues is a transform that keeps the key.
func mapValues[K, V, VR any](s Stream[K, V], kind string, f func() operator.Func[K, V, K, VR], opts []Opt) Stream[K, VR] {
	return Stream[K, VR]{place: transform(s.place, kind, f, opts), key: s.key, rekeyed: s.rekeyed}
}

// selectKey is a transform that keeps the value.
func selectKey[K, V, KR any](s Stream[K, V], kind string, f func() operator.Func[K, V, KR, V], opts []Opt) Stream[KR, V] {
	return Stream[KR, V]{place: transform(s.place, kind, f, opts), val: s.val, rekeyed: true}
}

// MapValues replaces the value and keeps key, time and headers. A null value of
// a type without nil stays null.
func (s Stream[K, V]) MapValues[VR any](f func(V) VR, opts ...Opt) Stream[K, VR] {
	return mapValues(s, "map-values", func() operator.Func[K, V, K, VR] { return operator.MapValuesFunc[K](f) }, opts)
}

// Map replaces key and value. What keeps state by key behind it goes through a
// repartition topic first; use MapValues where the key stays.
func (s Stream[K, V]) Map[KR, VR any](f func(K, V) (KR, VR), opts ...Opt) Stream[KR, VR] {
	next := transform(s.place, "map", func() operator.Func[K, V, KR, VR] { return operator.MapFunc(f) }, opts)
	return Stream[KR, VR]{place: next, rekeyed: true}
}

// FlatMapValues makes a record of each value that f yields, with the same key,
// time and headers.
func (s Stream[K, V]) FlatMapValues[VR any](f func(V) iter.Seq[VR], opts ...Opt) Stream[K, VR] {
	return flatMapValues(s, "flat-map-values", func() operator.FlatFunc[K, V, VR] { return operator.FlatMapValuesFunc[K](f) }, opts)
}

func flatMapValues[K, V, VR any](s Stream[K, V], kind string, f func() operator.FlatFunc[K, V, VR], opts []Opt) Stream[K, VR] {
	o := s.app.collect(kind+" behind "+s.node.Name, opts, forStep)
	next := Stream[K, VR]{place: behind[K, VR](s.app, s.node, kind, o.as), key: s.key, rekeyed: s.rekeyed}
	op := &operator.FlatMapValues[K, V, VR]{Node: next.node.Name, Handler: s.app.handler(o), New: f, Out: next.out}
	s.out.Attach(next.node.Name, operator.Using(s.app.use(next.node, o), op.Build))
	return next
}

// SelectKey takes a new key from the value. The key of a null value of a type
// without nil is null. What keeps state by key behind it goes through a
// repartition topic first, which drops null keys.
func (s Stream[K, V]) SelectKey[KR any](f func(V) KR, opts ...Opt) Stream[KR, V] {
	return selectKey(s, "select-key", func() operator.Func[K, V, KR, V] { return operator.SelectKeyFunc[K](f) }, opts)
}

// To writes the records to a topic. Keys decide the partition as in Kafka's own
// clients (murmur2), so that both sides of a join agree.
func (s Stream[K, V]) To(topic string, opts ...Opt) {
	to(s.place, topic, s.key, s.val, opts)
}

func to[K, V any](s place[K, V], topic string, key *operator.Codec[K], val *operator.Codec[V], opts []Opt) {
	o := s.app.collect("to "+topic+" behind "+s.node.Name, opts, forSink)
	n := s.app.graph.Add(s.node, "to", o.as)
	n.Topic, n.Detail = topic, pair[K, V]()
	op := &operator.To[K, V]{Node: n.Name, Topic: topic, Handler: s.app.handler(o), Partition: partitioner[K, V](s.app, n, o),
		Key: codec(s.app, n, "key", o.key, key), Value: codec(s.app, n, "value", o.val, val)}
	s.out.Attach(n.Name, op.Build)
}

// Repartition sends the records through a topic of the application's own to the
// tasks that own their keys, whether or not a key has changed; null keys are
// dropped and counted. What needs it does it by itself; this is for work that
// should be spread by key all the same. As names the topic; Partitions and
// PartitionBy say how many partitions it has and which of them a record goes to.
func (s Stream[K, V]) Repartition(opts ...Opt) Stream[K, V] {
	o := s.app.collect("repartition behind "+s.node.Name, opts, forRepartition)
	if o.partitions < 0 {
		s.app.graph.Fail(s.node, "a repartition topic of %d partitions", o.partitions)
	}
	s.rekeyed = true
	far := s.repartition(o.as, false, o)
	next := far
	next.out = new(operator.Outlet[K, V])
	op := &operator.DropNullKeys[K, V]{Node: far.node.Name, Out: next.out}
	far.out.Attach("", op.Build) // a part of the far end
	return next
}

// far is the far end of a repartition topic.
type far[K, V any] struct {
	Stream[K, V]
	near *operator.To[K, V]
}

// repartition returns the stream with its records in the tasks that own their
// keys: itself, if no key has changed, else the far end of a topic. Everything
// behind the same place and name shares the topic. Null keys do not pass unless
// somebody behind it wants them; whoever does not drops them once more.
func (s Stream[K, V]) repartition(name string, nullKeys bool, o options) Stream[K, V] {
	if !s.rekeyed {
		return s
	}
	if name == "" {
		name = s.node.Name
	}
	type id struct {
		out  *operator.Outlet[K, V]
		name string
	}
	same := id{s.out, name}
	f, ok := s.app.repartitioned[same].(far[K, V])
	if !ok {
		f = s.cut(name, o)
		s.app.repartitioned[same] = f
	}
	f.near.NullKeys = f.near.NullKeys || nullKeys
	return f.Stream
}

// cut puts a repartition topic behind the stream.
func (s Stream[K, V]) cut(name string, o options) far[K, V] {
	sink, source := s.app.graph.Repartition(s.node, name)
	source.Named = source.Named || name != s.node.Name
	sink.Detail, source.Detail = pair[K, V](), pair[K, V]()
	f := far[K, V]{Stream: Stream[K, V]{place: place[K, V]{s.app, source, new(operator.Outlet[K, V])}}}
	f.key, f.val = codec(s.app, source, "key", o.key, s.key), codec(s.app, source, "value", o.val, s.val)
	f.near = &operator.To[K, V]{Node: sink.Name, Topic: sink.Topic, Handler: s.app.handler(o), Key: f.key, Value: f.val, Repartition: true,
		Partition: partitioner[K, V](s.app, sink, o)}
	source.Partitions = o.partitions
	s.out.Attach(sink.Name, f.near.Build)
	f.readFrom(source.Topic, options{}, s.app.handler(o))
	return f
}
