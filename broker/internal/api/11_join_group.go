package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/coord"
	"github.com/millrace/millrace/broker/internal/group"
)

// JoinGroup: versions 0 to 9.
//
// The answer waits until the group has a new generation: until all members have
// joined, or the longest rebalance timeout of theirs is over. Version 4 and above
// are first given a member id (KIP-394), version 5 has static members (KIP-345),
// version 9 tells a static leader that came back not to assign (KIP-814).
//
//   - GROUP_AUTHORIZATION_FAILED, INVALID_GROUP_ID, INVALID_SESSION_TIMEOUT
//   - MEMBER_ID_REQUIRED: join again with the id in the answer
//   - UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID
//   - INCONSISTENT_GROUP_PROTOCOL: no protocol in common with the group
//   - GROUP_MAX_SIZE_REACHED
//   - COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE
func handleJoinGroup(s *Server, c *Call, reply func(kmsg.Response)) {
	req := c.Req.(*kmsg.JoinGroupRequest)
	if !s.mayReadGroup(c, req.Group) {
		reply(group.JoinError(req.MemberID, kerr.GroupAuthorizationFailed.Code))
		return
	}
	s.Groups.ForKey(req.Group).Do(func(r any) {
		if f, failed := r.(coord.Failure); failed {
			reply(group.JoinError(req.MemberID, groupFailure(f)))
			return
		}
		reply(r.(*kmsg.JoinGroupResponse))
	}, func(m *group.Machine, nowMs int64, to coord.Token) coord.Output {
		return m.Join(nowMs, to, clientOf(c), req)
	})
}
