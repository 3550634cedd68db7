package topology

import (
	"fmt"
	"strings"
)

// describe prints the topology: the tree of each sub-topology, then stores and
// internal topics, one a line, which CheckUpgrade reads back.
func (g *Graph) describe(t *Topology, parts [][]*Node) string {
	var b strings.Builder
	fmt.Fprintf(&b, "application %s\n", g.appID)
	for i, s := range t.Subs {
		fmt.Fprintf(&b, "\nsub-topology %s\n", s.Name)
		for _, n := range parts[i] {
			if len(n.Parents) == 0 {
				n.print(&b, 1, nil)
			}
		}
		for _, group := range s.Copartition {
			fmt.Fprintf(&b, "  same number of partitions: %s\n", strings.Join(group, ", "))
		}
	}
	if len(t.Globals) > 0 {
		b.WriteString("\nglobal tables\n")
	}
	for _, global := range t.Globals {
		fmt.Fprintf(&b, "  %s: %s of topic %s\n", global.Name, global.Detail, global.Topic)
	}
	b.WriteString("\nstores\n")
	for _, nodes := range parts {
		for _, n := range nodes {
			if n.Store != nil {
				fmt.Fprintf(&b, "  %s: %s; %s\n", n.Store.Name, n.Shape, n.Store.text())
			}
		}
	}
	b.WriteString("\ninternal topics\n")
	for _, it := range t.Internal {
		fmt.Fprintf(&b, "  %s: %s\n", it.Name, g.shape(it))
	}
	return b.String()
}

// shape is the kind of an internal topic, with the types of its records where
// no store says them.
func (g *Graph) shape(it InternalTopic) string {
	for _, n := range g.nodes {
		if it.Kind == Repartition && n.Topic == it.Name && n.Root != nil {
			return it.Kind.String() + " " + n.Detail
		}
	}
	return it.Kind.String()
}

// print prints the tree below a node. One with several parents stands with its
// tree under the first, and by name under the others.
func (n *Node) print(b *strings.Builder, depth int, parent *Node) {
	fmt.Fprintf(b, "%s%s %s", strings.Repeat("  ", depth), n.Kind, n.Name)
	if parent != nil && parent != n.Parents[0] {
		fmt.Fprintf(b, ", see under %s\n", n.Parents[0].Name)
		return
	}
	if n.Detail != "" {
		b.WriteString(" " + n.Detail)
	}
	if n.Topic != "" {
		dir := "to"
		if n.Root != nil {
			dir = "from"
		}
		fmt.Fprintf(b, " %s topic %s", dir, n.Topic)
	}
	if n.Store != nil {
		fmt.Fprintf(b, ", store %s", n.Store.Name)
	}
	if len(n.Reads) > 0 {
		fmt.Fprintf(b, ", reads store %s", strings.Join(n.Reads, ", "))
	}
	b.WriteByte('\n')
	for _, c := range n.children {
		c.print(b, depth+1, n)
	}
}

func (s *Store) text() string {
	where := "on disk"
	switch {
	case s.InMemory:
		where = "in memory"
	case s.Engine != nil:
		where = "in " + s.Engine.Name()
	}
	log := "changelog " + s.Changelog
	switch {
	case s.Changelog == "":
		log = "no changelog"
	case s.FromSource != nil:
		log = "source topic " + s.Changelog + " as changelog"
	}
	return where + ", " + log
}
