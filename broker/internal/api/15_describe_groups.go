package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/coord"
	"github.com/millrace/millrace/broker/internal/group"
)

var groupOperations = []kmsg.ACLOperation{
	kmsg.ACLOperationRead, kmsg.ACLOperationDelete, kmsg.ACLOperationDescribe, kmsg.ACLOperationDescribeConfigs, kmsg.ACLOperationAlterConfigs,
}

// DescribeGroups: versions 0 to 6.
//
// One row for each group, in the order of the request.
//
//   - GROUP_AUTHORIZATION_FAILED: no DESCRIBE on the group
//   - GROUP_ID_NOT_FOUND from version 6 on (KIP-1043); before, the state Dead
//   - COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE: again later
func handleDescribeGroups(s *Server, c *Call, reply func(kmsg.Response)) {
	req := c.Req.(*kmsg.DescribeGroupsRequest)
	resp := req.ResponseKind().(*kmsg.DescribeGroupsResponse)
	resp.Groups = make([]kmsg.DescribeGroupsResponseGroup, len(req.Groups))
	all := newGathering(len(req.Groups), func() { reply(resp) })
	for i, name := range req.Groups {
		row := &resp.Groups[i]
		row.Default()
		row.Group = name
		if !s.Authorize(c.Principal, kmsg.ACLOperationDescribe, kmsg.ACLResourceTypeGroup, name) {
			row.ErrorCode = kerr.GroupAuthorizationFailed.Code
			all.done()
			continue
		}
		s.Groups.ForKey(name).Do(func(r any) {
			s.fillGroup(c, req, row, r)
			all.done()
		}, func(m *group.Machine, nowMs int64, to coord.Token) coord.Output { return m.Describe(nowMs, to, name) })
	}
	all.done()
}

func (s *Server) fillGroup(c *Call, req *kmsg.DescribeGroupsRequest, row *kmsg.DescribeGroupsResponseGroup, r any) {
	if f, failed := r.(coord.Failure); failed {
		row.ErrorCode = groupFailure(f)
		return
	}
	*row = *r.(*kmsg.DescribeGroupsResponseGroup)
	if row.State == group.Dead.String() && c.Version >= 6 {
		row.ErrorCode, row.ErrorMessage = kerr.GroupIDNotFound.Code, kmsg.StringPtr("Group "+row.Group+" not found.")
	}
	if req.IncludeAuthorizedOperations {
		row.AuthorizedOperations = s.allowedOperations(c, kmsg.ACLResourceTypeGroup, row.Group, groupOperations)
	}
}
