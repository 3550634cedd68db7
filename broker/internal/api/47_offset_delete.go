package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/coord"
	"github.com/millrace/millrace/broker/internal/group"
)

// OffsetDelete: version 0.
//
// It removes committed offsets of a group, and those of open transactions for the same partitions. The answer leaves when that is
// durable. An offset that is not there counts as removed.
//
//   - GROUP_AUTHORIZATION_FAILED: no DELETE on the group; TOPIC_AUTHORIZATION_FAILED: no READ on the topic
//   - GROUP_ID_NOT_FOUND
//   - NON_EMPTY_GROUP: it has members that are no consumers
//   - UNKNOWN_TOPIC_OR_PARTITION, GROUP_SUBSCRIBED_TO_TOPIC, for a partition
//   - COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE: again later
func handleOffsetDelete(s *Server, c *Call, reply func(kmsg.Response)) {
	req := c.Req.(*kmsg.OffsetDeleteRequest)
	resp := req.ResponseKind().(*kmsg.OffsetDeleteResponse)
	if !s.Authorize(c.Principal, kmsg.ACLOperationDelete, kmsg.ACLResourceTypeGroup, req.Group) {
		resp.ErrorCode = kerr.GroupAuthorizationFailed.Code
		reply(resp)
		return
	}
	ask, rows := s.offsetsToDelete(c, req, resp)
	s.Groups.ForKey(req.Group).Do(func(r any) {
		switch r := r.(type) {
		case coord.Failure:
			resp.ErrorCode = groupFailure(r)
		case group.OffsetsDeleted:
			resp.ErrorCode = r.Code
			for i, code := range r.Codes {
				rows[i].ErrorCode = code
			}
		}
		if resp.ErrorCode != 0 {
			resp.Topics = nil
		}
		reply(resp)
	}, func(m *group.Machine, nowMs int64, to coord.Token) coord.Output {
		return m.DeleteOffsetsOf(nowMs, to, ask)
	})
}

// offsetsToDelete makes the rows of the answer, and collects what the coordinator has to be asked, with the rows that it is about.
func (s *Server) offsetsToDelete(c *Call, req *kmsg.OffsetDeleteRequest, resp *kmsg.OffsetDeleteResponse) (
	ask *group.OffsetDelete, rows []*kmsg.OffsetDeleteResponseTopicPartition,
) {
	ask = &group.OffsetDelete{Group: req.Group}
	im := s.Meta.Image()
	resp.Topics = make([]kmsg.OffsetDeleteResponseTopic, len(req.Topics))
	for i, rt := range req.Topics {
		out := &resp.Topics[i]
		out.Topic = rt.Topic
		out.Partitions = make([]kmsg.OffsetDeleteResponseTopicPartition, len(rt.Partitions))
		t := im.Topic(rt.Topic)
		allowed := s.Authorize(c.Principal, kmsg.ACLOperationRead, kmsg.ACLResourceTypeTopic, rt.Topic)
		for k, p := range rt.Partitions {
			row := &out.Partitions[k]
			row.Partition = p.Partition
			switch {
			case !allowed:
				row.ErrorCode = kerr.TopicAuthorizationFailed.Code
			case t == nil || p.Partition < 0 || int(p.Partition) >= len(t.Partitions):
				row.ErrorCode = kerr.UnknownTopicOrPartition.Code
			default:
				ask.Partitions = append(ask.Partitions, group.OffsetPartition{Topic: rt.Topic, Partition: p.Partition})
				rows = append(rows, row)
			}
		}
	}
	return ask, rows
}
