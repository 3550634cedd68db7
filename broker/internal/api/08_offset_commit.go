package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/coord"
	"github.com/millrace/millrace/broker/internal/group"
)

// OffsetCommit: versions 2 to 10, from version 10 on by topic id.
//
// One row for every partition, in the order of the request. Partitions that can not
// be committed do not keep the others from it.
//
//   - GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED
//   - UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID
//   - UNKNOWN_MEMBER_ID: also a commit from outside, of a group that has members
//   - FENCED_INSTANCE_ID, ILLEGAL_GENERATION, GROUP_ID_NOT_FOUND (version 9)
//   - REBALANCE_IN_PROGRESS: the generation has no assignment yet
//   - OFFSET_METADATA_TOO_LARGE, INVALID_COMMIT_OFFSET_SIZE
//   - COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE
func handleOffsetCommit(s *Server, c *Call, reply func(kmsg.Response)) {
	req := c.Req.(*kmsg.OffsetCommitRequest)
	resp := kmsg.NewPtrOffsetCommitResponse()
	commit := &group.Commit{
		Group: req.Group, Member: req.MemberID, Instance: req.InstanceID,
		Generation: req.Generation, Version: c.Version, RetentionMs: req.RetentionTimeMillis,
	}
	rows := s.offsetCommitRows(c, req, resp, commit)
	if len(rows) == 0 {
		reply(resp)
		return
	}
	s.Groups.ForKey(req.Group).Do(func(r any) {
		if f, failed := r.(coord.Failure); failed {
			code := commitFailure(f)
			for _, row := range rows {
				row.ErrorCode = code
			}
		} else {
			for i, code := range r.(group.Codes) {
				rows[i].ErrorCode = code
			}
		}
		reply(resp)
	}, func(m *group.Machine, nowMs int64, to coord.Token) coord.Output {
		return m.Commit(nowMs, to, commit)
	})
}

// offsetCommitRows makes the rows of the answer, and collects the offsets that can
// be committed with the rows that wait for the outcome.
func (s *Server) offsetCommitRows(c *Call, req *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, commit *group.Commit) []*kmsg.OffsetCommitResponseTopicPartition {
	im := s.Meta.Image()
	mayGroup := s.mayReadGroup(c, req.Group)
	n := 0
	for i := range req.Topics {
		n += len(req.Topics[i].Partitions)
	}
	resp.Topics = make([]kmsg.OffsetCommitResponseTopic, len(req.Topics))
	all := make([]kmsg.OffsetCommitResponseTopicPartition, n)
	waiting := make([]*kmsg.OffsetCommitResponseTopicPartition, 0, n)
	commit.Offsets = make([]group.Offset, 0, n)
	for i := range req.Topics {
		from, to := &req.Topics[i], &resp.Topics[i]
		to.Topic, to.TopicID = from.Topic, from.TopicID
		to.Partitions, all = all[:len(from.Partitions):len(from.Partitions)], all[len(from.Partitions):]
		t, code := s.commitTopic(c, im, from.Topic, from.TopicID, c.Version >= 10)
		if !mayGroup {
			code = kerr.GroupAuthorizationFailed.Code
		}
		for k := range from.Partitions {
			p, row := &from.Partitions[k], &to.Partitions[k]
			row.Partition, row.ErrorCode = p.Partition, code
			switch {
			case code != 0:
			case p.Partition < 0 || int(p.Partition) >= len(t.Partitions):
				row.ErrorCode = kerr.UnknownTopicOrPartition.Code
			default:
				o := group.Offset{Topic: t.Name, TopicID: t.ID, Partition: p.Partition, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch}
				if p.Metadata != nil {
					o.Metadata = *p.Metadata
				}
				commit.Offsets = append(commit.Offsets, o)
				waiting = append(waiting, row)
			}
		}
	}
	return waiting
}
