package api

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/metadata"
	"github.com/millrace/millrace/core/clock"
)

// DeleteRecords: versions 0 to 2.
//
// Moves a partition's log start to an offset; -1 means the high watermark. An
// offset at or below the log start changes nothing. The answer has the log start
// after it.
//
//   - OFFSET_OUT_OF_RANGE: below -1 or above the high watermark
//   - POLICY_VIOLATION: the topic's cleanup.policy has no delete
//   - INVALID_TOPIC_EXCEPTION: an internal topic
//   - TOPIC_AUTHORIZATION_FAILED: no DELETE
//   - UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR
func handleDeleteRecords(s *Server, c *Call, reply func(kmsg.Response)) {
	// Each partition waits for its new log start to be durable, so not on the
	// connection's goroutine.
	clock.Go(s.Clock, "delete records", func() { reply(s.deleteAll(c)) })
}

func (s *Server) deleteAll(c *Call) kmsg.Response {
	req := c.Req.(*kmsg.DeleteRecordsRequest)
	resp := req.ResponseKind().(*kmsg.DeleteRecordsResponse)
	for i := range req.Topics {
		rt := &req.Topics[i]
		t := kmsg.NewDeleteRecordsResponseTopic()
		t.Topic = rt.Topic
		refused := s.refuseDeleteRecords(c, rt.Topic)
		for _, rp := range rt.Partitions {
			row := kmsg.NewDeleteRecordsResponseTopicPartition()
			row.Partition, row.LowWatermark, row.ErrorCode = rp.Partition, -1, refused
			if refused == 0 {
				row.LowWatermark, row.ErrorCode = s.deleteRecords(rt.Topic, rp.Partition, rp.Offset)
			}
			t.Partitions = append(t.Partitions, row)
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}

// refuseDeleteRecords applies the rules of a topic.
func (s *Server) refuseDeleteRecords(c *Call, topic string) int16 {
	t := s.Meta.Image().Topic(topic)
	switch {
	case !s.Authorize(c.Principal, kmsg.ACLOperationDelete, kmsg.ACLResourceTypeTopic, topic):
		return kerr.TopicAuthorizationFailed.Code
	case t == nil:
		return kerr.UnknownTopicOrPartition.Code
	case t.Internal:
		return kerr.InvalidTopicException.Code
	}
	policy, ok := t.Config["cleanup.policy"]
	if ok && !slices.Contains(metadata.ListValues(policy), "delete") {
		return kerr.PolicyViolation.Code
	}
	return 0
}

func (s *Server) deleteRecords(topic string, index int32, offset int64) (low int64, code int16) {
	p, err := s.Replicas.Get(topic, index)
	if err != nil {
		return -1, codeOf(err)
	}
	high := p.Marks().HighWatermark
	if offset == -1 {
		offset = high
	}
	if offset < 0 || offset > high {
		return -1, kerr.OffsetOutOfRange.Code
	}
	if low, err = p.DeleteRecords(offset); err != nil {
		return -1, codeOf(err)
	}
	return low, 0
}
