package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/txn/coordinator"
)

// EndTxn: versions 0 to 5. From 5 on every end raises the producer's epoch, and the
// answer names the producer id and epoch for the next transaction (KIP-890).
//
// The answer comes when the decision is durable and its markers are appended; when
// a partition can not take its marker, a second after the first try.
//
//   - TRANSACTIONAL_ID_AUTHORIZATION_FAILED
//   - INVALID_REQUEST: an empty transactional id
//   - INVALID_PRODUCER_ID_MAPPING: the id is not known, or has another producer id
//   - PRODUCER_FENCED (INVALID_PRODUCER_EPOCH below version 2): another epoch
//   - INVALID_TXN_STATE: nothing to commit, or the other way round as decided
//   - CONCURRENT_TRANSACTIONS: a repeat, while the first is being carried out
//   - TRANSACTION_ABORTABLE (UNKNOWN_PRODUCER_ID below version 5): a commit after
//     the transaction was aborted by its timeout; Kafka 4.4 says INVALID_TXN_STATE
//   - COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE: again later
func handleEndTxn(s *Server, c *Call, reply func(kmsg.Response)) {
	req := c.Req.(*kmsg.EndTxnRequest)
	resp := req.ResponseKind().(*kmsg.EndTxnResponse)
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	if !s.mayUseTxn(c, req.TransactionalID) {
		resp.ErrorCode = kerr.TransactionalIDAuthorizationFailed.Code
		reply(resp)
		return
	}
	s.Txns.End(coordinator.EndRequest{
		ID: req.TransactionalID, ProducerID: req.ProducerID, Epoch: req.ProducerEpoch,
		Commit: req.Commit, Version: c.Version,
	}, func(r coordinator.EndReply) {
		resp.ErrorCode, resp.ProducerID, resp.ProducerEpoch = r.Code, r.ProducerID, r.Epoch
		reply(resp)
	})
}
