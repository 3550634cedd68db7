package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/txn/coordinator"
	"github.com/millrace/millrace/txn/wire"
)

// InitProducerId: versions 0 to 6; 3 adds recovery with the id and epoch that the
// client has (KIP-360), 4 PRODUCER_FENCED, 5 TRANSACTION_ABORTABLE, 6 two-phase commit
// (KIP-939).
//
// Without a transactional id it gives a producer id that nobody had. With one it
// gives the next epoch: an open transaction of the same id is aborted first, or kept
// if the request says so; one that is being completed is waited for, for a second at
// most.
//
//   - TRANSACTIONAL_ID_AUTHORIZATION_FAILED: no WRITE on the transactional id; or
//     two-phase commit is asked for, and the broker does not take part or there is
//     no TWO_PHASE_COMMIT on the id
//   - CLUSTER_AUTHORIZATION_FAILED: no id, and no IDEMPOTENT_WRITE on the cluster
//   - INVALID_REQUEST: an empty transactional id, or only one of id and epoch
//   - UNSUPPORTED_VERSION: a transaction is to be kept, and the broker does not take
//     part in two-phase commits
//   - INVALID_TRANSACTION_TIMEOUT: not positive, or above the broker's limit; not
//     looked at for two-phase commit
//   - PRODUCER_FENCED (INVALID_PRODUCER_EPOCH below version 4): not the owner
//   - CONCURRENT_TRANSACTIONS: the completion takes longer
//   - COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE: again later
func handleInitProducerID(s *Server, c *Call, reply func(kmsg.Response)) {
	req := c.Req.(*wire.InitProducerIDRequest)
	resp := req.ResponseKind().(*wire.InitProducerIDResponse)
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	if code := s.mayInitProducer(c, req); code != 0 {
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
		TimeoutMs: req.TransactionTimeoutMillis, Enable2PC: req.Enable2PC, KeepPrepared: req.KeepPreparedTxn, Version: c.Version,
	}, func(r coordinator.InitReply) {
		resp.ErrorCode, resp.ProducerID, resp.ProducerEpoch = r.Code, r.ProducerID, r.Epoch
		resp.OngoingTxnProducerID, resp.OngoingTxnProducerEpoch = r.OngoingProducerID, r.OngoingEpoch
		reply(resp)
	})
}

func newInitProducerID() kmsg.Request { return wire.NewInitProducerIDRequest() }

// opTwoPhaseCommit is Kafka's TWO_PHASE_COMMIT, which kmsg does not name.
const opTwoPhaseCommit kmsg.ACLOperation = 15

// OperationName is Kafka's name of an operation.
func OperationName(op kmsg.ACLOperation) string {
	if op == opTwoPhaseCommit {
		return "TWO_PHASE_COMMIT"
	}
	return op.String()
}

func (s *Server) mayInitProducer(c *Call, req *wire.InitProducerIDRequest) int16 {
	id := req.TransactionalID
	switch {
	case id != nil && !s.mayUseTxn(c, *id):
		return kerr.TransactionalIDAuthorizationFailed.Code
	case id != nil && req.Enable2PC && !s.Authorize(c.Principal, opTwoPhaseCommit, kmsg.ACLResourceTypeTransactionalId, *id):
		return kerr.TransactionalIDAuthorizationFailed.Code
	case id == nil && !s.Authorize(c.Principal, kmsg.ACLOperationIdempotentWrite, kmsg.ACLResourceTypeCluster, clusterResource):
		return kerr.ClusterAuthorizationFailed.Code
	}
	return 0
}
