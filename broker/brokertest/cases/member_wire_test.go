package cases

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// seat is one member of a classic group, or who wants to be one.
type seat struct {
	tg         *target
	group      string
	w          *wire
	id         string
	instance   *string
	generation int32
	sessionMs  int32
	protocols  []string
}

func (tg *target) seat(group string) *seat {
	tg.Helper()
	return &seat{tg: tg, group: group, w: tg.coordinator(0, group), generation: -1, sessionMs: 10_000, protocols: []string{"range"}}
}

func (s *seat) joinRequest(version int16) *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version = version
	req.Group, req.MemberID, req.ProtocolType, req.InstanceID = s.group, s.id, "consumer", s.instance
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = s.sessionMs, s.sessionMs
	for _, name := range s.protocols {
		p := kmsg.NewJoinGroupRequestProtocol()
		p.Name, p.Metadata = name, []byte{0, 1, 0, 0, 0, 0, 0, 0, 0, 0}
		req.Protocols = append(req.Protocols, p)
	}
	return req
}

// joined takes the answer to a join in, and gives its code.
func (s *seat) joined(resp *kmsg.JoinGroupResponse) int16 {
	if resp.MemberID != "" {
		s.id = resp.MemberID
	}
	if resp.ErrorCode == 0 {
		s.generation = resp.Generation
	}
	return resp.ErrorCode
}

// join joins until there is a generation, as clients do.
func (s *seat) join() *kmsg.JoinGroupResponse {
	s.tg.Helper()
	var resp *kmsg.JoinGroupResponse
	s.tg.eventually("JoinGroup", func() (bool, string) {
		resp = s.w.do(s.joinRequest(5)).(*kmsg.JoinGroupResponse)
		c := s.joined(resp)
		if c != 0 && c != kerr.MemberIDRequired.Code && !retriable(c) {
			s.tg.Fatalf("JoinGroup: %s", code(c))
		}
		return c == 0, code(c)
	})
	return resp
}

// askID is the first half of joining: the id is given out, and nobody has joined.
func (s *seat) askID() {
	s.tg.Helper()
	s.tg.eventually("JoinGroup without an id", func() (bool, string) {
		c := s.joined(s.w.do(s.joinRequest(5)).(*kmsg.JoinGroupResponse))
		if !retriable(c) {
			want(s.tg, "JoinGroup without an id", c, kerr.MemberIDRequired)
		}
		return c == kerr.MemberIDRequired.Code, code(c)
	})
}

func (s *seat) syncRequest(shares map[string]string) *kmsg.SyncGroupRequest {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Version = 3
	req.Group, req.Generation, req.MemberID, req.InstanceID = s.group, s.generation, s.id, s.instance
	for id, share := range shares {
		a := kmsg.NewSyncGroupRequestGroupAssignment()
		a.MemberID, a.MemberAssignment = id, []byte(share)
		req.GroupAssignment = append(req.GroupAssignment, a)
	}
	return req
}

func (s *seat) sync(shares map[string]string) (string, int16) {
	s.tg.Helper()
	resp := s.w.do(s.syncRequest(shares)).(*kmsg.SyncGroupResponse)
	return string(resp.MemberAssignment), resp.ErrorCode
}

// settle makes a group of one: it joins and assigns itself.
func (s *seat) settle() *seat {
	s.tg.Helper()
	s.join()
	_, c := s.sync(map[string]string{s.id: "mine"})
	want(s.tg, "SyncGroup", c, nil)
	return s
}

func (s *seat) beat() int16 {
	s.tg.Helper()
	req := kmsg.NewPtrHeartbeatRequest()
	req.Version = 3
	req.Group, req.Generation, req.MemberID, req.InstanceID = s.group, s.generation, s.id, s.instance
	return s.w.do(req).(*kmsg.HeartbeatResponse).ErrorCode
}

func (s *seat) leave() int16 {
	s.tg.Helper()
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Version = 1
	req.Group, req.MemberID = s.group, s.id
	return s.w.do(req).(*kmsg.LeaveGroupResponse).ErrorCode
}

// commit commits an offset of partition 0 as the member that it is.
func (s *seat) commit(topic string, offset int64) int16 {
	s.tg.Helper()
	req := commitRequest(s.group, topic, 0, offset, nil)
	req.Generation, req.MemberID, req.InstanceID = s.generation, s.id, s.instance
	return s.w.do(req).(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode
}

// described is what DescribeGroups tells of a group.
func (tg *target) described(group string) kmsg.DescribeGroupsResponseGroup {
	tg.Helper()
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Version, req.Groups = 4, []string{group}
	return tg.coordinator(0, group).do(req).(*kmsg.DescribeGroupsResponse).Groups[0]
}

func (tg *target) deleteGroup(group string) {
	tg.Helper()
	req := kmsg.NewPtrDeleteGroupsRequest()
	req.Version, req.Groups = 1, []string{group}
	tg.eventually("DeleteGroups", func() (bool, string) {
		c := tg.coordinator(0, group).do(req).(*kmsg.DeleteGroupsResponse).Groups[0].ErrorCode
		if c != 0 && !retriable(c) {
			tg.Fatalf("DeleteGroups: %s", code(c))
		}
		return c == 0, code(c)
	})
}

func (tg *target) listed(group string) bool {
	tg.Helper()
	req := kmsg.NewPtrListGroupsRequest()
	req.Version = 4
	resp := tg.coordinator(0, group).do(req).(*kmsg.ListGroupsResponse)
	for _, g := range resp.Groups {
		if g.Group == group {
			return true
		}
	}
	return false
}
