package group

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/coord"
)

// Leave handles a LeaveGroup request: one member, or from version 3 on several,
// by member id or by instance id. The answer is a *kmsg.LeaveGroupResponse.
func (m *Machine) Leave(nowMs int64, to coord.Token, r *kmsg.LeaveGroupRequest) coord.Output {
	m.begin(nowMs)
	leavers := r.Members
	if r.Version < 3 {
		leavers = []kmsg.LeaveGroupRequestMember{{MemberID: r.MemberID}}
	}
	resp := kmsg.NewPtrLeaveGroupResponse()
	resp.Members = make([]kmsg.LeaveGroupResponseMember, len(leavers))
	for i, o := range leavers {
		resp.Members[i].MemberID, resp.Members[i].InstanceID = o.MemberID, o.InstanceID
	}
	if r.Group == "" {
		resp.ErrorCode = kerr.InvalidGroupID.Code
		m.reply(to, resp)
		return m.end()
	}
	g := m.groups[r.Group]
	gone := m.leavers(g, resp.Members)
	if r.Version < 3 {
		resp.ErrorCode = resp.Members[0].ErrorCode
	}
	m.reply(to, resp)
	if g != nil {
		m.left(g, gone)
		m.settle(g)
	}
	return m.end()
}

// leavers finds the members that leave and puts an error to those that can not.
// A pending member is forgotten at once.
func (m *Machine) leavers(g *group, rows []kmsg.LeaveGroupResponseMember) (gone []*member) {
	for i := range rows {
		row := &rows[i]
		if g == nil || g.live == nil {
			row.ErrorCode = kerr.UnknownMemberID.Code
			continue
		}
		if row.MemberID == "" && row.InstanceID != nil {
			// An administrator removes whoever has the instance.
			if o := g.live.instance[*row.InstanceID]; o != nil && !slices.Contains(gone, o) {
				gone = append(gone, o)
				continue
			}
			row.ErrorCode = kerr.UnknownMemberID.Code
			continue
		}
		if _, ok := g.live.pending[row.MemberID]; ok && row.InstanceID == nil {
			delete(g.live.pending, row.MemberID)
			continue
		}
		o, code := check(g, row.MemberID, row.InstanceID)
		switch {
		case code != 0:
			row.ErrorCode = code
		case slices.Contains(gone, o):
			row.ErrorCode = kerr.UnknownMemberID.Code
		default:
			gone = append(gone, o)
		}
	}
	return gone
}

// left goes on without the members that left.
func (m *Machine) left(g *group, gone []*member) {
	l := g.live
	switch {
	case l == nil || len(l.members) == 0:
	case len(gone) == len(l.members):
		m.empty(g, gone)
	case len(gone) > 0:
		m.dismiss(l, gone)
		m.rebalanceOrComplete(g)
	default:
		m.completeIfAllJoined(g) // a pending member may have been the last one missing
	}
}
