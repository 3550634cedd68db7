package api

import (
	"slices"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/coord"
	"github.com/millrace/millrace/broker/internal/group"
)

// classicType is what groups of the classic protocol are called; there are no others here.
const classicType = "Classic"

// ListGroups: versions 0 to 5; 4 filters by state (KIP-518), 5 by type (KIP-848).
//
// Groups that the caller may not DESCRIBE are left out. It is all of them or none: while a part of them is loaded the list is empty,
// with a code.
//
//   - COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE: again later
func handleListGroups(s *Server, c *Call, reply func(kmsg.Response)) {
	req := c.Req.(*kmsg.ListGroupsRequest)
	resp := req.ResponseKind().(*kmsg.ListGroupsResponse)
	var mu sync.Mutex // owns resp until the last shard has answered
	shards := 0
	for s.Groups.Shard(int32(shards)) != nil {
		shards++
	}
	all := newGathering(shards, func() {
		if resp.ErrorCode != 0 {
			resp.Groups = nil
		}
		slices.SortFunc(resp.Groups, func(a, b kmsg.ListGroupsResponseGroup) int { return strings.Compare(a.Group, b.Group) })
		reply(resp)
	})
	for i := range shards {
		s.Groups.Shard(int32(i)).Do(func(r any) {
			mu.Lock()
			if f, failed := r.(coord.Failure); failed {
				resp.ErrorCode = groupFailure(f)
			} else {
				s.addGroups(c, req, resp, r.([]group.Listed))
			}
			mu.Unlock()
			all.done()
		}, func(m *group.Machine, nowMs int64, to coord.Token) coord.Output { return m.List(nowMs, to) })
	}
	all.done()
}

// addGroups adds those that the request asks for.
func (s *Server) addGroups(c *Call, req *kmsg.ListGroupsRequest, resp *kmsg.ListGroupsResponse, listed []group.Listed) {
	if !among(req.TypesFilter, classicType) {
		return
	}
	everything := s.Authorize(c.Principal, kmsg.ACLOperationDescribe, kmsg.ACLResourceTypeCluster, clusterResource)
	for _, l := range listed {
		if !among(req.StatesFilter, l.State.String()) ||
			!everything && !s.Authorize(c.Principal, kmsg.ACLOperationDescribe, kmsg.ACLResourceTypeGroup, l.Group) {
			continue
		}
		row := kmsg.NewListGroupsResponseGroup()
		row.Group, row.ProtocolType, row.GroupState, row.GroupType = l.Group, l.ProtocolType, l.State.String(), classicType
		resp.Groups = append(resp.Groups, row)
	}
}

// among tells whether a filter lets a name through; one without names lets all. Case does not count, as in Kafka.
func among(filter []string, name string) bool {
	return len(filter) == 0 || slices.ContainsFunc(filter, func(f string) bool { return strings.EqualFold(f, name) })
}
