package streams

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/streams/internal/operator"
	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/streams/serde"
)

// settle asks a codec for the mistakes of its serde, and binds a serde that depends
// on the topic to the one that the node reads, writes or keeps its rows in. Mistakes
// of an inherited one have been reported where it is from.
func settle[T any](a *App, n *topology.Node, what string, c *operator.Codec[T], inherited bool) error {
	if s, ok := c.Serde.(serde.Checked); ok && !inherited {
		if err := s.Check(); err != nil {
			return fmt.Errorf("node %s, %s of type %s: %w", n.Name, what, typeName[T](), err)
		}
	}
	topic, writes := topicOf(n)
	if topic == "" {
		return nil
	}
	part := serde.Value
	if what == serde.Key.String() {
		part = serde.Key
	}
	if s, ok := c.Serde.(serde.Topical[T]); ok {
		*c = operator.NewCodec(s.ForTopic(topic, part))
	}
	if s, ok := c.Serde.(serde.Prepared); ok && writes {
		a.prepared = append(a.prepared, func(ctx context.Context) error {
			if err := s.Prepare(ctx); err != nil {
				return fmt.Errorf("node %s, %s of type %s: %w", n.Name, what, typeName[T](), err)
			}
			return nil
		})
	}
	return nil
}

// topicOf is the topic that a node's serdes are for, and whether it is written to:
// a table keeps the bytes of its topic as they came.
func topicOf(n *topology.Node) (topic string, writes bool) {
	switch {
	case n.Topic != "":
		return n.Topic, n.Inner || n.Root == nil && len(n.Parents) > 0
	case n.Store != nil:
		return n.Store.Changelog, true
	}
	return "", false
}

// prepareSerdes does what serdes have to do before the first record is written, and
// reports all that fails.
func (a *App) prepareSerdes(ctx context.Context) error {
	var errs []error
	for _, p := range a.prepared {
		errs = append(errs, p(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("application %s: %w", a.id, err)
	}
	return nil
}
