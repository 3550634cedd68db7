package api

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/txn/coordinator"
)

// DescribeTransactions: version 0 (KIP-664).
//
// One row for each id, in the order of the request. Partitions of topics that the
// caller may not describe are left out. While a decision is carried out only the
// partitions are named whose marker is not durable yet.
//
//   - TRANSACTIONAL_ID_AUTHORIZATION_FAILED: no DESCRIBE on the id
//   - INVALID_REQUEST: an empty id
//   - TRANSACTIONAL_ID_NOT_FOUND
//   - COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE: again later
func handleDescribeTransactions(s *Server, c *Call, reply func(kmsg.Response)) {
	req := c.Req.(*kmsg.DescribeTransactionsRequest)
	resp := req.ResponseKind().(*kmsg.DescribeTransactionsResponse)
	resp.TransactionStates = make([]kmsg.DescribeTransactionsResponseTransactionState, len(req.TransactionalIDs))
	var mu sync.Mutex
	left := 1 + len(req.TransactionalIDs) // held by this goroutine until all are asked
	done := func() {
		mu.Lock()
		left--
		last := left == 0
		mu.Unlock()
		if last {
			reply(resp)
		}
	}
	for i, id := range req.TransactionalIDs {
		row := &resp.TransactionStates[i]
		row.Default()
		row.TransactionalID = id
		switch {
		case !s.mayDescribeTxn(c, id):
			row.ErrorCode = kerr.TransactionalIDAuthorizationFailed.Code
		case id == "":
			row.ErrorCode = kerr.InvalidRequest.Code
		}
		if row.ErrorCode != 0 {
			done()
			continue
		}
		s.Txns.Describe(id, func(d coordinator.Described, found bool, code int16) {
			s.fillTransaction(c, row, d, found, code)
			done()
		})
	}
	done()
}

func (s *Server) fillTransaction(c *Call, row *kmsg.DescribeTransactionsResponseTransactionState, d coordinator.Described, found bool, code int16) {
	switch {
	case code != 0:
		row.ErrorCode = code
		return
	case !found:
		row.ErrorCode = kerr.TransactionalIDNotFound.Code
		return
	}
	row.State, row.TimeoutMillis, row.StartTimestamp = d.State.String(), d.TimeoutMs, d.StartMs
	row.ProducerID, row.ProducerEpoch = d.ProducerID, d.Epoch
	for i, tp := range d.Partitions {
		if i > 0 && tp.Topic == d.Partitions[i-1].Topic {
			if n := len(row.Topics); n > 0 && row.Topics[n-1].Topic == tp.Topic {
				row.Topics[n-1].Partitions = append(row.Topics[n-1].Partitions, tp.Partition)
			}
			continue
		}
		if !s.Authorize(c.Principal, kmsg.ACLOperationDescribe, kmsg.ACLResourceTypeTopic, tp.Topic) {
			continue
		}
		t := kmsg.NewDescribeTransactionsResponseTransactionStateTopic()
		t.Topic, t.Partitions = tp.Topic, []int32{tp.Partition}
		row.Topics = append(row.Topics, t)
	}
}
