package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/coord"
	"github.com/millrace/millrace/broker/internal/group"
)

// DeleteGroups: versions 0 to 3; 3 has a message for each error.
//
// A group goes with its offsets, those of open transactions too. The answer leaves when that is durable.
//
//   - GROUP_AUTHORIZATION_FAILED: no DELETE on the group
//   - GROUP_ID_NOT_FOUND
//   - NON_EMPTY_GROUP: it has members
//   - COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE: again later
func handleDeleteGroups(s *Server, c *Call, reply func(kmsg.Response)) {
	req := c.Req.(*kmsg.DeleteGroupsRequest)
	resp := req.ResponseKind().(*kmsg.DeleteGroupsResponse)
	resp.Groups = make([]kmsg.DeleteGroupsResponseGroup, len(req.Groups))
	all := newGathering(len(req.Groups), func() {
		for i := range resp.Groups {
			if err := kerr.TypedErrorForCode(resp.Groups[i].ErrorCode); err != nil {
				resp.Groups[i].ErrorMessage = kmsg.StringPtr(err.Description)
			}
		}
		reply(resp)
	})
	for i, name := range req.Groups {
		row := &resp.Groups[i]
		row.Default()
		row.Group = name
		if !s.Authorize(c.Principal, kmsg.ACLOperationDelete, kmsg.ACLResourceTypeGroup, name) {
			row.ErrorCode = kerr.GroupAuthorizationFailed.Code
			all.done()
			continue
		}
		s.Groups.ForKey(name).Do(func(r any) {
			if f, failed := r.(coord.Failure); failed {
				row.ErrorCode = groupFailure(f)
			} else {
				row.ErrorCode = r.(int16)
			}
			all.done()
		}, func(m *group.Machine, nowMs int64, to coord.Token) coord.Output { return m.Delete(nowMs, to, name) })
	}
	all.done()
}
