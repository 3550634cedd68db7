package streams

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/streams/internal/operator"
	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/streams/serde"
)

// codec returns the codec of a node's keys or values, to be filled in when the
// topology is built: by the serde given as an option, else as the codec that
// the stream comes with, else by type.
func codec[T any](a *App, n *topology.Node, what string, given any, inherited *operator.Codec[T]) *operator.Codec[T] {
	c := new(operator.Codec[T])
	a.resolve = append(a.resolve, func() error {
		switch {
		case given != nil:
			s, ok := given.(serde.Serde[T])
			if !ok {
				return fmt.Errorf("node %s: the %s is of type %s, its serde is a %T", n.Name, what, typeName[T](), given)
			}
			*c = operator.NewCodec(s)
		case inherited != nil:
			*c = *inherited // resolved before, as it was defined before
		default:
			s, err := serde.For[T](&a.registry)
			if err != nil {
				return fmt.Errorf("node %s, %s of type %s: %w", n.Name, what, typeName[T](), err)
			}
			*c = operator.NewCodec(s)
		}
		return settle(a, n, what, c, given == nil && inherited != nil)
	})
	return c
}

// readable demands that a codec can decode, which not every serde found by type
// can: a windowed key without its window's size cannot.
func readable[T any](a *App, n *topology.Node, what string, c *operator.Codec[T]) {
	a.resolve = append(a.resolve, func() error {
		if d, ok := c.Serde.(interface{ CheckDecode() error }); ok {
			if err := d.CheckDecode(); err != nil {
				return fmt.Errorf("node %s, %s of type %s: %w", n.Name, what, typeName[T](), err)
			}
		}
		return nil
	})
}

// settle asks a codec for the mistakes of its serde, and binds a serde that depends
// on the topic to the one that the node reads, writes or keeps its rows in. Mistakes
// of an inherited one have been reported where it is from.
func settle[T any](a *App, n *topology.Node, what string, c *operator.Codec[T], inherited bool) error {
	if s, ok := c.Serde.(serde.Checked); ok && !inherited {
		if err := s.Check(); err != nil {
			return fmt.Errorf("node %s, %s of type %s: %w", n.Name, what, typeName[T](), err)
		}
	}
	topic, writes := a.topicOf(n)
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
func (a *App) topicOf(n *topology.Node) (topic string, writes bool) {
	switch {
	case n.Topic != "":
		return n.Topic, n.Inner || n.Root == nil && len(n.Parents) > 0
	case n.Store != nil: // with a changelog or not
		return topology.InternalName(a.id, n.Store.Name, topology.Changelog), true
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
