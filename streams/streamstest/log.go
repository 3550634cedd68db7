package streamstest

import (
	"bytes"

	"github.com/millrace/millrace/core/partition"
	"github.com/millrace/millrace/streams/internal/task"
)

// entry is one record of a topic and its place in the order of all records.
type entry struct {
	task.Record
	seq int64
}

// topic is the committed content of a topic.
type topic struct {
	name       string
	partitions [][]entry
	next       int32 // partition of the next record without a key
}

// cluster holds all topics. It is the driver's broker: records in it are
// committed.
type cluster struct {
	topics map[string]*topic
	count  func(topic string) int32 // partitions of a topic that nobody created
	seq    int64
}

func (c *cluster) topic(name string) *topic {
	t := c.topics[name]
	if t == nil {
		t = &topic{name: name, partitions: make([][]entry, c.count(name))}
		c.topics[name] = t
	}
	return t
}

// create makes a topic with a given number of partitions.
func (c *cluster) create(name string, partitions int32) {
	c.topics[name] = &topic{name: name, partitions: make([][]entry, partitions)}
}

// append adds a record, which must own its bytes, and returns it.
func (c *cluster) append(o task.Out) task.Record {
	t := c.topic(o.Topic)
	p := o.Partition
	if p == task.ByKey {
		if o.Key != nil {
			p = partition.ForKey(o.Key, int32(len(t.partitions)))
		} else {
			p = t.next
			t.next = (t.next + 1) % int32(len(t.partitions))
		}
	}
	r := task.Record{Topic: o.Topic, Partition: p, Offset: int64(len(t.partitions[p])),
		TimeMs: o.TimeMs, Key: o.Key, Value: o.Value, Headers: o.Headers}
	t.partitions[p] = append(t.partitions[p], entry{r, c.seq})
	c.seq++
	return r
}

// own copies what is valid during a call only.
func own(o *task.Out) task.Out {
	c := *o
	c.Key, c.Value = bytes.Clone(o.Key), bytes.Clone(o.Value)
	c.Headers = nil
	for _, h := range o.Headers {
		c.Headers = append(c.Headers, task.Header{Key: h.Key, Value: bytes.Clone(h.Value)})
	}
	return c
}
