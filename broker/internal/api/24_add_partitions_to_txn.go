package api

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/coord"
	"github.com/millrace/millrace/txn/coordinator"
)

// AddPartitionsToTxn: versions 0 to 5. Clients use 0 to 3, for one transaction;
// from 4 on a broker asks for many, to add on behalf of a Produce request or only
// to verify.
//
// The partitions of a transaction are added together or not at all: when one of
// them can not be, the others are told OPERATION_NOT_ATTEMPTED. While the
// transaction before is being completed the request waits, for a second at most.
//
//   - CLUSTER_AUTHORIZATION_FAILED: version 4 and above without CLUSTER_ACTION,
//     for the whole request
//   - TRANSACTIONAL_ID_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED,
//     UNKNOWN_TOPIC_OR_PARTITION
//   - INVALID_REQUEST: an empty transactional id
//   - INVALID_PRODUCER_ID_MAPPING: the id is not known, or has another producer id
//   - PRODUCER_FENCED (INVALID_PRODUCER_EPOCH below version 2): another epoch
//   - UNKNOWN_PRODUCER_ID: the transaction was aborted by its timeout, the client
//     may go on through InitProducerId; Kafka says PRODUCER_FENCED
//   - CONCURRENT_TRANSACTIONS: the completion takes longer
//   - TRANSACTION_ABORTABLE: verification of a partition that is not in
//   - INVALID_TXN_STATE: the transaction has voted in a two-phase commit
//   - COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE: again later
func handleAddPartitionsToTxn(s *Server, c *Call, reply func(kmsg.Response)) {
	req := c.Req.(*kmsg.AddPartitionsToTxnRequest)
	resp := req.ResponseKind().(*kmsg.AddPartitionsToTxnResponse)
	if c.Version >= 4 {
		s.addForBroker(c, req, resp, reply)
		return
	}
	a := addition{AddRequest: coordinator.AddRequest{
		ID: req.TransactionalID, ProducerID: req.ProducerID, Epoch: req.ProducerEpoch, Version: c.Version,
	}}
	for _, t := range req.Topics {
		a.topic(t.Topic, t.Partitions)
	}
	s.add(c, &a, func() {
		i := 0
		for _, t := range req.Topics {
			rt := kmsg.NewAddPartitionsToTxnResponseTopic()
			rt.Topic = t.Topic
			for _, p := range t.Partitions {
				rp := kmsg.NewAddPartitionsToTxnResponseTopicPartition()
				rp.Partition, rp.ErrorCode = p, a.codes[i]
				rt.Partitions = append(rt.Partitions, rp)
				i++
			}
			resp.Topics = append(resp.Topics, rt)
		}
		reply(resp)
	})
}

// addForBroker serves version 4 and above: one result for every transaction of the
// request, in its order, also when an id is there twice.
func (s *Server) addForBroker(c *Call, req *kmsg.AddPartitionsToTxnRequest, resp *kmsg.AddPartitionsToTxnResponse, reply func(kmsg.Response)) {
	if !s.mayActForCluster(c) {
		resp.ErrorCode = kerr.ClusterAuthorizationFailed.Code
		reply(resp)
		return
	}
	all := make([]addition, len(req.Transactions))
	var mu sync.Mutex
	left := len(all) + 1
	done := func() {
		mu.Lock()
		left--
		last := left == 0
		mu.Unlock()
		if last {
			fillTransactions(resp, req, all)
			reply(resp)
		}
	}
	for i := range req.Transactions {
		rt := &req.Transactions[i]
		all[i] = addition{AddRequest: coordinator.AddRequest{
			ID: rt.TransactionalID, ProducerID: rt.ProducerID, Epoch: rt.ProducerEpoch,
			Implicit: !rt.VerifyOnly, VerifyOnly: rt.VerifyOnly, Version: c.Version,
		}}
		for _, t := range rt.Topics {
			all[i].topic(t.Topic, t.Partitions)
		}
		s.add(c, &all[i], done)
	}
	done()
}

func fillTransactions(resp *kmsg.AddPartitionsToTxnResponse, req *kmsg.AddPartitionsToTxnRequest, all []addition) {
	for i, from := range req.Transactions {
		tx := kmsg.NewAddPartitionsToTxnResponseTransaction()
		tx.TransactionalID = from.TransactionalID
		n := 0
		for _, t := range from.Topics {
			rt := kmsg.NewAddPartitionsToTxnResponseTransactionTopic()
			rt.Topic = t.Topic
			for _, p := range t.Partitions {
				rp := kmsg.NewAddPartitionsToTxnResponseTransactionTopicPartition()
				rp.Partition, rp.ErrorCode = p, all[i].codes[n]
				rt.Partitions = append(rt.Partitions, rp)
				n++
			}
			tx.Topics = append(tx.Topics, rt)
		}
		resp.Transactions = append(resp.Transactions, tx)
	}
}

// addition is one transaction's part of a request. codes is written once, before
// done is called.
type addition struct {
	coordinator.AddRequest
	codes []int16
}

func (a *addition) topic(name string, partitions []int32) {
	for _, p := range partitions {
		a.Partitions = append(a.Partitions, coord.TopicPartition{Topic: name, Partition: p})
	}
}

// add checks what the broker knows and asks the coordinator for the rest.
func (s *Server) add(c *Call, a *addition, done func()) {
	if a.refused(s, c) {
		done()
		return
	}
	s.Txns.Add(a.AddRequest, func(codes []int16) {
		a.codes = codes
		done()
	})
}

// refused fills the codes when the coordinator need not be asked.
func (a *addition) refused(s *Server, c *Call) bool {
	a.codes = make([]int16, len(a.Partitions))
	if c.Version < 4 && !s.mayUseTxn(c, a.ID) {
		for i := range a.codes {
			a.codes[i] = kerr.TransactionalIDAuthorizationFailed.Code
		}
		return true
	}
	bad := false
	im := s.Meta.Image()
	for i, tp := range a.Partitions {
		t := im.Topic(tp.Topic)
		switch {
		case c.Version < 4 && !s.Authorize(c.Principal, kmsg.ACLOperationWrite, kmsg.ACLResourceTypeTopic, tp.Topic):
			a.codes[i] = kerr.TopicAuthorizationFailed.Code
		case t == nil || tp.Partition < 0 || int(tp.Partition) >= len(t.Partitions):
			a.codes[i] = kerr.UnknownTopicOrPartition.Code
		}
		bad = bad || a.codes[i] != 0
	}
	for i := range a.codes {
		if bad && a.codes[i] == 0 {
			a.codes[i] = kerr.OperationNotAttempted.Code
		}
	}
	return bad
}
