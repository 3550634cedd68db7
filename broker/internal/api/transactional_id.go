package api

import "github.com/twmb/franz-go/pkg/kmsg"

// mayUseTxn says whether the caller may write with a transactional id, which every
// request of a transaction asks.
func (s *Server) mayUseTxn(c *Call, txnID string) bool {
	return s.Authorize(c.Principal, kmsg.ACLOperationWrite, kmsg.ACLResourceTypeTransactionalId, txnID)
}

// mayDescribeTxn says whether the caller may know of a transactional id.
func (s *Server) mayDescribeTxn(c *Call, txnID string) bool {
	return s.Authorize(c.Principal, kmsg.ACLOperationDescribe, kmsg.ACLResourceTypeTransactionalId, txnID)
}

// mayActForCluster says whether the caller may speak as a broker does.
func (s *Server) mayActForCluster(c *Call) bool {
	return s.Authorize(c.Principal, kmsg.ACLOperationClusterAction, kmsg.ACLResourceTypeCluster, clusterResource)
}
