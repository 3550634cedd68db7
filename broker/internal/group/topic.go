package group

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/coord"
)

// Deleted is the answer to DeleteTopic: how many offsets were removed.
type Deleted int

// DeleteTopic removes a deleted topic's offsets from all groups, those of open
// transactions too. Offsets of another topic of that name stay: id is the id of
// the deleted one, zero if all of that name are meant. The answer is Deleted.
//
// Nothing depends on it being called, since offsets of an id that is no more are
// hidden; it keeps the log from holding them for ever.
//
// A group that loses all that the log knows of it is kept by a record, so that it
// does not vanish from the list of groups at the next restart.
func (m *Machine) DeleteTopic(nowMs int64, to coord.Token, topic string, id ID) coord.Output {
	m.begin(nowMs)
	m.out.Splittable = true
	var n Deleted
	for _, name := range slices.Sorted(maps.Keys(m.groups)) {
		g := m.groups[name]
		doomed, rest := g.offsetsOf(topic, id)
		if len(doomed) == 0 {
			continue
		}
		if g.record == nil && g.live == nil && !rest {
			m.write(g, &kmsg.GroupMetadataValue{Version: metadataValueVersion, CurrentStateTimestamp: nowMs}, nil)
		}
		for _, p := range doomed {
			m.writeOffset(name, p, nil)
		}
		n += Deleted(len(doomed))
	}
	m.reply(to, n)
	return m.end()
}

// offsetsOf names the partitions of a topic for which the group has an offset,
// and says whether it has any other.
func (g *group) offsetsOf(topic string, id ID) (found []partition, rest bool) {
	collect := func(offsets map[partition]committed) {
		for p, c := range offsets {
			if p.topic == topic && (id == ID{} || c.of(id)) {
				found = append(found, p)
			} else {
				rest = true
			}
		}
	}
	collect(g.offsets)
	for _, offsets := range g.open {
		collect(offsets)
	}
	slices.SortFunc(found, partition.compare)
	return slices.Compact(found), rest
}
