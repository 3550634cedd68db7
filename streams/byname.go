package streams

import (
	"fmt"
	"slices"
	"strings"
)

// nodeName is the key under which the application knows what a node that was added
// by name sends.
type nodeName string

// AddSource, with AddProcessor and AddSink, puts a topology together node by node
// and by names, as Kafka's Topology class does: for programs that make one from a
// description, and for those who think in graphs. Both styles may be mixed in one
// application. Parents come before their children. Go's types say what a node takes
// and sends; that a child takes what its parent sends is checked when the topology
// is built, with all other mistakes. Nothing is repartitioned by itself: a processor
// that keeps state by key needs input that is partitioned by it.
//
// AddSource reads topics, several of them as one stream.
func (a *App) AddSource[K, V any](name string, topics []string, opts ...Opt) {
	var all []Stream[K, V]
	for _, topic := range topics {
		as := name
		if len(topics) > 1 {
			as = name + "." + topic
		}
		all = append(all, a.Stream[K, V](topic, append(slices.Clone(opts), As(as))...))
	}
	switch len(all) {
	case 0:
		a.errs = append(a.errs, fmt.Errorf("source %s: no topic is given", name))
	case 1:
		addNode(a, name, all[0])
	default:
		addNode(a, name, all[0].Merge(all[1:]...))
	}
}

// AddProcessor puts a processor behind nodes. Use names the stores and timers that
// it reaches. What it sends with ForwardTo goes to the node of that name behind it,
// all else to all of them.
func (a *App) AddProcessor[K, V, KO, VO any](name string, f func() Processor[K, V, KO, VO], parents []string, opts ...Opt) {
	if in, ok := parentsOf[K, V](a, name, parents); ok {
		addNode(a, name, process(in, f, append(slices.Clone(opts), As(name))))
	}
}

// AddSink writes what nodes send to a topic.
func (a *App) AddSink[K, V any](name, topic string, parents []string, opts ...Opt) {
	if in, ok := parentsOf[K, V](a, name, parents); ok {
		in.To(topic, append(slices.Clone(opts), As(name))...)
	}
}

// addNode notes what a node sends.
func addNode[K, V any](a *App, name string, s Stream[K, V]) {
	if a.sources[nodeName(name)] != nil {
		return // the topology says so: the name is used twice
	}
	s.rekeyed = false
	a.sources[nodeName(name)] = s
}

// parentsOf is what the parents of a node send, as one stream.
func parentsOf[K, V any](a *App, name string, parents []string) (s Stream[K, V], ok bool) {
	fail := func(format string, args ...any) {
		a.errs = append(a.errs, fmt.Errorf("node %s: "+format, append([]any{name}, args...)...))
	}
	if len(parents) == 0 {
		fail("it has no parent")
		return s, false
	}
	var all []Stream[K, V]
	for _, parent := range parents {
		switch sent := a.sources[nodeName(parent)].(type) {
		case Stream[K, V]:
			if sent.child != nil {
				sent = sent.Child(name, As(parent+".to."+name))
			}
			all = append(all, sent)
		case nil:
			fail("its parent %s has not been added before it, or sends nothing", parent)
		default:
			fail("it takes %s, its parent %s sends %s", pair[K, V](), parent, strings.TrimPrefix(fmt.Sprintf("%T", sent), "streams.Stream"))
		}
	}
	if len(all) < len(parents) {
		return s, false
	}
	if len(all) == 1 {
		return all[0], true
	}
	return all[0].Merge(all[1:]...), true
}
