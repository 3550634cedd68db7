package streams

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace/millrace/streams/internal/operator"
	"github.com/millrace/millrace/streams/internal/topology"
)

// JoinWindow says how far apart in time the records of two streams may be to
// meet; make one with Within, Before, After or Around.
type JoinWindow struct {
	before, after time.Duration
	options
	err error
}

// Within lets records meet that are no further apart than d. The options are
// Grace, Strict and Retention.
func Within(d time.Duration, opts ...Opt) JoinWindow { return Around(d, d, opts...) }

// Before lets a record meet those of the other stream that are up to d older, or
// of the same time.
func Before(d time.Duration, opts ...Opt) JoinWindow { return Around(d, 0, opts...) }

// After lets a record meet those of the other stream that are up to d younger, or
// of the same time.
func After(d time.Duration, opts ...Opt) JoinWindow { return Around(0, d, opts...) }

// Around lets a record meet those of the other stream from before it to after it.
func Around(before, after time.Duration, opts ...Opt) JoinWindow {
	o, err := collect(opts, forJoinWindow)
	whole := func(d time.Duration) bool { return d >= 0 && d%time.Millisecond == 0 }
	if err == nil && !(whole(before) && whole(after) && whole(o.grace)) {
		err = fmt.Errorf("reach of the join (%v before, %v after) and grace %v must be whole milliseconds, not negative", before, after, o.grace)
	}
	return JoinWindow{before, after, o, err}
}

// Strict makes a stream-stream join exact: records that are later than the grace
// are dropped and counted, and none goes out alone as long as one that is not late
// could still meet it. So a record never comes both alone and joined. Without it
// the join does as Kafka Streams: no record is dropped for being late, and one
// that comes after its reach is over goes out alone at once, and again with a
// partner that comes even later.
func Strict() Opt { return Opt{"Strict", func(o *options) { o.strict = true }} }

// reach works the window out; mistakes are reported for the node.
func (w JoinWindow) reach(a *App, n *topology.Node) operator.Reach {
	if w.err != nil {
		a.graph.Fail(n, "%w", w.err)
	}
	r := operator.Reach{BeforeMs: w.before.Milliseconds(), AfterMs: w.after.Milliseconds(), GraceMs: w.grace.Milliseconds(), Strict: w.strict}
	least := r.BeforeMs + r.AfterMs + r.GraceMs
	// Once more the reach: a record that is late by that much finds everyone.
	r.RetentionMs = least + r.BeforeMs + r.AfterMs
	if w.retention != 0 {
		r.RetentionMs = w.retention.Milliseconds()
		if r.RetentionMs < least {
			a.graph.Fail(n, "retention is %v, at least reach plus grace (%v) is needed", w.retention, time.Duration(least)*time.Millisecond)
		}
	}
	return r
}

// String reads like "from 1m0s before to 0s after, grace 10s".
func (w JoinWindow) String() string {
	s := fmt.Sprintf("from %v before to %v after, grace %v", w.before, w.after, w.grace)
	if w.strict {
		s += ", strict"
	}
	return s
}

// Join joins the records of two streams that have the same key and are close in
// time. A record meets those of the other stream that have come before it, the
// oldest first; results have the larger of the two times. Null keys and null
// values are dropped and counted. A stream joined with itself meets each record
// once with itself.
//
// The topics of both sides must have the same number of partitions.
func (s Stream[K, V]) Join[VO, VR any](o Stream[K, VO], f func(V, VO) VR, w JoinWindow, opts ...Opt) Stream[K, VR] {
	return joinStreams(s, o, "join", operator.Sides{}, pairOf[K](func(v Maybe[V], x Maybe[VO]) VR { return f(v.V, x.V) }), w, opts)
}

// LeftJoin is Join that lets records of this stream which meet nobody go out
// alone, when stream time has passed all they could have met plus the grace, in
// order of time; and at once if their key is null.
func (s Stream[K, V]) LeftJoin[VO, VR any](o Stream[K, VO], f func(V, Maybe[VO]) VR, w JoinWindow, opts ...Opt) Stream[K, VR] {
	sides := operator.Sides{LeftAlone: true}
	return joinStreams(s, o, "left-join", sides, pairOf[K](func(v Maybe[V], x Maybe[VO]) VR { return f(v.V, x) }), w, opts)
}

// OuterJoin is LeftJoin for both sides.
func (s Stream[K, V]) OuterJoin[VO, VR any](o Stream[K, VO], f func(Maybe[V], Maybe[VO]) VR, w JoinWindow, opts ...Opt) Stream[K, VR] {
	sides := operator.Sides{LeftAlone: true, RightAlone: true}
	return joinStreams(s, o, "outer-join", sides, pairOf[K](f), w, opts)
}

// TryJoin is Join with a function that may fail. The record has this stream's
// value, the time of the result, and the headers of the record that came last.
func (s Stream[K, V]) TryJoin[VO, VR any](o Stream[K, VO], f func(context.Context, *Record[K, V], VO) (VR, error), w JoinWindow, opts ...Opt) Stream[K, VR] {
	return joinStreams(s, o, "join", operator.Sides{}, tryPair(func(ctx context.Context, r *Record[K, V], x Maybe[VO]) (VR, error) {
		return f(ctx, r, x.V)
	}), w, opts)
}

// TryLeftJoin is LeftJoin with a function that may fail; see TryJoin. A record
// that goes out alone after waiting has no headers.
func (s Stream[K, V]) TryLeftJoin[VO, VR any](o Stream[K, VO], f func(context.Context, *Record[K, V], Maybe[VO]) (VR, error), w JoinWindow, opts ...Opt) Stream[K, VR] {
	return joinStreams(s, o, "left-join", operator.Sides{LeftAlone: true}, tryPair(f), w, opts)
}

// TryOuterJoin is OuterJoin with a function that may fail; see TryLeftJoin.
func (s Stream[K, V]) TryOuterJoin[VO, VR any](o Stream[K, VO], f func(context.Context, *Record[K, Maybe[V]], Maybe[VO]) (VR, error), w JoinWindow, opts ...Opt) Stream[K, VR] {
	return joinStreams(s, o, "outer-join", operator.Sides{LeftAlone: true, RightAlone: true}, tryOuter(f), w, opts)
}

func joinStreams[K, V, VO, VR any](s Stream[K, V], o Stream[K, VO], kind string, sides operator.Sides, f func() operator.PairFunc[K, V, VO, VR], w JoinWindow, opts []Opt) Stream[K, VR] {
	a := s.app
	opt := a.collect(kind+" behind "+s.node.Name, opts, forStreamJoin)
	left, right := s.repartition("", false, options{onError: opt.onError}), o.repartition("", false, options{onError: opt.onError})
	next := Stream[K, VR]{place: behind[K, VR](a, left.node, kind, opt.as)}
	n := next.node
	if a != o.app {
		a.graph.Fail(n, "the stream %s belongs to another application", o.node.Name)
		return next
	}
	n.Detail += " " + w.String()
	reach := w.reach(a, n)
	if n.Topic = opt.lateTo; n.Topic != "" && !reach.Strict {
		a.graph.Fail(n, "LateTo without Strict: the join drops no record for being late")
	}
	key := codec(a, n, "key", opt.key, left.key)
	readable(a, n, "key", key)
	next.key = key
	if self, ok := any(right).(Stream[K, V]); ok && self.out == left.out {
		op := &operator.SelfJoin[K, V, VR]{Node: n.Name, Handler: a.handler(opt), Reach: reach, LateTo: opt.lateTo, Key: key, Out: next.out}
		op.New = any(f).(func() operator.PairFunc[K, V, V, VR])
		op.Rows, op.Value = bufferOf(left, n, "records", reach, opt)
		left.out.Attach(n.Name, op.Build)
		return next
	}
	a.graph.Link(right.node, n)
	a.graph.Copartition(left.node, right.node)
	op := &operator.StreamJoin[K, V, VO, VR]{Node: n.Name, Handler: a.handler(opt), Sides: sides, Reach: reach, LateTo: opt.lateTo, Key: key, New: f, Out: next.out}
	op.LeftRows, op.Left = bufferOf(left, n, "left", reach, opt)
	op.RightRows, op.Right = bufferOf(right, n, "right", reach, opt)
	if sides != (operator.Sides{}) {
		op.Waiting = n.Name
		n.Shape = "waiting records of " + typeName[K]()
		n.Store = a.keep(n, n.Name, opt)
	}
	left.out.Attach(n.Name, op.BuildLeft)
	right.out.Attach(n.Name, op.BuildRight)
	return next
}

// bufferOf adds the buffer of one side of a join; its name is the join's with the
// side's.
func bufferOf[K, V any](s Stream[K, V], join *topology.Node, side string, reach operator.Reach, o options) (store string, val *operator.Codec[V]) {
	n := s.app.graph.Add(s.node, "buffer", join.Name+"."+side)
	n.Named = join.Named
	n.Detail = pair[K, V]()
	n.Shape = "records " + pair[K, V]() + " in segments of " + (time.Duration(max(reach.BeforeMs+reach.AfterMs, 1)) * time.Millisecond).String()
	n.Store = s.app.keep(n, n.Name, o)
	n.Store.RetentionMs = reach.RetentionMs
	val = codec(s.app, n, "value", nil, s.val)
	readable(s.app, n, "value", val)
	return n.Name, val
}
