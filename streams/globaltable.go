package streams

import (
	"context"

	"github.com/millrace/millrace/streams/internal/operator"
	"github.com/millrace/millrace/streams/internal/topology"
)

// GlobalTable is a topic as a table of which each worker has a copy, all partitions
// of it: look-ups may be by any key, whatever the partitions of the stream.
type GlobalTable[K, V any] struct {
	app  *App
	name string
	key  *operator.Codec[K]
	val  *operator.Codec[V]
	view operator.View[V]
}

// GlobalTable reads a topic as a global table. It is read from its start before the
// first record is processed, and kept in memory. It is not joined by time: a look-up
// finds what has arrived. Records without a key, and bytes that do not decode, are
// left out. Give it to topics that are small and change little.
func (a *App) GlobalTable[K, V any](topic string, opts ...Opt) GlobalTable[K, V] {
	type id struct{ topic, types string }
	same := id{topic, pair[K, V]()}
	if t, ok := a.sources[same].(GlobalTable[K, V]); ok && len(opts) == 0 {
		return t
	}
	o := a.collect("global table "+topic, opts, forGlobal)
	name := o.as
	if name == "" {
		name = topic + ".global"
	}
	at := &topology.Node{Name: name, Topic: topic} // where mistakes in its serdes are reported
	t := GlobalTable[K, V]{app: a, name: name, key: codec[K](a, at, "key", o.key, nil)}
	val := codec[V](a, at, "value", o.val, nil)
	readable(a, at, "key", t.key)
	readable(a, at, "value", val)
	t.val = val
	showTable(a, name, t.View)
	rows := &operator.TableSource[K, V]{Key: t.key, Value: val}
	a.graph.Global(topology.Global{Name: name, Topic: topic, Row: rows.Restorer(), Detail: "rows " + pair[K, V]()})
	t.view = operator.StoreView(name, val)
	if _, ok := a.sources[same]; !ok {
		a.sources[same] = t
	}
	return t
}

// JoinGlobal joins each record with the row of a global table that key names; a nil
// key names none. Records without a row give nothing, null values are dropped and
// counted. The result keeps the record's key, time and headers.
func (s Stream[K, V]) JoinGlobal[GK, GV, VR any](t GlobalTable[GK, GV], key func(K, V) GK, f func(V, GV) VR, opts ...Opt) Stream[K, VR] {
	return joinGlobal(s, t, false, globalKey(key), func() operator.JoinFunc[K, V, GV, VR] {
		return func(_ context.Context, r *operator.Record[K, V], row GV, _ bool) (VR, error) {
			return f(r.Value, row), nil
		}
	}, opts)
}

// LeftJoinGlobal is JoinGlobal that keeps the records without a row.
func (s Stream[K, V]) LeftJoinGlobal[GK, GV, VR any](t GlobalTable[GK, GV], key func(K, V) GK, f func(V, Maybe[GV]) VR, opts ...Opt) Stream[K, VR] {
	return joinGlobal(s, t, true, globalKey(key), func() operator.JoinFunc[K, V, GV, VR] {
		return func(_ context.Context, r *operator.Record[K, V], row GV, found bool) (VR, error) {
			return f(r.Value, Maybe[GV]{row, found}), nil
		}
	}, opts)
}

// TryJoinGlobal is JoinGlobal with functions that see the whole record and may fail.
func (s Stream[K, V]) TryJoinGlobal[GK, GV, VR any](t GlobalTable[GK, GV], key func(context.Context, *Record[K, V]) (Maybe[GK], error), f func(context.Context, *Record[K, V], GV) (VR, error), opts ...Opt) Stream[K, VR] {
	return joinGlobal(s, t, false, tryGlobalKey(key), func() operator.JoinFunc[K, V, GV, VR] {
		var in Record[K, V]
		return func(ctx context.Context, r *operator.Record[K, V], row GV, _ bool) (VR, error) {
			in.show(r)
			return f(ctx, &in, row)
		}
	}, opts)
}

// TryLeftJoinGlobal is LeftJoinGlobal with functions that see the whole record and
// may fail.
func (s Stream[K, V]) TryLeftJoinGlobal[GK, GV, VR any](t GlobalTable[GK, GV], key func(context.Context, *Record[K, V]) (Maybe[GK], error), f func(context.Context, *Record[K, V], Maybe[GV]) (VR, error), opts ...Opt) Stream[K, VR] {
	return joinGlobal(s, t, true, tryGlobalKey(key), func() operator.JoinFunc[K, V, GV, VR] {
		var in Record[K, V]
		return func(ctx context.Context, r *operator.Record[K, V], row GV, found bool) (VR, error) {
			in.show(r)
			return f(ctx, &in, Maybe[GV]{row, found})
		}
	}, opts)
}

// globalFind makes the key of a global table from a record.
type globalFind[K, V, GK any] func(*operator.Codec[GK]) func() operator.FindFunc[K, V]

func globalKey[K, V, GK any](key func(K, V) GK) globalFind[K, V, GK] {
	return func(codec *operator.Codec[GK]) func() operator.FindFunc[K, V] {
		nils := operator.NilOf[GK]()
		return func() operator.FindFunc[K, V] {
			return func(_ context.Context, dst []byte, r *operator.Record[K, V]) ([]byte, bool, error) {
				k := key(r.Key, r.Value)
				if nils.Is(&k) {
					return dst, true, nil
				}
				dst, err := codec.Append(dst, &k)
				return dst, false, err
			}
		}
	}
}

func tryGlobalKey[K, V, GK any](key func(context.Context, *Record[K, V]) (Maybe[GK], error)) globalFind[K, V, GK] {
	return func(codec *operator.Codec[GK]) func() operator.FindFunc[K, V] {
		return func() operator.FindFunc[K, V] {
			var in Record[K, V]
			return func(ctx context.Context, dst []byte, r *operator.Record[K, V]) ([]byte, bool, error) {
				in.show(r)
				k, err := key(ctx, &in)
				if err != nil || !k.OK {
					return dst, true, err
				}
				dst, err = codec.Append(dst, &k.V)
				return dst, false, err
			}
		}
	}
}

func joinGlobal[K, V, GK, GV, VR any](s Stream[K, V], t GlobalTable[GK, GV], left bool, find globalFind[K, V, GK], f func() operator.JoinFunc[K, V, GV, VR], opts []Opt) Stream[K, VR] {
	kind := "join-global"
	if left {
		kind = "left-join-global"
	}
	o := s.app.collect(kind+" behind "+s.node.Name, opts, forJoin)
	next := Stream[K, VR]{place: behind[K, VR](s.app, s.node, kind, o.as), key: s.key, rekeyed: s.rekeyed}
	if s.app != t.app {
		s.app.graph.Fail(next.node, "the global table %s belongs to another application", t.name)
		return next
	}
	next.node.Detail += " with global table " + t.name
	next.node.Globals = append(next.node.Globals, t.name)
	op := &operator.JoinTable[K, V, GV, VR]{Node: next.node.Name, Left: left, Table: t.view, Handler: s.app.handler(o), Find: find(t.key), New: f, Out: next.out}
	s.out.Attach(next.node.Name, op.Build)
	return next
}
