package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/coord"
	"github.com/millrace/millrace/broker/internal/group"
)

// Heartbeat: versions 0 to 4.
//
// It keeps a member's session. While the coordinator loads, the answer is NONE: the
// member's session begins anew when it is loaded.
//
//   - GROUP_AUTHORIZATION_FAILED, INVALID_GROUP_ID
//   - UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION
//   - REBALANCE_IN_PROGRESS: the member has to join again
func handleHeartbeat(s *Server, c *Call, reply func(kmsg.Response)) {
	req := c.Req.(*kmsg.HeartbeatRequest)
	if !s.mayReadGroup(c, req.Group) {
		reply(heartbeatAnswer(kerr.GroupAuthorizationFailed.Code))
		return
	}
	s.Groups.ForKey(req.Group).Do(func(r any) {
		if f, failed := r.(coord.Failure); failed {
			if f.Code == coord.CodeCoordinatorLoading {
				f.Code = 0
			}
			reply(heartbeatAnswer(f.Code))
			return
		}
		reply(r.(*kmsg.HeartbeatResponse))
	}, func(m *group.Machine, nowMs int64, to coord.Token) coord.Output {
		return m.Heartbeat(nowMs, to, req)
	})
}

func heartbeatAnswer(code int16) *kmsg.HeartbeatResponse {
	resp := kmsg.NewPtrHeartbeatResponse()
	resp.ErrorCode = code
	return resp
}
