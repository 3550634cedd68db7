package group

import (
	"cmp"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/coord"
)

// Listed is a group as a list has it. ProtocolType is empty for one that only commits offsets.
type Listed struct {
	Group, ProtocolType string
	State               State
}

// List names all groups, sorted. The answer is []Listed.
func (m *Machine) List(nowMs int64, to coord.Token) coord.Output {
	m.begin(nowMs)
	all := make([]Listed, 0, len(m.groups))
	for _, g := range m.groups {
		all = append(all, Listed{g.id, g.protocolType(), g.state()})
	}
	slices.SortFunc(all, func(a, b Listed) int { return cmp.Compare(a.Group, b.Group) })
	m.reply(to, all)
	return m.end()
}

// Describe tells what a group does. A group that is not there is Dead. The answer is a *kmsg.DescribeGroupsResponseGroup, whose
// slices must not be changed.
//
// What members subscribed to and were assigned is only told of a Stable group; in the other states it is about to change.
func (m *Machine) Describe(nowMs int64, to coord.Token, id string) coord.Output {
	m.begin(nowMs)
	row := kmsg.NewDescribeGroupsResponseGroup()
	row.Group, row.State = id, Dead.String()
	if g := m.groups[id]; g != nil {
		g.describe(&row)
	}
	m.reply(to, &row)
	return m.end()
}

func (g *group) describe(row *kmsg.DescribeGroupsResponseGroup) {
	row.State, row.ProtocolType = g.state().String(), g.protocolType()
	if g.live == nil {
		return
	}
	stable := g.live.state == Stable
	if stable {
		row.Protocol = g.live.protocol
	}
	for _, o := range g.live.members {
		r := kmsg.NewDescribeGroupsResponseGroupMember()
		r.MemberID, r.InstanceID, r.ClientID, r.ClientHost = o.id, o.instance, o.clientID, o.host
		if stable {
			r.ProtocolMetadata, r.MemberAssignment = o.metadata(g.live.protocol), o.assignment
		}
		row.Members = append(row.Members, r)
	}
}

// Delete removes a group with all that is known of it, offsets of open transactions too, so that their markers bring nothing back.
// Members keep their group: a group that has some is NON_EMPTY_GROUP. The answer is an int16, the code.
func (m *Machine) Delete(nowMs int64, to coord.Token, id string) coord.Output {
	m.begin(nowMs)
	m.reply(to, m.remove(id))
	return m.end()
}

func (m *Machine) remove(id string) int16 {
	g := m.groups[id]
	switch {
	case g == nil:
		return kerr.GroupIDNotFound.Code
	case g.state() != Empty:
		return kerr.NonEmptyGroup.Code
	}
	m.out.Splittable = true // what is left after a crash between two batches is a group with fewer offsets: to be deleted again
	found, _ := g.offsetsOf(func(string, ID) bool { return true })
	for _, p := range found {
		m.writeOffset(id, p, nil)
	}
	if g.record != nil {
		m.records = append(m.records, coord.Record{Key: appendMetadataKey(nil, id)})
	}
	return 0
}

// OffsetDelete removes committed offsets of a group.
type OffsetDelete struct {
	Group      string
	Partitions []OffsetPartition
}

// OffsetPartition names an offset that is to go.
type OffsetPartition struct {
	Topic     string
	Partition int32
}

// OffsetsDeleted is the answer to OffsetDelete: a code for the whole, and one for each partition in its order.
type OffsetsDeleted struct {
	Code  int16
	Codes []int16
}

// DeleteOffsetsOf removes offsets of a group, with those of open transactions for the same partitions. Of a group of consumers
// with members those of topics that nobody subscribes to; of another group with members none. The answer is OffsetsDeleted.
func (m *Machine) DeleteOffsetsOf(nowMs int64, to coord.Token, r *OffsetDelete) coord.Output {
	m.begin(nowMs)
	m.reply(to, m.removeOffsets(r))
	return m.end()
}

func (m *Machine) removeOffsets(r *OffsetDelete) OffsetsDeleted {
	g := m.groups[r.Group]
	switch {
	case g == nil:
		return OffsetsDeleted{Code: kerr.GroupIDNotFound.Code}
	case g.state() != Empty && g.live.protocolType != consumerProtocol:
		return OffsetsDeleted{Code: kerr.NonEmptyGroup.Code}
	}
	m.out.Splittable = true
	wanted, _ := g.wanted()
	found, _ := g.offsetsOf(func(string, ID) bool { return true })
	out := OffsetsDeleted{Codes: make([]int16, len(r.Partitions))}
	gone := map[partition]bool{}
	for i, p := range r.Partitions {
		at := partition{p.Topic, p.Partition}
		_, have := slices.BinarySearchFunc(found, at, partition.compare)
		switch {
		case wanted[p.Topic]:
			out.Codes[i] = kerr.GroupSubscribedToTopic.Code
		case have && !gone[at]:
			gone[at] = true
			m.writeOffset(r.Group, at, nil)
		}
	}
	return out
}
