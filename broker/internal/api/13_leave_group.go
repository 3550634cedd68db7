package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/coord"
	"github.com/millrace/millrace/broker/internal/group"
)

// LeaveGroup: versions 0 to 5.
//
// One member leaves, from version 3 on several, each with its own error; a member
// without an id is the one that has the instance id (an administrator removes it).
//
//   - GROUP_AUTHORIZATION_FAILED, INVALID_GROUP_ID
//   - UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID
func handleLeaveGroup(s *Server, c *Call, reply func(kmsg.Response)) {
	req := c.Req.(*kmsg.LeaveGroupRequest)
	if !s.mayReadGroup(c, req.Group) {
		reply(leaveError(kerr.GroupAuthorizationFailed.Code))
		return
	}
	s.Groups.ForKey(req.Group).Do(func(r any) {
		if f, failed := r.(coord.Failure); failed {
			reply(leaveError(groupFailure(f)))
			return
		}
		reply(r.(*kmsg.LeaveGroupResponse))
	}, func(m *group.Machine, nowMs int64, to coord.Token) coord.Output {
		return m.Leave(nowMs, to, req)
	})
}

func leaveError(code int16) *kmsg.LeaveGroupResponse {
	resp := kmsg.NewPtrLeaveGroupResponse()
	resp.ErrorCode = code
	return resp
}
