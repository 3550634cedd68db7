package runtime

import (
	"cmp"
	"regexp"
	"slices"
	"time"

	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/txn/session"
)

// plan is the topology on this cluster: everything that was found out before
// the first worker starts. It does not change afterwards.
type plan struct {
	app     *topology.Topology
	counts  topology.Counts
	topics  map[string]session.Topic // all that are read or logged to
	sources []string                 // sorted
	units   int32                    // tasks are numbered 0 to units-1
	// patterns are those of sources; the topics that match are in app already.
	patterns []*regexp.Regexp
	// tombstones is how long changelogs keep them at least, by topic; 0 when
	// unknown or for ever.
	tombstones map[string]time.Duration
}

// taskID is one task: a sub-topology, by index, on one partition number.
type taskID struct {
	sub  int
	unit int32
}

func compareTasks(a, b taskID) int {
	return cmp.Or(cmp.Compare(a.unit, b.unit), cmp.Compare(a.sub, b.sub))
}

// tasks lists the tasks of some units, in order.
func (p *plan) tasks(units []int32) []taskID {
	var ids []taskID
	for i := range p.app.Subs {
		for _, u := range units {
			if u < p.counts.Tasks[p.app.Subs[i].Name] {
				ids = append(ids, taskID{i, u})
			}
		}
	}
	slices.SortFunc(ids, compareTasks)
	return ids
}

// inputs lists the partitions that a task reads, in the order of its sources.
func (p *plan) inputs(id taskID) []session.TopicPartition {
	var parts []session.TopicPartition
	for _, s := range p.app.Subs[id.sub].Sources {
		if int(id.unit) < len(p.topics[s.Topic].Partitions) {
			parts = append(parts, session.TopicPartition{Topic: s.Topic, Partition: id.unit})
		}
	}
	return parts
}

// logged reports a task with a store that a changelog remembers.
func (p *plan) logged(id taskID) bool {
	return slices.ContainsFunc(p.app.Subs[id.sub].Stores, func(s topology.Store) bool { return s.Changelog != "" })
}

// fromSource reports a task with a store that is remembered by a source topic.
func (p *plan) fromSource(id taskID) bool {
	return slices.ContainsFunc(p.app.Subs[id.sub].Stores, func(s topology.Store) bool { return s.FromSource != nil })
}

// remembered are the partitions that remember the stores of a task, those of source
// topics included.
func (p *plan) remembered(id taskID) []session.TopicPartition {
	var logs []session.TopicPartition
	for _, s := range p.app.Subs[id.sub].Stores {
		if s.Changelog != "" {
			logs = append(logs, session.TopicPartition{Topic: s.Changelog, Partition: id.unit})
		}
	}
	return logs
}

// shared reports a unit whose stores are all on disk, if the process has one.
func (p *plan) shared(unit int32) bool {
	for _, id := range p.tasks([]int32{unit}) {
		if slices.ContainsFunc(p.app.Subs[id.sub].Stores, func(s topology.Store) bool { return s.InMemory && s.Changelog != "" }) {
			return false
		}
	}
	return true
}

// stateful reports a unit that has a store which a changelog remembers.
func (p *plan) stateful(unit int32) bool {
	return slices.ContainsFunc(p.tasks([]int32{unit}), p.logged)
}

// unitsOf are the units of some tasks, in order.
func (p *plan) unitsOf(ids []taskID) []int32 {
	var units []int32
	for _, id := range ids {
		if !slices.Contains(units, id.unit) {
			units = append(units, id.unit)
		}
	}
	return units
}

// begin is where a topic is read from where the group has no offset.
func (p *plan) begin(topic string) topology.Begin {
	for i := range p.app.Subs {
		for _, s := range p.app.Subs[i].Sources {
			if s.Topic == topic {
				return s.Begin
			}
		}
	}
	return topology.Begin{}
}

// internal reports a topic that the application has made for itself.
func (p *plan) internal(topic string) bool {
	return slices.ContainsFunc(p.app.Internal, func(t topology.InternalTopic) bool { return t.Name == topic })
}

// epochOf is the leader epoch of a partition, -1 when it is not known.
func epochOf(topics map[string]session.Topic, part session.TopicPartition) int32 {
	t := topics[part.Topic]
	if int(part.Partition) >= len(t.Partitions) {
		return -1
	}
	return t.Partitions[part.Partition].LeaderEpoch
}

// patternsOf lists the patterns of a topology.
func patternsOf(t *topology.Topology) []*regexp.Regexp {
	var all []*regexp.Regexp
	for _, s := range t.Subs {
		for _, src := range s.Sources {
			if src.Pattern != nil {
				all = append(all, src.Pattern)
			}
		}
	}
	return all
}
