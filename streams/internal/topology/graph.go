package topology

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/millrace/millrace/streams/internal/operator"
)

// Node is one node of the logical graph: what the user wrote, plus the two
// ends of each repartition topic.
type Node struct {
	Name    string
	Kind    string // "stream", "table", "filter", …
	Detail  string // types and settings, for people
	Parents []*Node
	Topic   string         // that a source reads or a sink writes
	Root    *operator.Root // of a source
	Store   *Store         // that the node owns
	Shape   string         // of the store's rows: what may not change under its name
	Reads   []string       // stores of other nodes
	Globals []string       // global tables that it looks into
	Inner   bool           // end of a repartition topic
	Timed   bool           // of a source: it says what time its records have
	Begin   Begin          // of a source
	Pattern *regexp.Regexp // of a source of several topics
	// Partitions of a repartition topic, 0 for as many as those it is used with.
	Partitions int32
	Named      bool // the name was given, it does not follow from the path

	children []*Node
	path     string         // that names of nodes behind this one begin with
	ordinals map[string]int // children by kind, for their names
}

// Graph is the logical graph while it is being written. It belongs to one
// goroutine.
type Graph struct {
	appID       string
	nodes       []*Node
	sources     map[string]int // sources by topic, for their names
	copartition [][]*Node
	globals     []Global
	errs        []error
	// RequireNames wants what outlives the process to have a name of the user's.
	RequireNames bool
}

// NewGraph starts a graph.
func NewGraph(appID string) *Graph { return &Graph{appID: appID, sources: map[string]int{}} }

// Fail notes a mistake of the user's; Plan reports them all.
func (g *Graph) Fail(n *Node, format string, args ...any) {
	err := fmt.Errorf(format, args...)
	if n != nil {
		err = fmt.Errorf("node %s: %w", n.Name, err)
	}
	g.errs = append(g.errs, err)
}

// Source adds a node that reads a topic. Its name is the topic's unless given.
func (g *Graph) Source(kind, topic, as string) *Node {
	n := &Node{Name: as, Kind: kind, Topic: topic, Named: as != "", ordinals: map[string]int{}}
	if as == "" {
		g.sources[topic]++
		n.Name = ordinal(topic, g.sources[topic])
	}
	n.path = n.Name
	g.nodes = append(g.nodes, n)
	return n
}

// Add adds a node behind another. Unless given, its name is the path to it:
// the parent's name, its kind, and a number from the second sibling of that
// kind on. It never depends on what else the topology holds.
func (g *Graph) Add(parent *Node, kind, as string) *Node {
	n := &Node{Name: as, Kind: kind, Parents: []*Node{parent}, Named: as != "", ordinals: map[string]int{}}
	if as == "" {
		parent.ordinals[kind]++
		n.Name = ordinal(parent.path+"."+kind, parent.ordinals[kind])
	}
	n.path = n.Name
	parent.children = append(parent.children, n)
	g.nodes = append(g.nodes, n)
	return n
}

// Store adds a store that belongs to no node: those that use it read it.
func (g *Graph) Store(name string) *Node {
	n := &Node{Name: name, Kind: "store", Named: true, ordinals: map[string]int{}, path: name}
	g.nodes = append(g.nodes, n)
	return n
}

// Global adds a table that every worker has a copy of. It is no node: it belongs to
// all sub-topologies.
func (g *Graph) Global(t Global) {
	for _, other := range g.globals {
		if other.Name == t.Name {
			g.Fail(nil, "global table %s: name is used twice; give one of them another with As", t.Name)
		}
	}
	g.globals = append(g.globals, t)
}

// Link makes a node that was added behind one parent follow another one too.
func (g *Graph) Link(parent, n *Node) {
	if slices.Contains(n.Parents, parent) {
		return
	}
	n.Parents = append(n.Parents, parent)
	parent.children = append(parent.children, n)
}

func ordinal(name string, n int) string {
	if n == 1 {
		return name
	}
	return name + "-" + strconv.Itoa(n)
}

// Repartition cuts the graph behind a node: records leave through a topic and
// come back in the task that owns their new key. It returns both ends. Nodes
// behind the far end are named as if the cut were not there. The topic counts as
// named if the parent is.
func (g *Graph) Repartition(parent *Node, name string) (sink, source *Node) {
	topic := InternalName(g.appID, name, Repartition)
	sink = g.Add(parent, "repartition", name+".repartition")
	sink.Topic, sink.Inner = topic, true
	source = &Node{Name: name + ".repartitioned", Kind: "repartitioned", Topic: topic, Inner: true, path: name, Named: parent.Named, ordinals: map[string]int{}}
	if name == parent.path {
		source.ordinals = parent.ordinals
	}
	g.nodes = append(g.nodes, source)
	return sink, source
}

// Copartition says that keys of one node are looked up by keys of the other:
// the topics that both come from must agree in their number of partitions.
func (g *Graph) Copartition(a, b *Node) {
	g.copartition = append(g.copartition, append(a.origins(nil), b.origins(nil)...))
}

// origins are the sources a node's records come from.
func (n *Node) origins(to []*Node) []*Node {
	if len(n.Parents) == 0 {
		return append(to, n)
	}
	for _, p := range n.Parents {
		to = p.origins(to)
	}
	return to
}
