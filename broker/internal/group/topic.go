package group

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/coord"
)

// Deleted is the answer to DeleteOffsets: how many offsets were removed.
type Deleted int

// DeleteTopic removes the offsets of a topic that was deleted, see DeleteOffsets.
func (m *Machine) DeleteTopic(nowMs int64, to coord.Token, topic string, id ID) coord.Output {
	return m.DeleteOffsets(nowMs, to, func(t string, i ID) bool { return t == topic && i == id })
}

// DeleteOffsets removes the offsets of all groups, those of open transactions too,
// for topics that doomed names: by the topic id that they were committed for, zero
// for those that older brokers wrote. The answer is Deleted.
//
// Nothing depends on it being called when a topic was deleted, since offsets of an
// id that is no more are hidden; it keeps the log from holding them for ever.
//
// A group that loses all that the log knows of it is kept by a record, so that it
// does not vanish from the list of groups at the next restart.
func (m *Machine) DeleteOffsets(nowMs int64, to coord.Token, doomed func(topic string, id ID) bool) coord.Output {
	m.begin(nowMs)
	m.reply(to, m.deleteOffsets(doomed))
	return m.end()
}

func (m *Machine) deleteOffsets(doomed func(topic string, id ID) bool) (n Deleted) {
	m.out.Splittable = true
	for _, name := range slices.Sorted(maps.Keys(m.groups)) {
		g := m.groups[name]
		found, rest := g.offsetsOf(doomed)
		if len(found) == 0 {
			continue
		}
		if g.record == nil && g.live == nil && !rest {
			m.write(g, &kmsg.GroupMetadataValue{Version: metadataValueVersion, CurrentStateTimestamp: m.nowMs}, nil)
		}
		for _, p := range found {
			m.writeOffset(name, p, nil)
		}
		n += Deleted(len(found))
	}
	return n
}

// offsetsOf names the partitions whose offset is doomed, and says whether there is
// any other. A tombstone takes a partition's committed offset and those of open
// transactions alike; of two topics of the same name only the older one can be
// doomed, and its offsets can only be the older ones: then the newer ones stay, and
// the older ones stay hidden.
func (g *group) offsetsOf(doomed func(string, ID) bool) (found []partition, rest bool) {
	keep := map[partition]bool{}
	collect := func(offsets map[partition]committed) {
		for p, c := range offsets {
			if doomed(p.topic, c.topicID) {
				found = append(found, p)
			} else {
				keep[p] = true
			}
		}
	}
	collect(g.offsets)
	for _, offsets := range g.open {
		collect(offsets)
	}
	found = slices.DeleteFunc(found, func(p partition) bool { return keep[p] })
	slices.SortFunc(found, partition.compare)
	return slices.Compact(found), len(keep) > 0
}
