package api

import (
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/coord"
	"github.com/millrace/millrace/broker/internal/group"
	"github.com/millrace/millrace/broker/internal/metadata"
)

// OffsetFetch: versions 1 to 10, from version 8 on of several groups, from version
// 10 on by topic id.
//
// A partition without a committed offset is answered with -1, an unknown group too.
// Null topics (version 2) are all topics that the client may describe.
//
//   - GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED
//   - UNKNOWN_TOPIC_ID
//   - UNSTABLE_OFFSET_COMMIT: version 7, the client wants stable offsets and an open
//     transaction has one for the partition
//   - COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE
func handleOffsetFetch(s *Server, c *Call, reply func(kmsg.Response)) {
	req := c.Req.(*kmsg.OffsetFetchRequest)
	resp := kmsg.NewPtrOffsetFetchResponse()
	im := s.Meta.Image()
	groups := req.Groups
	if c.Version < 8 {
		groups = []kmsg.OffsetFetchRequestGroup{oneGroup(req)}
	}
	resp.Groups = make([]kmsg.OffsetFetchResponseGroup, len(groups))
	var left atomic.Int64
	left.Store(int64(len(groups)) + 1)
	done := func() {
		if left.Add(-1) > 0 {
			return
		}
		if c.Version < 8 {
			flatten(resp, c.Version)
		}
		reply(resp)
	}
	for i := range groups {
		f := &offsetFetch{s: s, c: c, im: im, from: &groups[i], to: &resp.Groups[i], done: done}
		f.run(req.RequireStable)
	}
	done()
}

// oneGroup is the group of a request before version 8 in the form of the later ones.
func oneGroup(req *kmsg.OffsetFetchRequest) kmsg.OffsetFetchRequestGroup {
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = req.Group
	if req.Topics == nil {
		return g
	}
	g.Topics = make([]kmsg.OffsetFetchRequestGroupTopic, len(req.Topics))
	for i := range req.Topics {
		g.Topics[i].Topic, g.Topics[i].Partitions = req.Topics[i].Topic, req.Topics[i].Partitions
	}
	return g
}

// flatten puts the one group of an answer before version 8 in its place. Version 1
// has no error of the whole answer: it goes to the partitions.
func flatten(resp *kmsg.OffsetFetchResponse, version int16) {
	g := resp.Groups[0]
	resp.ErrorCode, resp.Groups = g.ErrorCode, nil
	resp.Topics = make([]kmsg.OffsetFetchResponseTopic, len(g.Topics))
	for i, t := range g.Topics {
		resp.Topics[i].Topic = t.Topic
		resp.Topics[i].Partitions = make([]kmsg.OffsetFetchResponseTopicPartition, len(t.Partitions))
		for k, p := range t.Partitions {
			row := &resp.Topics[i].Partitions[k]
			row.Partition, row.Offset, row.LeaderEpoch, row.Metadata = p.Partition, p.Offset, p.LeaderEpoch, p.Metadata
			row.ErrorCode = p.ErrorCode
			if version < 2 && g.ErrorCode != 0 {
				row.ErrorCode = g.ErrorCode
			}
		}
	}
}

// offsetFetch is one group of a request.
type offsetFetch struct {
	s    *Server
	c    *Call
	im   *metadata.Image
	from *kmsg.OffsetFetchRequestGroup
	to   *kmsg.OffsetFetchResponseGroup
	done func()
	// rows says which row of the answer each topic of the question goes to.
	rows []int
}

func (f *offsetFetch) run(stable bool) {
	f.to.Group = f.from.Group
	if !f.s.Authorize(f.c.Principal, kmsg.ACLOperationDescribe, kmsg.ACLResourceTypeGroup, f.from.Group) {
		f.fail(kerr.GroupAuthorizationFailed.Code)
		return
	}
	q := &group.Fetch{Group: f.from.Group, Stable: stable, All: f.from.Topics == nil, TopicID: f.topicID}
	if !q.All {
		q.Topics = f.question()
		if len(q.Topics) == 0 {
			f.done()
			return
		}
	}
	f.s.Groups.ForKey(f.from.Group).Do(func(r any) {
		if failure, failed := r.(coord.Failure); failed {
			f.fail(failure.Code)
			return
		}
		f.answer(r.(group.Fetched), q.All)
		f.done()
	}, func(m *group.Machine, nowMs int64, to coord.Token) coord.Output {
		return m.Fetch(nowMs, to, q)
	})
}

// topicID is the id that a topic has in the image of this request.
func (f *offsetFetch) topicID(name string) metadata.ID {
	if t := f.im.Topic(name); t != nil {
		return t.ID
	}
	return metadata.ID{}
}

func (f *offsetFetch) mayDescribe(topic string) bool {
	return f.s.Authorize(f.c.Principal, kmsg.ACLOperationDescribe, kmsg.ACLResourceTypeTopic, topic)
}

// question makes the rows of the answer, and returns the topics to ask for.
func (f *offsetFetch) question() (topics []group.FetchTopic) {
	f.to.Topics = make([]kmsg.OffsetFetchResponseGroupTopic, len(f.from.Topics))
	for i := range f.from.Topics {
		t, row := &f.from.Topics[i], &f.to.Topics[i]
		row.Topic, row.TopicID = t.Topic, t.TopicID
		name := t.Topic
		if f.c.Version >= 10 {
			known := f.im.TopicByID(t.TopicID)
			if known == nil {
				row.Partitions = nowhere(t.Partitions, kerr.UnknownTopicID.Code)
				continue
			}
			name = known.Name
		}
		if !f.mayDescribe(name) {
			row.Partitions = nowhere(t.Partitions, kerr.TopicAuthorizationFailed.Code)
			continue
		}
		topics = append(topics, group.FetchTopic{Topic: name, Partitions: t.Partitions})
		f.rows = append(f.rows, i)
	}
	return topics
}

// nowhere are rows of partitions without an offset.
func nowhere(partitions []int32, code int16) []kmsg.OffsetFetchResponseGroupTopicPartition {
	rows := make([]kmsg.OffsetFetchResponseGroupTopicPartition, len(partitions))
	for i, p := range partitions {
		rows[i].Partition, rows[i].Offset, rows[i].LeaderEpoch = p, -1, -1
		rows[i].Metadata, rows[i].ErrorCode = kmsg.StringPtr(""), code
	}
	return rows
}

// answer fills in what the group has. All topics come in an order of the group's
// own; those that the client may not describe are left out.
func (f *offsetFetch) answer(fetched group.Fetched, all bool) {
	for i := range fetched {
		t := &fetched[i]
		var row *kmsg.OffsetFetchResponseGroupTopic
		if all {
			if !f.mayDescribe(t.Topic) {
				continue
			}
			id := f.topicID(t.Topic)
			if f.c.Version >= 10 && id == (metadata.ID{}) {
				continue // offsets of a time without topic ids, and the topic is gone
			}
			f.to.Topics = append(f.to.Topics, kmsg.OffsetFetchResponseGroupTopic{Topic: t.Topic, TopicID: id})
			row = &f.to.Topics[len(f.to.Topics)-1]
		} else {
			row = &f.to.Topics[f.rows[i]]
		}
		row.Partitions = make([]kmsg.OffsetFetchResponseGroupTopicPartition, len(t.Partitions))
		for k := range t.Partitions {
			p, to := &t.Partitions[k], &row.Partitions[k]
			to.Partition, to.Offset, to.LeaderEpoch = p.Partition, p.Offset, p.LeaderEpoch
			to.Metadata, to.ErrorCode = &p.Metadata, p.Code
		}
	}
}

// fail is the answer for a group that could not be asked.
func (f *offsetFetch) fail(code int16) {
	f.to.ErrorCode = code
	if f.c.Version < 2 {
		f.to.Topics = make([]kmsg.OffsetFetchResponseGroupTopic, len(f.from.Topics))
		for i := range f.from.Topics {
			f.to.Topics[i].Topic = f.from.Topics[i].Topic
			f.to.Topics[i].Partitions = nowhere(f.from.Topics[i].Partitions, code)
		}
	} else {
		f.to.Topics = nil
	}
	f.done()
}
