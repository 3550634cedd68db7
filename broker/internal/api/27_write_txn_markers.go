package api

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/coord"
	"github.com/millrace/millrace/txn/producer"
)

// WriteTxnMarkers: versions 1 and 2. Between brokers it carries a decision of the
// transaction coordinator; from a client it is how an operator ends a hanging
// transaction (KIP-664), and is obeyed without asking the coordinator. Version 2
// names the transaction version, under which a marker's epoch must be above the
// producer's (KIP-1228).
//
//   - CLUSTER_AUTHORIZATION_FAILED: neither CLUSTER_ACTION nor ALTER on the cluster
//   - UNKNOWN_TOPIC_OR_PARTITION
//   - INVALID_PRODUCER_EPOCH: the partition has seen a later epoch
//   - TRANSACTION_COORDINATOR_FENCED: it has seen a later coordinator
//   - KAFKA_STORAGE_ERROR: the disk
func handleWriteTxnMarkers(s *Server, c *Call, reply func(kmsg.Response)) {
	req := c.Req.(*kmsg.WriteTxnMarkersRequest)
	resp := req.ResponseKind().(*kmsg.WriteTxnMarkersResponse)
	allowed := s.mayActForCluster(c) ||
		s.Authorize(c.Principal, kmsg.ACLOperationAlter, kmsg.ACLResourceTypeCluster, clusterResource)
	left := 1 // held by this goroutine until all are handed out
	for _, m := range req.Markers {
		rm := kmsg.NewWriteTxnMarkersResponseMarker()
		rm.ProducerID = m.ProducerID
		for _, t := range m.Topics {
			rt := kmsg.NewWriteTxnMarkersResponseMarkerTopic()
			rt.Topic = t.Topic
			for _, p := range t.Partitions {
				rp := kmsg.NewWriteTxnMarkersResponseMarkerTopicPartition()
				rp.Partition = p
				if !allowed {
					rp.ErrorCode = kerr.ClusterAuthorizationFailed.Code
				}
				rt.Partitions = append(rt.Partitions, rp)
				left++
			}
			rm.Topics = append(rm.Topics, rt)
		}
		resp.Markers = append(resp.Markers, rm)
	}
	if !allowed {
		reply(resp)
		return
	}
	var mu sync.Mutex
	done := func(into *int16, code int16) {
		mu.Lock()
		if into != nil {
			*into = code
		}
		left--
		last := left == 0
		mu.Unlock()
		if last {
			reply(resp)
		}
	}
	for i := range req.Markers {
		s.writeMarkers(&req.Markers[i], &resp.Markers[i], done)
	}
	done(nil, 0)
}

func (s *Server) writeMarkers(m *kmsg.WriteTxnMarkersRequestMarker, resp *kmsg.WriteTxnMarkersResponseMarker, done func(*int16, int16)) {
	marker := producer.Marker{
		ProducerID: m.ProducerID, Epoch: m.ProducerEpoch, Commit: m.Committed,
		CoordinatorEpoch: m.CoordinatorEpoch, TxnVersion: int16(m.TransactionVersion),
	}
	for i := range resp.Topics {
		t := &resp.Topics[i]
		for j := range t.Partitions {
			p := &t.Partitions[j]
			s.Txns.WriteMarker(coord.TopicPartition{Topic: t.Topic, Partition: p.Partition}, marker, func(code int16) {
				done(&p.ErrorCode, code)
			})
		}
	}
}
