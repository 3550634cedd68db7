package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/coord"
	"github.com/millrace/millrace/txn/coordinator"
)

// AddOffsetsToTxn: versions 0 to 4. It adds the partition of __consumer_offsets
// that holds a group, which clients of transaction version 1 do before their first
// TxnOffsetCommit. An empty group id is a group like any other, as in Kafka.
//
//   - TRANSACTIONAL_ID_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED
//   - INVALID_REQUEST, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED
//     (INVALID_PRODUCER_EPOCH below version 2), UNKNOWN_PRODUCER_ID,
//     CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE, COORDINATOR_LOAD_IN_PROGRESS,
//     COORDINATOR_NOT_AVAILABLE: as for AddPartitionsToTxn
func handleAddOffsetsToTxn(s *Server, c *Call, reply func(kmsg.Response)) {
	req := c.Req.(*kmsg.AddOffsetsToTxnRequest)
	resp := req.ResponseKind().(*kmsg.AddOffsetsToTxnResponse)
	switch {
	case !s.mayUseTxn(c, req.TransactionalID):
		resp.ErrorCode = kerr.TransactionalIDAuthorizationFailed.Code
	case !s.Authorize(c.Principal, kmsg.ACLOperationRead, kmsg.ACLResourceTypeGroup, req.Group):
		resp.ErrorCode = kerr.GroupAuthorizationFailed.Code
	}
	if resp.ErrorCode != 0 {
		reply(resp)
		return
	}
	s.Txns.Add(coordinator.AddRequest{
		ID: req.TransactionalID, ProducerID: req.ProducerID, Epoch: req.ProducerEpoch,
		Partitions: []coord.TopicPartition{s.Txns.GroupPartition(req.Group)}, Version: c.Version,
	}, func(codes []int16) {
		resp.ErrorCode = codes[0]
		reply(resp)
	})
}
