package topology

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// PatternTopic is the name of a source that reads by pattern, in place of a topic's: no
// topic can have it.
func PatternTopic(re *regexp.Regexp) string { return "/" + re.String() + "/" }

// PatternName is a name for nodes, stores and topics behind such a source: what may not
// stand in a topic's name is left out.
func PatternName(re *regexp.Regexp) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-' {
			return r
		}
		return -1
	}, re.String())
}

// Patterns reports whether a source reads by pattern.
func (t *Topology) Patterns() bool {
	for _, s := range t.Subs {
		if slices.ContainsFunc(s.Sources, func(s Source) bool { return s.Pattern != nil }) {
			return true
		}
	}
	return false
}

// Expand returns the topology with the topics in the place of patterns that match them,
// in order of name. topics has the partitions of all topics there are. A topic that the
// application names itself belongs to no pattern, nor do its internal topics. Topics
// with more partitions than limit says for a sub-topology are not taken; they come back
// as left out.
func (t *Topology) Expand(topics map[string]int32, limit func(*Sub) int32) (expanded *Topology, leftOut []string, err error) {
	named := map[string]bool{}
	sinks := map[string]bool{}
	for _, it := range t.Internal {
		named[it.Name] = true
	}
	for _, g := range t.Globals {
		named[g.Topic] = true
	}
	for _, s := range t.Subs {
		for _, src := range s.Sources {
			named[src.Topic] = named[src.Topic] || src.Pattern == nil
		}
		for _, topic := range s.Sinks {
			sinks[topic] = true
		}
	}
	copied := *t
	copied.Subs = slices.Clone(t.Subs)
	owner := map[string]string{}
	for i := range copied.Subs {
		s := &copied.Subs[i]
		var sources []Source
		groups := map[string][]string{}
		for _, src := range s.Sources {
			if src.Pattern == nil {
				sources = append(sources, src)
				continue
			}
			for _, topic := range slices.Sorted(maps.Keys(topics)) {
				switch {
				case named[topic] || !src.Pattern.MatchString(topic):
					continue
				case sinks[topic]:
					return nil, nil, fmt.Errorf("pattern %s matches topic %q, which the application writes", src.Topic, topic)
				case owner[topic] != "" && owner[topic] != s.Name:
					return nil, nil, fmt.Errorf("topic %q matches patterns of two sub-topologies, %s and %s", topic, owner[topic], s.Name)
				case limit(s) > 0 && topics[topic] > limit(s):
					leftOut = append(leftOut, topic)
					continue
				}
				groups[src.Topic] = append(groups[src.Topic], topic)
				if owner[topic] == "" { // not yet, by another pattern of the same sub-topology
					one := src
					one.Topic, one.Pattern = topic, nil
					sources = append(sources, one)
				}
				owner[topic] = s.Name
			}
			if len(groups[src.Topic]) == 0 {
				return nil, nil, fmt.Errorf("no topic matches pattern %s of sub-topology %s", src.Topic, s.Name)
			}
		}
		s.Sources, s.Copartition = sources, spread(s.Copartition, groups)
	}
	return &copied, leftOut, nil
}

// spread puts the topics into co-partition groups that name their pattern.
func spread(demands [][]string, of map[string][]string) [][]string {
	var all [][]string
	for _, g := range demands {
		var group []string
		for _, topic := range g {
			if of[topic] == nil {
				group = append(group, topic)
			}
			group = append(group, of[topic]...)
		}
		slices.Sort(group)
		all = append(all, slices.Compact(group))
	}
	return all
}
