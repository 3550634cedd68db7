package runtime

import (
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/streams/internal/assign"
	"github.com/millrace/millrace/txn/session"
)

// balancer puts package assign into the bytes of the group protocol. It belongs
// to its worker, which sets the claim before each join.
type balancer struct {
	plan  *plan
	claim assign.Claim
}

func (b *balancer) Protocol() string { return assign.Protocol }

func (b *balancer) Metadata() []byte {
	m := kmsg.NewConsumerMemberMetadata()
	m.Topics, m.UserData = b.plan.sources, b.claim.Encode()
	return m.AppendTo(nil)
}

func (b *balancer) Balance(_ context.Context, peers []session.Peer) (map[string][]byte, error) {
	var members []assign.Member
	for _, p := range peers {
		var meta kmsg.ConsumerMemberMetadata
		if err := meta.ReadFrom(p.Metadata); err != nil {
			return nil, fmt.Errorf("subscription of member %s: %w", p.ID, err)
		}
		if !slices.Equal(meta.Topics, b.plan.sources) {
			return nil, fmt.Errorf("member %s reads %v, this one %v: all members of group %s must run the same topology",
				p.ID, meta.Topics, b.plan.sources, b.plan.app.AppID)
		}
		claim, err := assign.Decode(meta.UserData)
		if err != nil {
			return nil, fmt.Errorf("member %s: %w", p.ID, err)
		}
		members = append(members, assign.Member{ID: p.ID, Instance: p.Instance, Claim: claim})
	}
	out := map[string][]byte{}
	for id, units := range assign.Balance(members, b.plan.units) {
		out[id] = b.assignment(units)
	}
	return out, nil
}

// assignment lists the partitions, for brokers and tools, and the units.
func (b *balancer) assignment(units []int32) []byte {
	a := kmsg.NewConsumerMemberAssignment()
	for _, topic := range b.plan.sources {
		at := kmsg.NewConsumerMemberAssignmentTopic()
		at.Topic = topic
		for _, u := range units {
			if int(u) < len(b.plan.topics[topic].Partitions) {
				at.Partitions = append(at.Partitions, u)
			}
		}
		if len(at.Partitions) > 0 {
			a.Topics = append(a.Topics, at)
		}
	}
	a.UserData = assign.Claim{Units: units}.Encode()
	return a.AppendTo(nil)
}

// parse reads the units of an assignment.
func parse(raw []byte) ([]int32, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var a kmsg.ConsumerMemberAssignment
	if err := a.ReadFrom(raw); err != nil {
		return nil, fmt.Errorf("streams: assignment: %w", err)
	}
	c, err := assign.Decode(a.UserData)
	if err != nil {
		return nil, fmt.Errorf("streams: assignment: %w", err)
	}
	return c.Units, nil
}
