package sim

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// side is what goes on beside the work: an operator who makes and deletes topics, deletes records, and looks at things. It sees to
// it that the work goes on beside such requests, and that none of them tells what is not so.
type side struct {
	*admin
	o      *oracle
	topics []string // that authors may write to
	views  func(topic string, index int32) *view
	made   int
	cut    func() // the power fails soon
	hot    string // a topic that everybody writes to
	until  time.Duration
	now    int16 // the cluster's level of the transaction protocol, as it was told last
}

// meddle does one thing.
func (s *side) meddle() {
	switch s.w.rng.IntN(8) {
	case 0, 1:
		if len(s.topics) < 2 {
			s.made++
			name := fmt.Sprintf("side-%d", s.made)
			c := smallSegments()
			if s.w.chance(2) { // a batch is a segment: there are several before the first flush ends
				c["internal.segment.bytes"] = "1000"
			}
			s.create(name, partitions, c, func() {
				if !s.o.dropped[name] {
					s.topics = append(s.topics, name)
				}
				if s.w.chance(2) { // the power fails while it gets its first records
					s.hot, s.until = name, s.w.now+100*time.Millisecond
					s.cut()
				}
			})
		}
	case 2:
		if len(s.topics) > 0 {
			s.drop(s.topics[0])
			s.topics = s.topics[1:]
		}
	case 3:
		if len(s.topics) > 0 {
			s.truncate(s.topics[0], int32(s.w.rng.IntN(partitions)))
		}
	case 4:
		s.ends(input, int32(s.w.rng.IntN(partitions)))
	case 5, 6:
		s.level()
	default:
		s.look()
	}
}

// drop deletes a topic, until it is gone.
func (s *side) drop(topic string) {
	s.o.dropped[topic] = true
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.Version, req.TimeoutMillis, req.TopicNames = 4, 1000, []string{topic}
	s.call(toData, req, time.Second, always, func(r kmsg.Response, err error) {
		if err == nil {
			if code := r.(*kmsg.DeleteTopicsResponse).Topics[0].ErrorCode; judge(code) == good {
				s.w.log("%s is deleted", topic)
				return
			} else if code == 3 { // UNKNOWN_TOPIC_OR_PARTITION: an earlier try did it
				return
			}
		}
		s.after(s.w.between(5*time.Millisecond, 50*time.Millisecond), "delete again", func() { s.drop(topic) })
	})
}

// truncate deletes records up to somewhere.
func (s *side) truncate(topic string, index int32) {
	v := s.views(topic, index)
	if v == nil || v.next == 0 {
		return
	}
	to := s.w.rng.Int64N(v.next + 1)
	v.asked = max(v.asked, to)
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.Version, req.TimeoutMillis = 1, 1000
	rt := kmsg.NewDeleteRecordsRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewDeleteRecordsRequestTopicPartition()
	rp.Partition, rp.Offset = index, to
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	s.call(toData, req, time.Second, always, func(r kmsg.Response, err error) {
		if err != nil {
			return
		}
		row := r.(*kmsg.DeleteRecordsResponse).Topics[0].Partitions[0]
		s.w.log("%s-%d is truncated to %d: %s", topic, index, to, word(row.ErrorCode))
		if row.ErrorCode == 0 {
			v.truncated = max(v.truncated, row.LowWatermark)
		}
	})
}

// ends asks where a partition ends for readers of committed data: what is told was so between the question and the answer.
func (s *side) ends(topic string, index int32) {
	v := s.views(topic, index)
	if v == nil {
		return
	}
	before := v.marks.LastStable
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version, req.ReplicaID, req.IsolationLevel = 6, -1, 1
	rt := kmsg.NewListOffsetsRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewListOffsetsRequestTopicPartition()
	rp.Partition, rp.Timestamp, rp.CurrentLeaderEpoch = index, -1, -1
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	s.call(toData, req, 0, always, func(r kmsg.Response, err error) {
		if err != nil {
			return
		}
		row := r.(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
		if row.ErrorCode == 0 && (row.Offset < before || row.Offset > v.marks.LastStable) {
			s.w.fail("%s: it ends at %d for readers of committed data, they may see from %d to %d", v.name, row.Offset, before, v.marks.LastStable)
		}
	})
}

// look asks what operators ask.
func (s *side) look() {
	for _, req := range []kmsg.Request{kmsg.NewPtrListTransactionsRequest(), kmsg.NewPtrMetadataRequest(), kmsg.NewPtrDescribeClusterRequest()} {
		s.call(toData, req, 0, always, func(kmsg.Response, error) {})
	}
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = []string{"author-1", "author-2", "copier-0", "copier-1", "nobody"}
	s.call(toData, req, 0, always, func(kmsg.Response, error) {})
}

// positions asks for the group's offsets, until there is an answer.
func (s *side) positions(done func([partitions]int64)) {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version, req.Group, req.RequireStable = 7, groupName, true
	rt := kmsg.NewOffsetFetchRequestTopic()
	rt.Topic = input
	for p := range int32(partitions) {
		rt.Partitions = append(rt.Partitions, p)
	}
	req.Topics = append(req.Topics, rt)
	s.call(toGroup, req, 0, always, func(r kmsg.Response, err error) {
		var at [partitions]int64
		ok := err == nil && r.(*kmsg.OffsetFetchResponse).ErrorCode == 0
		if ok {
			for _, row := range r.(*kmsg.OffsetFetchResponse).Topics[0].Partitions {
				ok = ok && row.ErrorCode == 0
				at[row.Partition] = max(row.Offset, 0)
			}
		}
		if ok {
			done(at)
			return
		}
		s.after(s.w.between(5*time.Millisecond, 50*time.Millisecond), "positions again", func() { s.positions(done) })
	})
}
