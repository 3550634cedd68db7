package streamstest

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/internal/operator"
	"github.com/millrace/millrace/streams/internal/task"
	"github.com/millrace/millrace/streams/serde"
)

// In writes records of one type to a topic.
type In[K, V any] struct {
	d     *Driver
	topic string
	key   operator.Codec[K]
	val   operator.Codec[V]
	last  *task.Out
}

// In is the input side of a topic, with the application's serdes of the types.
// A nil pointer, slice or map is null.
func (d *Driver) In[K, V any](topic string) *In[K, V] {
	d.helper()
	return &In[K, V]{d: d, topic: topic, key: d.codec[K](topic, serde.Key), val: d.codec[V](topic, serde.Value)}
}

func (d *Driver) codec[T any](topic string, part serde.Part) operator.Codec[T] {
	d.helper()
	s, err := d.app.Serde[T]()
	d.check(err)
	return codecOf(s, topic, part)
}

// codecOf is the codec of a serde, bound to the topic if it depends on it.
func codecOf[T any](s serde.Serde[T], topic string, part serde.Part) operator.Codec[T] {
	if t, ok := s.(serde.Topical[T]); ok {
		s = t.ForTopic(topic, part)
	}
	return operator.NewCodec(s)
}

// Keys sets the serde of the keys.
func (in *In[K, V]) Keys(s serde.Serde[K]) *In[K, V] {
	in.key = codecOf(s, in.topic, serde.Key)
	return in
}

// Values sets the serde of the values.
func (in *In[K, V]) Values(s serde.Serde[V]) *In[K, V] {
	in.val = codecOf(s, in.topic, serde.Value)
	return in
}

// At writes a record with a timestamp and, unless commits are manual, runs the
// application until it is idle.
func (in *In[K, V]) At(t time.Time, key K, value V, headers ...streams.Header) {
	in.d.helper()
	in.d.check(in.Try(t, key, value, headers...))
}

// Send is At with the driver's wall clock as the timestamp.
func (in *In[K, V]) Send(key K, value V, headers ...streams.Header) {
	in.d.helper()
	in.At(in.d.now, key, value, headers...)
}

// Try is At for a record that may make the application fail; it returns the
// error that Run would return. An application that has failed stays so.
func (in *In[K, V]) Try(t time.Time, key K, value V, headers ...streams.Header) error {
	o := &task.Out{Topic: in.topic, Partition: task.ByKey, TimeMs: t.UnixMilli(), Headers: headers}
	var err error
	if !operator.NilOf[K]().Is(&key) {
		if o.Key, err = in.key.Append([]byte{}, &key); err != nil {
			return fmt.Errorf("key: %w", err)
		}
	}
	if !operator.NilOf[V]().Is(&value) {
		if o.Value, err = in.val.Append([]byte{}, &value); err != nil {
			return fmt.Errorf("value: %w", err)
		}
	}
	return in.send(o)
}

// NoKey writes a record with a null key.
func (in *In[K, V]) NoKey(t time.Time, value V) {
	in.d.helper()
	o := &task.Out{Topic: in.topic, Partition: task.ByKey, TimeMs: t.UnixMilli()}
	var err error
	o.Value, err = in.val.Append([]byte{}, &value)
	in.d.check(err)
	in.d.check(in.send(o))
}

// Delete writes a record with a null value, which deletes the row of a table.
func (in *In[K, V]) Delete(t time.Time, key K) {
	in.d.helper()
	o := &task.Out{Topic: in.topic, Partition: task.ByKey, TimeMs: t.UnixMilli()}
	var err error
	o.Key, err = in.key.Append([]byte{}, &key)
	in.d.check(err)
	in.d.check(in.send(o))
}

// Raw writes a record of these bytes, which need not be what the application
// expects; nil is null. It returns the error that Run would return.
func (in *In[K, V]) Raw(t time.Time, key, value []byte, headers ...streams.Header) error {
	return in.send(&task.Out{Topic: in.topic, Partition: task.ByKey, TimeMs: t.UnixMilli(), Key: key, Value: value, Headers: headers})
}

// Repeat writes the last record once more, as a producer without idempotence
// may do after a lost acknowledgement.
func (in *In[K, V]) Repeat() {
	in.d.helper()
	if in.last == nil {
		in.d.check(fmt.Errorf("topic %s: nothing to repeat", in.topic))
		return
	}
	in.d.check(in.send(in.last))
}

func (in *In[K, V]) send(o *task.Out) error {
	in.last = o
	in.d.cluster.append(own(o))
	if in.d.manual {
		return in.d.err
	}
	return in.d.settle()
}

// Out reads records of one type from a topic.
type Out[K, V any] struct {
	d     *Driver
	topic string
	key   operator.Codec[K]
	val   operator.Codec[V]
	seen  int64
}

// Out is the output side of a topic, with the application's serdes of the
// types. Nulls read as the zero value; to tell them apart, ask for pointers.
func (d *Driver) Out[K, V any](topic string) *Out[K, V] {
	d.helper()
	return &Out[K, V]{d: d, topic: topic, key: d.codec[K](topic, serde.Key), val: d.codec[V](topic, serde.Value)}
}

// Keys sets the serde of the keys.
func (out *Out[K, V]) Keys(s serde.Serde[K]) *Out[K, V] {
	out.key = codecOf(s, out.topic, serde.Key)
	return out
}

// Values sets the serde of the values.
func (out *Out[K, V]) Values(s serde.Serde[V]) *Out[K, V] {
	out.val = codecOf(s, out.topic, serde.Value)
	return out
}

// Records are all committed records of the topic, in the order of their commit
// over all partitions.
func (out *Out[K, V]) Records() []streams.Record[K, V] {
	out.d.helper()
	return out.since(0)
}

// Next are the records committed since the last call of Next.
func (out *Out[K, V]) Next() []streams.Record[K, V] {
	out.d.helper()
	from := out.seen
	out.seen = out.d.cluster.seq
	return out.since(from)
}

func (out *Out[K, V]) since(seq int64) []streams.Record[K, V] {
	out.d.helper()
	var all []entry
	for _, p := range out.d.cluster.topic(out.topic).partitions {
		for _, e := range p {
			if e.seq >= seq {
				all = append(all, e)
			}
		}
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.seq, b.seq) })
	var records []streams.Record[K, V]
	for _, e := range all {
		r := streams.Record[K, V]{Time: time.UnixMilli(e.TimeMs).UTC(), Headers: e.Headers}
		_, err := out.key.Decode(e.Key, &r.Key)
		out.d.check(err)
		_, err = out.val.Decode(e.Value, &r.Value)
		out.d.check(err)
		records = append(records, r)
	}
	return records
}

// Rows are the rows of a table's store over all partitions, uncommitted changes
// included, in order of their key's bytes. A windowed store has rows too: read
// its keys as []byte, 8 bytes of the window's start and the key.
func (d *Driver) Rows[K, V any](store string) []streams.Record[K, V] {
	d.helper()
	key, val := d.codec[K](store, serde.Key), d.codec[V](store, serde.Value)
	type row struct {
		key []byte
		streams.Record[K, V]
	}
	var rows []row
	found := false
	for _, w := range d.workers {
		s := w.stores[store]
		if s == nil {
			continue
		}
		found = true
		for r, err := range s.Range(nil, nil) {
			d.check(err)
			x := row{key: bytes.Clone(r.Key)}
			x.Time = time.UnixMilli(int64(binary.BigEndian.Uint64(r.Value))).UTC()
			_, err = key.Decode(r.Key, &x.Key)
			d.check(err)
			_, err = val.Decode(r.Value[8:], &x.Value)
			d.check(err)
			rows = append(rows, x)
		}
	}
	if !found {
		d.check(fmt.Errorf("the application has no store %s", store))
	}
	slices.SortFunc(rows, func(a, b row) int { return bytes.Compare(a.key, b.key) })
	records := make([]streams.Record[K, V], len(rows))
	for i := range rows {
		records[i] = rows[i].Record
	}
	return records
}
