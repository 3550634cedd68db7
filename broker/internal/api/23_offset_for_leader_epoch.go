package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// OffsetForLeaderEpoch: versions 2 to 4.
//
// For an epoch, the largest epoch of the log that is not above it, and the offset
// where that one ends; -1 and -1 when the log has none (KIP-101, KIP-279, KIP-320).
// One row for every row of the request.
//
//   - TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION,
//     FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, KAFKA_STORAGE_ERROR
func handleOffsetForLeaderEpoch(s *Server, c *Call, reply func(kmsg.Response)) {
	req := c.Req.(*kmsg.OffsetForLeaderEpochRequest)
	resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
	for i := range req.Topics {
		rt := &req.Topics[i]
		t := kmsg.NewOffsetForLeaderEpochResponseTopic()
		t.Topic = rt.Topic
		allowed := s.Authorize(c.Principal, kmsg.ACLOperationDescribe, kmsg.ACLResourceTypeTopic, rt.Topic)
		for j := range rt.Partitions {
			rp := &rt.Partitions[j]
			row := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			row.Partition, row.LeaderEpoch, row.EndOffset = rp.Partition, -1, -1
			p, err := s.Replicas.Get(rt.Topic, rp.Partition)
			switch {
			case !allowed:
				row.ErrorCode = kerr.TopicAuthorizationFailed.Code
			case err != nil:
				row.ErrorCode = codeOf(err)
			default:
				row.ErrorCode = checkEpoch(rp.CurrentLeaderEpoch, p.Marks().LeaderEpoch)
				if row.ErrorCode == 0 {
					row.LeaderEpoch, row.EndOffset = p.EpochEnd(rp.LeaderEpoch)
				}
			}
			t.Partitions = append(t.Partitions, row)
		}
		resp.Topics = append(resp.Topics, t)
	}
	reply(resp)
}
