package group

import (
	"bytes"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/coord"
)

// Sync handles a SyncGroup request. The leader's carries the assignment: it is
// written to the log, then all members get theirs, in a *kmsg.SyncGroupResponse.
// A member that the leader left out gets one of length zero.
func (m *Machine) Sync(nowMs int64, to coord.Token, r *kmsg.SyncGroupRequest) coord.Output {
	m.begin(nowMs)
	g := m.groups[r.Group]
	switch {
	case r.Group == "":
		m.reply(to, SyncError(kerr.InvalidGroupID.Code))
	case g == nil:
		m.reply(to, SyncError(kerr.UnknownMemberID.Code))
	default:
		m.sync(g, to, r)
		m.settle(g)
	}
	return m.end()
}

func (m *Machine) sync(g *group, to coord.Token, r *kmsg.SyncGroupRequest) {
	self, code := check(g, r.MemberID, r.InstanceID)
	if code != 0 {
		m.reply(to, SyncError(code))
		return
	}
	l := g.live
	switch {
	case r.Generation != l.generation:
		m.reply(to, SyncError(kerr.IllegalGeneration.Code))
	case differs(r.ProtocolType, l.protocolType), l.state != PreparingRebalance && differs(r.Protocol, l.protocol):
		m.reply(to, SyncError(kerr.InconsistentGroupProtocol.Code))
	case l.state == PreparingRebalance:
		m.reply(to, SyncError(kerr.RebalanceInProgress.Code))
	case l.state == Stable:
		self.synced = true
		self.renew(m.nowMs)
		if l.allSynced() {
			l.syncDeadlineMs = 0
		}
		m.reply(to, syncResponse(l, self.assignment))
	default:
		if self.syncing != 0 {
			// The member asked again, most likely on another connection.
			m.reply(self.syncing, SyncError(kerr.RebalanceInProgress.Code))
		}
		self.syncing, self.synced = to, true
		if self.id == l.leader {
			m.assign(g, r.GroupAssignment)
		}
	}
}

// differs says whether a member thinks of another protocol than the group; older
// clients do not say what they think.
func differs(said *string, is string) bool { return said != nil && *said != is }

// assign takes the leader's assignment. Nothing changes before its record is in
// the log: if that fails, all who waited are told so and the generation still
// has no assignment.
func (m *Machine) assign(g *group, assignment []kmsg.SyncGroupRequestGroupAssignment) {
	l := g.live
	byMember := make(map[string][]byte, len(assignment))
	for _, a := range assignment {
		byMember[a.MemberID] = a.MemberAssignment
	}
	v := image(l, m.nowMs)
	for i, o := range l.members {
		mine := append([]byte{}, byMember[o.id]...) // never null
		v.Members[i].Assignment = mine
		if o.syncing != 0 {
			m.reply(o.syncing, syncResponse(l, mine))
		}
	}
	now := m.nowMs
	m.write(g, v, func() {
		l.state = Stable
		for i, o := range l.members {
			o.assignment = v.Members[i].Assignment
			if o.syncing != 0 {
				o.syncing = 0
				o.renew(now)
			}
		}
		if l.allSynced() {
			l.syncDeadlineMs = 0
		}
	})
}

// syncDue removes the members that never asked for their assignment: they would
// keep partitions that nobody works on.
func (m *Machine) syncDue(g *group) {
	l := g.live
	var gone []*member
	for _, o := range l.members {
		if !o.synced {
			gone = append(gone, o)
		}
	}
	if len(gone) == len(l.members) {
		m.empty(g, gone)
		return
	}
	m.dismiss(l, gone)
	m.prepare(g)
}

func syncResponse(l *classic, assignment []byte) *kmsg.SyncGroupResponse {
	resp := kmsg.NewPtrSyncGroupResponse()
	resp.ProtocolType = kmsg.StringPtr(l.protocolType)
	resp.Protocol = kmsg.StringPtr(l.protocol)
	resp.MemberAssignment = bytes.Clone(assignment)
	return resp
}

// SyncError is the answer to a SyncGroup that failed.
func SyncError(code int16) *kmsg.SyncGroupResponse {
	resp := kmsg.NewPtrSyncGroupResponse()
	resp.ErrorCode = code
	return resp
}
