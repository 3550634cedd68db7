package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/txn/coordinator"
)

// InitProducerId: versions 0 to 5; 3 adds recovery with the id and epoch that the
// client has (KIP-360), 4 PRODUCER_FENCED, 5 TRANSACTION_ABORTABLE.
//
// Without a transactional id it gives a producer id that nobody had. With one it
// gives the next epoch: an open transaction of the same id is aborted first, one
// that is being completed is waited for, for a second at most.
//
//   - TRANSACTIONAL_ID_AUTHORIZATION_FAILED: no WRITE on the transactional id
//   - CLUSTER_AUTHORIZATION_FAILED: no id, and no IDEMPOTENT_WRITE on the cluster
//   - INVALID_REQUEST: an empty transactional id, or only one of id and epoch
//   - INVALID_TRANSACTION_TIMEOUT: not positive, or above the broker's limit
//   - PRODUCER_FENCED (INVALID_PRODUCER_EPOCH below version 4): not the owner
//   - CONCURRENT_TRANSACTIONS: the completion takes longer
//   - COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE: again later
func handleInitProducerID(s *Server, c *Call, reply func(kmsg.Response)) {
	req := c.Req.(*kmsg.InitProducerIDRequest)
	resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	if code := s.mayInitProducer(c, req.TransactionalID); code != 0 {
		resp.ErrorCode = code
		reply(resp)
		return
	}
	if req.TransactionalID == nil {
		id, err := s.Meta.NextProducerID()
		if err != nil {
			resp.ErrorCode = kerr.CoordinatorLoadInProgress.Code
		} else {
			resp.ProducerID, resp.ProducerEpoch = id, 0
		}
		reply(resp)
		return
	}
	s.Txns.InitProducerID(coordinator.InitRequest{
		ID: *req.TransactionalID, ProducerID: req.ProducerID, Epoch: req.ProducerEpoch,
		TimeoutMs: req.TransactionTimeoutMillis, Version: c.Version,
	}, func(r coordinator.InitReply) {
		resp.ErrorCode, resp.ProducerID, resp.ProducerEpoch = r.Code, r.ProducerID, r.Epoch
		reply(resp)
	})
}

func (s *Server) mayInitProducer(c *Call, txnID *string) int16 {
	switch {
	case txnID != nil && !s.mayUseTxn(c, *txnID):
		return kerr.TransactionalIDAuthorizationFailed.Code
	case txnID == nil && !s.Authorize(c.Principal, kmsg.ACLOperationIdempotentWrite, kmsg.ACLResourceTypeCluster, clusterResource):
		return kerr.ClusterAuthorizationFailed.Code
	}
	return 0
}
