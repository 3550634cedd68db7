package operator

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/streams/internal/task"
)

// ErrNoTopic reports a record that was routed to a topic without a name.
var ErrNoTopic = errors.New("the topic to route to has no name")

// To writes records to a topic: one of the user's, or a repartition topic.
type To[K, V any] struct {
	Node    string
	Topic   string
	Handler task.Handler
	Key     *Codec[K]
	Value   *Codec[V]
	// Route, if set, names the topic of each record instead of Topic.
	Route func() RowFunc[K, V, string]
	// Partition, if set, chooses the partition of each record among so many.
	Partition func() PartitionFunc[K, V]
	// Repartition topics take no null keys, unless a left join behind one wants
	// them (NullKeys): nothing else could own them. They are dropped here, before
	// they cost a network trip, and counted.
	Repartition, NullKeys bool
}

// PartitionFunc chooses a partition, from 0 to partitions-1.
type PartitionFunc[K, V any] func(r *Record[K, V], partitions int32) int32

// Build makes the node of one task.
func (s *To[K, V]) Build(b *Builder) (Sink[K, V], error) {
	n := &to[K, V]{
		site: b.Site(s.Node, task.Encode, s.Handler), key: s.Key, val: s.Value, dropNullKeys: s.Repartition && !s.NullKeys,
		out:  task.Out{Topic: s.Topic, Partition: task.ByKey},
		kbuf: buffer(), vbuf: buffer(),
	}
	if s.Route != nil {
		n.route, n.site.phase = s.Route(), task.Process
	}
	if s.Partition != nil {
		n.partition, n.site.phase = s.Partition(), task.Process
	}
	return n, nil
}

type to[K, V any] struct {
	site         *Site
	key          *Codec[K]
	val          *Codec[V]
	dropNullKeys bool
	route        RowFunc[K, V, string] // nil: always out.Topic
	partition    PartitionFunc[K, V]   // nil: by key
	out          task.Out
	kbuf, vbuf   []byte
}

// Push implements Sink.
func (n *to[K, V]) Push(r *Record[K, V]) error {
	if n.dropNullKeys && r.NullKey {
		n.site.drop(dropNullKey)
		return nil
	}
	if err := n.encode(r); err != nil {
		done, err := n.site.retry(err, func() error { return n.encode(r) })
		if err != nil || !done {
			return err
		}
	}
	n.out.TimeMs, n.out.Headers = r.TimeMs, r.Headers
	return n.site.task.env.Emit(&n.out)
}

func (n *to[K, V]) encode(r *Record[K, V]) (err error) {
	n.site.enter()
	err = n.encodeRecord(r)
	n.site.leave()
	return err
}

func (n *to[K, V]) encodeRecord(r *Record[K, V]) (err error) {
	if n.route != nil {
		if n.out.Topic, err = n.route(n.site.ctx, r); err != nil {
			return err
		}
		if n.out.Topic == "" {
			return ErrNoTopic
		}
	}
	if n.partition != nil {
		if err := n.choose(r); err != nil {
			return err
		}
	}
	n.out.Key, n.out.Value = nil, nil
	if !r.NullKey {
		if n.kbuf, err = n.key.Append(n.kbuf[:0], &r.Key); err != nil {
			return fmt.Errorf("key: %w", err)
		}
		n.out.Key = n.kbuf
	}
	if !r.NullValue {
		if n.vbuf, err = n.val.Append(n.vbuf[:0], &r.Value); err != nil {
			return fmt.Errorf("value: %w", err)
		}
		n.out.Value = n.vbuf
	}
	return nil
}

// choose asks for the partition of a record.
func (n *to[K, V]) choose(r *Record[K, V]) error {
	if n.site.task.env.Partitions == nil {
		return fmt.Errorf("topic %s: its number of partitions is not known here", n.out.Topic)
	}
	count, err := n.site.task.env.Partitions(n.out.Topic)
	if err != nil {
		return err
	}
	if n.out.Partition = n.partition(r, count); n.out.Partition < 0 || n.out.Partition >= count {
		return fmt.Errorf("partition %d was chosen, topic %s has %d", n.out.Partition, n.out.Topic, count)
	}
	return nil
}
