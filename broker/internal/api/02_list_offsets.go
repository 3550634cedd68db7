package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ListOffsets: versions 1 to 11.
//
// The first offset at or after a time, or a special one: latest -1 (the high
// watermark; the last stable offset for read_committed), earliest -2, the first
// record with the greatest time -3 (from version 7), earliest local -4 (8), latest
// tiered -5 (9), earliest pending upload -6 (11). Nothing is tiered here, so -4 is
// -2, and -5 and -6 find nothing. A time that no record reaches gives offset -1
// without an error; so does, for read_committed, one that only undecided records
// reach.
//
//   - UNSUPPORTED_VERSION: a special time that the version does not know
//   - INVALID_REQUEST: the same partition twice
//   - TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION,
//     FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, KAFKA_STORAGE_ERROR
func handleListOffsets(s *Server, c *Call, reply func(kmsg.Response)) {
	req := c.Req.(*kmsg.ListOffsetsRequest)
	resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
	for i := range req.Topics {
		rt := &req.Topics[i]
		t := kmsg.NewListOffsetsResponseTopic()
		t.Topic = rt.Topic
		allowed := s.Authorize(c.Principal, kmsg.ACLOperationDescribe, kmsg.ACLResourceTypeTopic, rt.Topic)
		count := map[int32]int{}
		for j := range rt.Partitions {
			count[rt.Partitions[j].Partition]++
		}
		for j := range rt.Partitions {
			rp := &rt.Partitions[j]
			p := kmsg.NewListOffsetsResponseTopicPartition()
			p.Partition, p.Timestamp, p.Offset, p.LeaderEpoch = rp.Partition, -1, -1, -1
			switch n := count[rp.Partition]; {
			case n == 0: // answered already
				continue
			case n > 1:
				count[rp.Partition] = 0
				p.ErrorCode = kerr.InvalidRequest.Code
			case !allowed:
				p.ErrorCode = kerr.TopicAuthorizationFailed.Code
			default:
				p.ErrorCode = s.listOffset(rt.Topic, rp, &p, c.Version, req.IsolationLevel == 1)
			}
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
	}
	reply(resp)
}

// The special times of ListOffsets.
const (
	timeLatest        = -1
	timeEarliest      = -2
	timeMax           = -3
	timeEarliestLocal = -4
	timeLatestTiered  = -5
	timePendingUpload = -6
	versionMax        = 7
	versionLocal      = 8
	versionTiered     = 9
	versionPending    = 11
)

// specialSince gives the first version that knows a special time, -1 for none.
func specialSince(ts int64) int16 {
	switch ts {
	case timeLatest, timeEarliest:
		return 0
	case timeMax:
		return versionMax
	case timeEarliestLocal:
		return versionLocal
	case timeLatestTiered:
		return versionTiered
	case timePendingUpload:
		return versionPending
	}
	return -1
}

func (s *Server) listOffset(topic string, rp *kmsg.ListOffsetsRequestTopicPartition,
	out *kmsg.ListOffsetsResponseTopicPartition, version int16, committed bool) int16 {
	p, err := s.Replicas.Get(topic, rp.Partition)
	if err != nil {
		return codeOf(err)
	}
	marks := p.Marks()
	if code := checkEpoch(rp.CurrentLeaderEpoch, marks.LeaderEpoch); code != 0 {
		return code
	}
	if since := specialSince(rp.Timestamp); rp.Timestamp < 0 && (since < 0 || version < since) {
		return kerr.UnsupportedVersion.Code
	}
	switch rp.Timestamp {
	case timeLatest:
		out.Offset, out.LeaderEpoch = marks.HighWatermark, marks.LeaderEpoch
		if committed {
			out.Offset = marks.LastStable
		}
	case timeEarliest, timeEarliestLocal:
		out.Offset, out.LeaderEpoch = marks.LogStart, p.EpochAt(marks.LogStart)
	case timeLatestTiered, timePendingUpload:
	case timeMax:
		return foundOffset(out)(p.MaxTimestamp(committed))
	default:
		return foundOffset(out)(p.OffsetForTime(rp.Timestamp, committed))
	}
	return 0
}

// foundOffset takes the result of a search into the answer.
func foundOffset(out *kmsg.ListOffsetsResponseTopicPartition) func(int64, int64, int32, bool, error) int16 {
	return func(offset, ts int64, epoch int32, ok bool, err error) int16 {
		if err == nil && ok {
			out.Offset, out.Timestamp, out.LeaderEpoch = offset, ts, epoch
		}
		return codeOf(err)
	}
}
