package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// FindCoordinator: versions 0 to 6, version 4 and above for many keys.
//
// The coordinator of every group and every transactional id is this node. One row
// for every key, in the order of the request, an empty key included.
//
//   - INVALID_REQUEST: a key type that is neither group 0 nor transaction 1. Share
//     partitions (type 2) have no coordinator here.
//   - GROUP_AUTHORIZATION_FAILED, TRANSACTIONAL_ID_AUTHORIZATION_FAILED
func handleFindCoordinator(s *Server, c *Call, reply func(kmsg.Response)) {
	req := c.Req.(*kmsg.FindCoordinatorRequest)
	resp := req.ResponseKind().(*kmsg.FindCoordinatorResponse)
	if c.Version < 4 {
		row := s.coordinatorOf(c, req.CoordinatorType, req.CoordinatorKey)
		resp.ErrorCode, resp.ErrorMessage = row.ErrorCode, row.ErrorMessage
		if row.ErrorCode == 0 {
			resp.ErrorMessage = kmsg.StringPtr("NONE") // as Kafka says
		}
		resp.NodeID, resp.Host, resp.Port = row.NodeID, row.Host, row.Port
		reply(resp)
		return
	}
	for _, key := range req.CoordinatorKeys {
		resp.Coordinators = append(resp.Coordinators, s.coordinatorOf(c, req.CoordinatorType, key))
	}
	reply(resp)
}

// The types of coordinator keys.
const (
	keyTypeGroup       = 0
	keyTypeTransaction = 1
)

func (s *Server) coordinatorOf(c *Call, keyType int8, key string) kmsg.FindCoordinatorResponseCoordinator {
	row := kmsg.NewFindCoordinatorResponseCoordinator()
	row.Key, row.NodeID, row.Port = key, -1, -1
	row.ErrorMessage = kmsg.StringPtr("")
	allow := func(kind kmsg.ACLResourceType) bool {
		return s.Authorize(c.Principal, kmsg.ACLOperationDescribe, kind, key)
	}
	switch {
	case keyType == keyTypeGroup && !allow(kmsg.ACLResourceTypeGroup):
		row.ErrorCode = kerr.GroupAuthorizationFailed.Code
	case keyType == keyTypeTransaction && !allow(kmsg.ACLResourceTypeTransactionalId):
		row.ErrorCode = kerr.TransactionalIDAuthorizationFailed.Code
	case keyType == keyTypeGroup, keyType == keyTypeTransaction:
		row.NodeID = s.Config.NodeID
		row.Host, row.Port = s.Advertised(c.Listener, c.Local)
	default:
		row.ErrorCode = kerr.InvalidRequest.Code
		row.ErrorMessage = kmsg.StringPtr("this broker coordinates groups (key type 0) and transactions (key type 1)")
	}
	return row
}
