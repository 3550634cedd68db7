package topology

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Counts are the partition counts of a topology on a given cluster.
type Counts struct {
	Tasks  map[string]int32 // by Sub.Name
	Topics map[string]int32 // internal topics by name
}

// Resolve works out how many tasks each sub-topology has and how many
// partitions each internal topic needs, from the partition counts of the
// topics that exist already; a repartition topic among them keeps its own. A repartition topic takes the count of the
// topics it is co-partitioned with; alone, that of the largest sub-topology
// that writes it. Chains of repartitions are resolved upstream first.
//
// All problems are reported together: source topics that do not exist (an
// entry missing from external), co-partition groups whose counts differ, and
// repartition topics in a cycle with nothing that fixes their count.
func (t *Topology) Resolve(external map[string]int32) (Counts, error) {
	r := resolver{topology: t, topics: map[string]int32{}, tasks: map[string]int32{}}
	for _, it := range t.Internal {
		if it.Partitions > 0 {
			r.topics[it.Name] = it.Partitions
		}
	}
	for _, s := range t.Subs {
		for _, src := range s.Sources {
			if src.Internal {
				if n := external[src.Topic]; n > 0 { // it is there already
					r.topics[src.Topic] = n
				}
				continue
			}
			if n := external[src.Topic]; n > 0 {
				r.topics[src.Topic] = n
			} else {
				r.errs = append(r.errs, fmt.Errorf("source topic %q of sub-topology %q does not exist", src.Topic, s.Name))
			}
		}
	}
	if len(r.errs) == 0 {
		r.run()
	}
	if len(r.errs) > 0 {
		return Counts{}, errors.Join(r.errs...)
	}
	c := Counts{Tasks: r.tasks, Topics: map[string]int32{}}
	for _, it := range t.Internal {
		if it.Kind == Changelog {
			c.Topics[it.Name] = r.tasks[it.Sub]
		} else {
			c.Topics[it.Name] = r.topics[it.Name]
		}
	}
	return c, nil
}

// resolver owns the counts while they are being found.
type resolver struct {
	topology *Topology
	topics   map[string]int32
	tasks    map[string]int32
	errs     []error
}

// run repeats until nothing new is found: each round fixes at least one topic
// or sub-topology, so it ends after as many rounds as there are of them.
func (r *resolver) run() {
	for progress := true; progress; {
		progress = false
		for i := range r.topology.Subs {
			s := &r.topology.Subs[i]
			for _, g := range s.Copartition {
				progress = r.fixGroup(g) || progress
			}
			for _, src := range s.Sources {
				if src.Internal && r.topics[src.Topic] == 0 && !grouped(s, src.Topic) {
					progress = r.fixGroup([]string{src.Topic}) || progress
				}
			}
			progress = r.fixTasks(s) || progress
		}
	}
	for _, s := range r.topology.Subs {
		for _, g := range s.Copartition {
			r.checkGroup(s.Name, g)
		}
		if r.tasks[s.Name] == 0 {
			r.errs = append(r.errs, fmt.Errorf("sub-topology %q: its repartition topics feed each other and nothing fixes their number of partitions", s.Name))
		}
	}
}

// fixGroup gives the undecided topics of a group their count: that of the
// decided ones, else the largest of all writers once those are known.
func (r *resolver) fixGroup(group []string) bool {
	var n int32
	var open []string
	for _, topic := range group {
		if c := r.topics[topic]; c > 0 {
			n = max(n, c)
		} else {
			open = append(open, topic)
		}
	}
	if len(open) == 0 {
		return false
	}
	if n == 0 {
		for _, topic := range open {
			for _, s := range r.topology.Subs {
				if !slices.Contains(s.Sinks, topic) {
					continue
				}
				if r.tasks[s.Name] == 0 {
					return false
				}
				n = max(n, r.tasks[s.Name])
			}
		}
	}
	if n == 0 {
		return false
	}
	for _, topic := range open {
		r.topics[topic] = n
	}
	return true
}

// fixTasks counts the tasks of a sub-topology whose sources are all decided.
func (r *resolver) fixTasks(s *Sub) bool {
	if r.tasks[s.Name] > 0 {
		return false
	}
	var n int32
	for _, src := range s.Sources {
		c := r.topics[src.Topic]
		if c == 0 {
			return false
		}
		n = max(n, c)
	}
	r.tasks[s.Name] = n
	return n > 0
}

// checkGroup reports a group whose members differ, naming each with its count.
func (r *resolver) checkGroup(sub string, group []string) {
	var parts []string
	same := true
	for _, topic := range group {
		same = same && r.topics[topic] == r.topics[group[0]]
		parts = append(parts, fmt.Sprintf("%s has %d", topic, r.topics[topic]))
	}
	if !same {
		r.errs = append(r.errs, fmt.Errorf("sub-topology %q joins topics that must have the same number of partitions: %s", sub, strings.Join(parts, ", ")))
	}
}

func grouped(s *Sub, topic string) bool {
	for _, g := range s.Copartition {
		if slices.Contains(g, topic) {
			return true
		}
	}
	return false
}
