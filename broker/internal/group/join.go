package group

import (
	"bytes"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/coord"
)

// Client is who sends a request, as its member's record says.
type Client struct {
	ID, Host string
}

// Join handles a JoinGroup request. The answer, a *kmsg.JoinGroupResponse, waits
// until the group has a new generation, unless nothing has to change. Its error
// is one of those that clients know: NONE, MEMBER_ID_REQUIRED, UNKNOWN_MEMBER_ID,
// FENCED_INSTANCE_ID, INCONSISTENT_GROUP_PROTOCOL, GROUP_MAX_SIZE_REACHED,
// INVALID_GROUP_ID, INVALID_SESSION_TIMEOUT, or of the coordinator (KAFKA-10870).
func (m *Machine) Join(nowMs int64, to coord.Token, c Client, r *kmsg.JoinGroupRequest) coord.Output {
	m.begin(nowMs)
	session := int64(r.SessionTimeoutMillis)
	switch g := m.groups[r.Group]; {
	case r.Group == "":
		m.refuseJoin(to, r.MemberID, kerr.InvalidGroupID.Code)
	case session < m.options.MinSessionTimeout.Milliseconds(), session > m.options.MaxSessionTimeout.Milliseconds():
		m.refuseJoin(to, r.MemberID, kerr.InvalidSessionTimeout.Code)
	case g == nil && r.MemberID != "":
		m.refuseJoin(to, r.MemberID, kerr.UnknownMemberID.Code)
	default:
		if g == nil {
			g = m.create(r.Group)
		}
		m.join(g, &joiner{to: to, client: c, r: r, protocols: protocolsOf(r)})
		m.settle(g)
	}
	return m.end()
}

// joiner is a JoinGroup request on its way through the machine.
type joiner struct {
	to        coord.Token
	client    Client
	r         *kmsg.JoinGroupRequest
	protocols []protocol
}

func protocolsOf(r *kmsg.JoinGroupRequest) []protocol {
	protocols := make([]protocol, len(r.Protocols))
	for i, p := range r.Protocols {
		protocols[i] = protocol{name: p.Name, metadata: bytes.Clone(p.Metadata)}
	}
	return protocols
}

// known is the member that the request comes from: by its id, or the one whose
// instance it takes over.
func (j *joiner) known(l *classic) *member {
	if j.r.MemberID != "" {
		return l.byID[j.r.MemberID]
	}
	if j.r.InstanceID != nil {
		return l.instance[*j.r.InstanceID]
	}
	return nil
}

// update takes over what the request says of its member.
func (j *joiner) update(m *member) {
	m.clientID, m.host = j.client.ID, j.client.Host
	m.sessionMs = int64(j.r.SessionTimeoutMillis)
	m.rebalanceMs = max(int64(j.r.RebalanceTimeoutMillis), 0)
	if j.r.Version == 0 {
		m.rebalanceMs = m.sessionMs // version 0 has no other
	}
	m.protocols = j.protocols
}

func (m *Machine) join(g *group, j *joiner) {
	l := m.running(g)
	known := j.known(l)
	switch {
	case !l.room(m.options.MaxSize, known):
		delete(l.pending, j.r.MemberID)
		m.refuseJoin(j.to, "", kerr.GroupMaxSizeReached.Code)
	case !l.supports(j.r.ProtocolType, j.protocols, known):
		m.refuseJoin(j.to, j.r.MemberID, kerr.InconsistentGroupProtocol.Code)
	case j.r.MemberID != "":
		m.joinAgain(g, j)
	case j.r.InstanceID != nil:
		id := *j.r.InstanceID + "-" + m.newID()
		if known != nil {
			m.replace(g, j, known, id)
		} else {
			m.admit(g, j, id)
		}
	case j.r.Version >= 4:
		// KIP-394: the member joins again with its id, so that a lost answer does not
		// leave a member behind that nobody speaks for.
		id := j.client.ID + "-" + m.newID()
		l.pending[id] = m.nowMs + int64(j.r.SessionTimeoutMillis)
		m.refuseJoin(j.to, id, kerr.MemberIDRequired.Code)
	default:
		m.admit(g, j, j.client.ID+"-"+m.newID())
	}
}

// admit makes a new member.
func (m *Machine) admit(g *group, j *joiner, id string) {
	l := g.live
	nm := &member{id: id, isNew: true, joining: j.to}
	if j.r.InstanceID != nil {
		instance := *j.r.InstanceID
		nm.instance = &instance
	}
	j.update(nm)
	nm.deadlineMs = m.nowMs + m.options.NewMemberTimeout.Milliseconds()
	l.protocolType = j.r.ProtocolType
	l.add(nm)
	l.newcomers = true
	m.rebalanceOrComplete(g)
}

// joinAgain is a request with a member id.
func (m *Machine) joinAgain(g *group, j *joiner) {
	l := g.live
	if _, ok := l.pending[j.r.MemberID]; ok {
		if j.r.InstanceID != nil {
			// Static members get no id to come back with.
			m.refuseJoin(j.to, j.r.MemberID, kerr.UnknownMemberID.Code)
			return
		}
		m.admit(g, j, j.r.MemberID)
		return
	}
	self, code := check(g, j.r.MemberID, j.r.InstanceID)
	if code != 0 {
		m.refuseJoin(j.to, j.r.MemberID, code)
		return
	}
	switch l.state {
	case CompletingRebalance:
		// The answer with this generation was lost.
		if self.matches(j.protocols) {
			m.joined(j.to, g, self, l.leader == self.id)
			return
		}
	case Stable:
		// A leader that joins wants a rebalance; others only if they changed.
		if l.leader != self.id && self.matches(j.protocols) {
			m.joined(j.to, g, self, false)
			return
		}
	}
	j.update(self)
	l.protocolType = j.r.ProtocolType
	m.park(self, j.to)
	m.rebalanceOrComplete(g)
}

// park lets a member wait for the next generation. A request of the same member
// that waited already is told to try again: its connection is most likely gone.
func (m *Machine) park(self *member, to coord.Token) {
	if self.joining != 0 {
		m.refuseJoin(self.joining, self.id, kerr.CoordinatorLoadInProgress.Code)
	}
	self.joining = to
}

// joined answers a member with the current generation.
func (m *Machine) joined(to coord.Token, g *group, self *member, withMembers bool) {
	self.renew(m.nowMs)
	m.reply(to, joinResponse(g.live, self.id, withMembers))
}

func joinResponse(l *classic, id string, withMembers bool) *kmsg.JoinGroupResponse {
	resp := kmsg.NewPtrJoinGroupResponse()
	resp.Generation = l.generation
	resp.ProtocolType = kmsg.StringPtr(l.protocolType)
	resp.Protocol = kmsg.StringPtr(l.protocol)
	resp.LeaderID = l.leader
	resp.MemberID = id
	if withMembers {
		resp.Members = make([]kmsg.JoinGroupResponseMember, len(l.members))
		for i, o := range l.members {
			resp.Members[i].MemberID = o.id
			resp.Members[i].InstanceID = o.instance
			resp.Members[i].ProtocolMetadata = o.metadata(l.protocol)
		}
	}
	return resp
}

func (m *Machine) refuseJoin(to coord.Token, id string, code int16) {
	m.reply(to, JoinError(id, code))
}

// JoinError is the answer to a JoinGroup that failed.
func JoinError(memberID string, code int16) *kmsg.JoinGroupResponse {
	resp := kmsg.NewPtrJoinGroupResponse()
	resp.ErrorCode, resp.MemberID, resp.Generation = code, memberID, -1
	return resp
}
