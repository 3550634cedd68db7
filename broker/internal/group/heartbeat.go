package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/coord"
)

// Heartbeat handles a Heartbeat request: it keeps the member's session, and says
// when the group rebalances. The answer is a *kmsg.HeartbeatResponse.
func (m *Machine) Heartbeat(nowMs int64, to coord.Token, r *kmsg.HeartbeatRequest) coord.Output {
	m.begin(nowMs)
	resp := kmsg.NewPtrHeartbeatResponse()
	resp.ErrorCode = m.heartbeat(r)
	m.reply(to, resp)
	return m.end()
}

func (m *Machine) heartbeat(r *kmsg.HeartbeatRequest) int16 {
	if r.Group == "" {
		return kerr.InvalidGroupID.Code
	}
	g := m.groups[r.Group]
	if g == nil {
		return kerr.UnknownMemberID.Code
	}
	self, code := check(g, r.MemberID, r.InstanceID)
	switch {
	case code != 0:
		return code
	case r.Generation != g.live.generation:
		return kerr.IllegalGeneration.Code
	}
	m.alive(self)
	if g.live.state == PreparingRebalance {
		return kerr.RebalanceInProgress.Code
	}
	return 0
}

// alive renews a session. The wait of a new member has its own end.
func (m *Machine) alive(o *member) {
	if !o.isNew {
		o.renew(m.nowMs)
	}
}
