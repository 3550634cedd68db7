package api

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribeProducers: version 0 (KIP-664).
//
// What a partition knows of its idempotent and transactional producers: where an
// open transaction began, and what it takes to end one that hangs.
//
//   - TOPIC_AUTHORIZATION_FAILED: no READ on the topic
//   - UNKNOWN_TOPIC_OR_PARTITION
//   - KAFKA_STORAGE_ERROR: the partition is offline
func handleDescribeProducers(s *Server, c *Call, reply func(kmsg.Response)) {
	req := c.Req.(*kmsg.DescribeProducersRequest)
	resp := req.ResponseKind().(*kmsg.DescribeProducersResponse)
	for i := range req.Topics {
		rt := &req.Topics[i]
		t := kmsg.NewDescribeProducersResponseTopic()
		t.Topic = rt.Topic
		allowed := s.Authorize(c.Principal, kmsg.ACLOperationRead, kmsg.ACLResourceTypeTopic, rt.Topic)
		for _, index := range rt.Partitions {
			row := kmsg.NewDescribeProducersResponseTopicPartition()
			row.Partition = index
			if allowed {
				s.describeProducers(rt.Topic, &row)
			} else {
				row.ErrorCode = kerr.TopicAuthorizationFailed.Code
			}
			t.Partitions = append(t.Partitions, row)
		}
		resp.Topics = append(resp.Topics, t)
	}
	reply(resp)
}

func (s *Server) describeProducers(topic string, row *kmsg.DescribeProducersResponseTopicPartition) {
	p, err := s.Replicas.Get(topic, row.Partition)
	if err != nil {
		row.ErrorCode = codeOf(err)
		if k := kerr.TypedErrorForCode(row.ErrorCode); errors.Is(k, kerr.UnknownTopicOrPartition) {
			row.ErrorMessage = &k.Description
		}
		return
	}
	for _, st := range p.Producers() {
		ap := kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
		ap.ProducerID, ap.ProducerEpoch = st.ProducerID, int32(st.Epoch)
		ap.LastSequence, ap.LastTimestamp = st.LastSequence, st.LastTimestampMs
		ap.CoordinatorEpoch, ap.CurrentTxnStartOffset = st.CoordinatorEpoch, st.TxnFirstOffset
		row.ActiveProducers = append(row.ActiveProducers, ap)
	}
}
