package group

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// replace gives the place of a static member to a new member id, because a
// process with its instance id joined without a member id: it was restarted
// (KIP-345). The old id is fenced from here on.
//
// A stable group whose assignment still fits stays as it is. In all states the
// new id is written to the log if the old one is there, else it would be a
// stranger after a restart of the broker, and its process fenced for good.
func (m *Machine) replace(g *group, j *joiner, old *member, id string) {
	l := g.live
	if l.state == Stable && l.keeps(old, j) {
		m.takeOver(g, j, old, id)
		return
	}
	m.release(old, kerr.FencedInstanceID.Code)
	old.joining, old.syncing = j.to, 0
	if v := renamed(g.record, *old.instance, id); v != nil {
		m.write(g, v, nil)
	}
	l.rename(old, id)
	j.update(old)
	l.protocolType = j.r.ProtocolType
	if old.isNew {
		old.deadlineMs = m.nowMs + m.options.NewMemberTimeout.Milliseconds()
	}
	m.rebalanceOrComplete(g)
}

// keeps says whether the group's assignment is still right when a static member
// comes back with these protocols: the same one would be chosen, and the member
// asks for the same under it.
func (c *classic) keeps(old *member, j *joiner) bool {
	if j.r.ProtocolType != c.protocolType {
		return false
	}
	before := old.protocols
	defer func() { old.protocols = before }()
	was := old.metadata(c.protocol)
	old.protocols = j.protocols
	return c.vote() == c.protocol && sameTopics(c.protocolType, was, old.metadata(c.protocol))
}

// takeOver replaces a static member of a stable group without a rebalance.
// From version 9 on a leader is told the members and that it need not assign
// anything (KIP-814). An older one is told the old leader's id, so that it does
// not take itself for the leader.
func (m *Machine) takeOver(g *group, j *joiner, old *member, id string) {
	l := g.live
	leads := l.leader == old.id
	next := &member{id: id, instance: old.instance, assignment: old.assignment}
	j.update(next)

	v := image(l, m.nowMs)
	i := slices.Index(l.members, old)
	was := &v.Members[i]
	was.MemberID, was.ClientID, was.ClientHost = id, next.clientID, next.host
	was.RebalanceTimeoutMillis, was.SessionTimeoutMillis = int32(next.rebalanceMs), int32(next.sessionMs)
	was.Subscription = next.metadata(l.protocol)
	if leads {
		v.Leader = &id
	}

	resp := joinResponse(l, id, leads && j.r.Version >= 9)
	if leads && j.r.Version >= 9 {
		resp.LeaderID, resp.SkipAssignment = id, true
		resp.Members[i].MemberID, resp.Members[i].ProtocolMetadata = id, next.metadata(l.protocol)
	}
	m.reply(j.to, resp)
	now := m.nowMs
	m.write(g, v, func() {
		l.rename(old, id)
		j.update(old)
		old.renew(now)
	})
}

// renamed is a group's record with another member id for an instance, nil if the
// instance is not in it.
func renamed(v *kmsg.GroupMetadataValue, instance, id string) *kmsg.GroupMetadataValue {
	if v == nil {
		return nil
	}
	i := slices.IndexFunc(v.Members, func(o kmsg.GroupMetadataValueMember) bool {
		return o.InstanceID != nil && *o.InstanceID == instance
	})
	if i < 0 {
		return nil
	}
	next := *v
	next.Version = metadataValueVersion
	next.Members = slices.Clone(v.Members)
	if next.Leader != nil && *next.Leader == next.Members[i].MemberID {
		next.Leader = &id
	}
	next.Members[i].MemberID = id
	return &next
}
