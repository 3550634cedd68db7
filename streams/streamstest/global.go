package streamstest

import (
	"bytes"
	"errors"

	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/streams/state"
)

// global is the copy of a topic as a table that all tasks read.
type global struct {
	*state.Memory
	spec *topology.Global
	next []int64 // by partition
}

var errReadOnly = errors.New("a global table cannot be written to")

// Put implements state.Store.
func (*global) Put(_, _ []byte) error { return errReadOnly }

// Delete implements state.Store.
func (*global) Delete([]byte) error { return errReadOnly }

// Expire implements state.Store.
func (*global) Expire(_, _ []byte) error { return errReadOnly }

// follow takes in what the topic has got.
func (g *global) follow(c *cluster) error {
	t := c.topic(g.spec.Topic)
	for len(g.next) < len(t.partitions) {
		g.next = append(g.next, 0)
	}
	for p := range t.partitions {
		for ; g.next[p] < int64(len(t.partitions[p])); g.next[p]++ {
			key, value, ok := g.spec.Row(&t.partitions[p][g.next[p]].Record)
			if !ok {
				continue
			}
			if err := g.Apply([]state.Row{{Key: bytes.Clone(key), Value: value}}, state.Position{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// follow takes in what the topics of all global tables have got.
func (d *Driver) follow() error {
	for _, g := range d.globals {
		if err := g.follow(d.cluster); err != nil {
			return err
		}
	}
	return nil
}
