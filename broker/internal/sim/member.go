package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// groupName is the one group.
const groupName = "copiers"

// member is a client's membership in the group: it joins, leads if it is told to, and says that it is alive. Its owner hears
// what it is assigned, and that it has lost it.
type member struct {
	*process
	roster     *roster
	id         string
	instance   *string // of a static member (KIP-345), whose successor takes its place over without a rebalance
	generation int32
	assigned   func(parts []int32)
	// rejoin says that the group is to be joined anew; the owner does it when it has ended what it is at.
	rejoin bool
	joined bool
	// hasty members join at once, as clients do whose heartbeats have a thread of their own; what their owner is at then
	// belongs to a generation that is over.
	hasty bool
}

// roster knows who was told to own what, in which generation.
type roster struct {
	w      *world
	owners map[string]string
	newest int32 // generation
}

// owns notes an assignment. Two owners of a partition in one generation are a violation.
func (r *roster) owns(generation int32, part int32, who string) {
	key := fmt.Sprint(generation, "/", part)
	if have := r.owners[key]; have != "" && have != who {
		r.w.fail("partition %d has two owners in generation %d: %s and %s", part, generation, have, who)
	}
	r.owners[key] = who
}

const (
	session   = 400 * time.Millisecond
	rebalance = 250 * time.Millisecond
)

func (m *member) join() {
	m.rejoin, m.joined = false, false
	meta := kmsg.NewConsumerMemberMetadata()
	meta.Version, meta.Topics = 0, []string{input}
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version = 5
	req.Group, req.MemberID, req.InstanceID, req.ProtocolType = groupName, m.id, m.instance, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = int32(session.Milliseconds()), int32(rebalance.Milliseconds())
	rp := kmsg.NewJoinGroupRequestProtocol()
	rp.Name, rp.Metadata = "range", meta.AppendTo(nil)
	req.Protocols = append(req.Protocols, rp)
	m.call(toGroup, req, rebalance+session, always, func(r kmsg.Response, err error) {
		if err != nil {
			m.after(m.w.between(time.Millisecond, 10*time.Millisecond), "join again", m.join)
			return
		}
		resp := r.(*kmsg.JoinGroupResponse)
		m.w.log("%s: join: %s, generation %d, %d members", m.name, word(resp.ErrorCode), resp.Generation, len(resp.Members))
		switch resp.ErrorCode {
		case kerr.FencedInstanceID.Code:
			m.heard(resp.ErrorCode)
		case 0:
			if m.instance != nil && m.id == "" && resp.Generation == m.roster.newest {
				m.w.see("a static member comes back")
			}
			m.roster.newest = resp.Generation
			m.id, m.generation = resp.MemberID, resp.Generation
			m.sync(m.plan(resp))
		case kerr.MemberIDRequired.Code:
			m.id = resp.MemberID
			m.join()
		case kerr.UnknownMemberID.Code:
			m.id = ""
			m.join()
		default:
			m.after(m.w.between(time.Millisecond, 10*time.Millisecond), "join again", m.join)
		}
	})
}

// plan is the leader's work: each partition to one member, in turn.
func (m *member) plan(resp *kmsg.JoinGroupResponse) []kmsg.SyncGroupRequestGroupAssignment {
	if resp.LeaderID != resp.MemberID {
		return nil
	}
	slices.SortFunc(resp.Members, func(a, b kmsg.JoinGroupResponseMember) int { return strings.Compare(a.MemberID, b.MemberID) })
	parts := make([][]int32, len(resp.Members))
	shift := m.w.rng.IntN(len(resp.Members))
	for p := range int32(partitions) {
		to := (int(p) + shift) % len(parts)
		parts[to] = append(parts[to], p)
	}
	var out []kmsg.SyncGroupRequestGroupAssignment
	for i, one := range resp.Members {
		a := kmsg.NewConsumerMemberAssignment()
		if len(parts[i]) > 0 {
			t := kmsg.NewConsumerMemberAssignmentTopic()
			t.Topic, t.Partitions = input, parts[i]
			a.Topics = append(a.Topics, t)
		}
		row := kmsg.NewSyncGroupRequestGroupAssignment()
		row.MemberID, row.MemberAssignment = one.MemberID, a.AppendTo(nil)
		out = append(out, row)
	}
	return out
}

func (m *member) sync(plan []kmsg.SyncGroupRequestGroupAssignment) {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Version = 3
	req.Group, req.Generation, req.MemberID, req.InstanceID, req.GroupAssignment = groupName, m.generation, m.id, m.instance, plan
	m.call(toGroup, req, rebalance+session, always, func(r kmsg.Response, err error) {
		if err != nil {
			m.join()
			return
		}
		resp := r.(*kmsg.SyncGroupResponse)
		switch resp.ErrorCode {
		case 0:
		case kerr.FencedInstanceID.Code:
			m.heard(resp.ErrorCode)
			return
		case kerr.UnknownMemberID.Code:
			m.id = ""
			m.join()
			return
		default:
			m.after(m.w.between(time.Millisecond, 10*time.Millisecond), "join again", m.join)
			return
		}
		var a kmsg.ConsumerMemberAssignment
		if err := a.ReadFrom(resp.MemberAssignment); err != nil {
			m.w.fail("%s: assignment: %w", m.name, err)
			return
		}
		var parts []int32
		for _, t := range a.Topics {
			parts = append(parts, t.Partitions...)
		}
		for _, p := range parts {
			m.roster.owns(m.generation, p, m.who())
		}
		m.w.log("%s: has %v in generation %d", m.name, parts, m.generation)
		m.joined = true
		m.beat(m.generation)
		m.assigned(parts)
	})
}

// who is the same for a static member and its successor: only one of them can commit.
func (m *member) who() string {
	if m.instance != nil {
		return *m.instance
	}
	return m.id
}

// beat says now and then that the member is alive.
func (m *member) beat(generation int32) {
	m.after(m.w.between(session/8, session/3), "heartbeat", func() {
		if !m.joined || m.rejoin || m.generation != generation {
			return
		}
		req := kmsg.NewPtrHeartbeatRequest()
		req.Version = 3
		req.Group, req.Generation, req.MemberID, req.InstanceID = groupName, m.generation, m.id, m.instance
		m.call(toGroup, req, 0, always, func(r kmsg.Response, err error) {
			if m.generation != generation || !m.joined {
				return
			}
			if err == nil {
				m.heard(r.(*kmsg.HeartbeatResponse).ErrorCode)
			}
			if m.rejoin && m.hasty {
				m.join()
				return
			}
			m.beat(generation)
		})
	})
}

// heard takes a code that says something of the membership.
func (m *member) heard(code int16) {
	switch code {
	case kerr.RebalanceInProgress.Code, kerr.IllegalGeneration.Code:
		m.w.see("member " + word(code))
		m.rejoin = true
	case kerr.UnknownMemberID.Code:
		m.w.see("member " + word(code))
		m.id, m.rejoin = "", true
	case kerr.FencedInstanceID.Code: // another process has its place
		m.w.see("member " + word(code))
		m.kill()
	}
}
