package operator

import "github.com/millrace/millrace/streams/internal/task"

// Case is one way out of a Split.
type Case[K, V any] struct {
	Node    string
	Handler task.Handler
	New     func() Predicate[K, V]
	Out     *Outlet[K, V]
}

// Split sends each record the way of the first case that is true, or the rest's.
// A record that a case fails for is left out or fails the task; it does not go to
// the next.
type Split[K, V any] struct {
	Cases []Case[K, V]
	Rest  *Outlet[K, V]
}

// Build makes the node of one task.
func (s *Split[K, V]) Build(b *Builder) (Sink[K, V], error) {
	n := &split[K, V]{}
	for i := range s.Cases {
		c := &s.Cases[i]
		next, err := c.Out.Build(b)
		if err != nil {
			return nil, err
		}
		n.cases = append(n.cases, filter[K, V]{site: b.Site(c.Node, task.Process, c.Handler), keep: c.New(), next: next})
	}
	var err error
	n.rest, err = s.Rest.Build(b)
	return n, err
}

type split[K, V any] struct {
	cases []filter[K, V]
	rest  Sink[K, V]
}

// Push implements Sink.
func (n *split[K, V]) Push(r *Record[K, V]) error {
	for i := range n.cases {
		c := &n.cases[i]
		match, left, err := c.test(r)
		switch {
		case err != nil || left:
			return err
		case match:
			return c.next.Push(r)
		}
	}
	return n.rest.Push(r)
}
