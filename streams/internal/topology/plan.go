package topology

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/millrace/millrace/streams/internal/operator"
	"github.com/millrace/millrace/streams/internal/task"
)

// Plan turns the logical graph into the physical topology: it finds the
// sub-topologies (parts connected by edges, by a topic read twice or by a store
// used in two places), the internal topics and the co-partition groups. Every
// mistake found on the way is reported, not only the first.
func (g *Graph) Plan() (*Topology, error) {
	errs := append(slices.Clone(g.errs), g.check()...)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	t := &Topology{AppID: g.appID, Globals: g.globals}
	parts := g.parts()
	for _, nodes := range parts {
		t.Subs = append(t.Subs, g.sub(nodes))
	}
	for i, nodes := range parts {
		for _, n := range nodes {
			if n.Store != nil && n.Store.FromSource == nil && n.Store.Changelog != "" {
				log := NewInternal(g.appID, n.Store.Name, Changelog, t.Subs[i].Name)
				maps.Copy(log.Config, n.Store.Config)
				t.Internal = append(t.Internal, log)
			}
			if n.Kind == "repartitioned" {
				base := strings.TrimSuffix(n.Name, ".repartitioned")
				it := NewInternal(g.appID, base, Repartition, t.Subs[i].Name)
				it.Partitions = n.Partitions
				t.Internal = append(t.Internal, it)
			}
		}
	}
	slices.SortFunc(t.Internal, func(a, b InternalTopic) int { return strings.Compare(a.Name, b.Name) })
	t.Text, t.Picture = g.describe(t, parts), g.picture(t, parts)
	return t, nil
}

// parts splits the nodes into connected parts, each in order of definition, the
// parts in order of their first node.
func (g *Graph) parts() [][]*Node {
	set := map[any]any{} // union-find over nodes, store names and source topics
	var find func(any) any
	find = func(x any) any {
		p, ok := set[x]
		if !ok || p == x {
			return x
		}
		root := find(p)
		set[x] = root
		return root
	}
	join := func(a, b any) { set[find(a)] = find(b) }
	type store string
	type topic string
	for _, n := range g.nodes {
		for _, p := range n.Parents {
			join(n, p)
		}
		if n.Store != nil {
			join(n, store(n.Store.Name))
		}
		for _, s := range n.Reads {
			join(n, store(s))
		}
		if n.Root != nil {
			join(n, topic(n.Topic))
		}
	}
	index := map[any]int{}
	var parts [][]*Node
	for _, n := range g.nodes {
		root := find(n)
		i, ok := index[root]
		if !ok {
			i = len(parts)
			index[root] = i
			parts = append(parts, nil)
		}
		parts[i] = append(parts[i], n)
	}
	return parts
}

// sub makes the sub-topology of one connected part.
func (g *Graph) sub(nodes []*Node) Sub {
	var s Sub
	var roots []operator.Root
	for _, n := range nodes {
		if n.Root != nil {
			root := *n.Root
			root.Node, root.Pattern = n.Name, n.Pattern
			roots = append(roots, root)
			at := slices.IndexFunc(s.Sources, func(src Source) bool { return src.Topic == n.Topic })
			if at < 0 {
				at = len(s.Sources)
				s.Sources = append(s.Sources, Source{Topic: n.Topic, Internal: n.Inner, Pattern: n.Pattern})
			}
			s.Sources[at].Timed = s.Sources[at].Timed || n.Timed
			if n.Begin != (Begin{}) {
				s.Sources[at].Begin = n.Begin
			}
		} else if n.Topic != "" && !slices.Contains(s.Sinks, n.Topic) {
			s.Sinks = append(s.Sinks, n.Topic)
		}
		if n.Store != nil {
			s.Stores = append(s.Stores, *n.Store)
		}
	}
	slices.Sort(s.Sinks)
	s.Name = s.Sources[0].Topic
	s.Copartition = g.groups(nodes)
	s.New = func(env task.Env) (task.Task, error) {
		t, err := operator.NewTask(env, roots)
		if err != nil {
			return nil, err // and not a task that is nil inside
		}
		return t, nil
	}
	return s
}

// groups merges the co-partition demands of one part: demands that share a
// topic are one group. The order is that of the topics' names.
func (g *Graph) groups(nodes []*Node) [][]string {
	var groups [][]string
	for _, demand := range g.copartition {
		if !slices.Contains(nodes, demand[0]) {
			continue
		}
		var merged []string
		for _, n := range demand {
			merged = append(merged, n.Topic)
		}
		rest := groups[:0]
		for _, other := range groups {
			if slices.ContainsFunc(other, func(t string) bool { return slices.Contains(merged, t) }) {
				merged = append(merged, other...)
			} else {
				rest = append(rest, other)
			}
		}
		slices.Sort(merged)
		groups = append(rest, slices.Compact(merged))
	}
	slices.SortFunc(groups, slices.Compare[[]string])
	return slices.DeleteFunc(groups, func(group []string) bool { return len(group) < 2 })
}
