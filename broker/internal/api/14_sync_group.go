package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/coord"
	"github.com/millrace/millrace/broker/internal/group"
)

// SyncGroup: versions 0 to 5.
//
// The leader brings the assignment of the generation; it is stored, then every
// member gets its part. The others wait for it.
//
//   - GROUP_AUTHORIZATION_FAILED, INVALID_GROUP_ID
//   - UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION
//   - INCONSISTENT_GROUP_PROTOCOL: version 5, the member thinks of another protocol
//   - REBALANCE_IN_PROGRESS: join again. It is also the answer while the coordinator
//     loads: the generation is lost, and clients know no other code here that makes
//     them join.
func handleSyncGroup(s *Server, c *Call, reply func(kmsg.Response)) {
	req := c.Req.(*kmsg.SyncGroupRequest)
	if !s.mayReadGroup(c, req.Group) {
		reply(group.SyncError(kerr.GroupAuthorizationFailed.Code))
		return
	}
	s.Groups.ForKey(req.Group).Do(func(r any) {
		if f, failed := r.(coord.Failure); failed {
			code := groupFailure(f)
			if code == coord.CodeCoordinatorLoading {
				code = kerr.RebalanceInProgress.Code
			}
			reply(group.SyncError(code))
			return
		}
		reply(r.(*kmsg.SyncGroupResponse))
	}, func(m *group.Machine, nowMs int64, to coord.Token) coord.Output {
		return m.Sync(nowMs, to, req)
	})
}
