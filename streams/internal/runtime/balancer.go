package runtime

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/streams/internal/assign"
	"github.com/millrace/millrace/txn/session"
)

// balancer puts package assign into the bytes of the group protocol. It belongs
// to its worker, which sets the claim before each Join, and to that Join while it is
// under way.
type balancer struct {
	plan    *plan
	cluster *session.Cluster
	rules   assign.Rules // without what the plan and the cluster say
	disk    bool         // there is a state folder
	claim   assign.Claim
}

func (b *balancer) Protocol() string { return assign.Protocol }

func (b *balancer) Metadata() []byte {
	m := kmsg.NewConsumerMemberMetadata()
	m.Topics, m.UserData = b.plan.sources, b.claim.Encode()
	return m.AppendTo(nil)
}

func (b *balancer) Balance(ctx context.Context, peers []session.Peer) (map[string][]byte, error) {
	var members []assign.Member
	for _, p := range peers {
		var meta kmsg.ConsumerMemberMetadata
		if err := meta.ReadFrom(p.Metadata); err != nil {
			return nil, fmt.Errorf("subscription of member %s: %w", p.ID, err)
		}
		if !slices.Equal(b.plan.named(meta.Topics), b.plan.named(b.plan.sources)) {
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
	for id, share := range assign.Plan(members, b.know(ctx)) {
		out[id] = b.assignment(share)
	}
	return out, nil
}

// know completes the rules with what this cluster says. Without an answer, whoever has
// no copy counts as far from having one.
func (b *balancer) know(ctx context.Context) assign.Rules {
	r := b.rules
	r.Units = b.plan.units
	var logs []session.TopicPartition
	for u := range r.Units {
		size := int64(assign.Stateless)
		if b.plan.stateful(u) {
			size = r.Close + 1
		}
		r.Sizes, r.Shared = append(r.Sizes, size), append(r.Shared, b.disk && b.plan.shared(u))
		for _, id := range b.plan.tasks([]int32{u}) {
			logs = append(logs, b.plan.remembered(id)...)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, knowTime)
	defer cancel()
	starts, err := b.cluster.List(ctx, session.Start, logs)
	if err != nil {
		return r
	}
	ends, err := b.cluster.List(ctx, session.StableEnd, logs)
	if err != nil {
		return r
	}
	for u := range r.Units {
		if r.Sizes[u] == assign.Stateless {
			continue
		}
		r.Sizes[u] = 0
		for _, id := range b.plan.tasks([]int32{u}) {
			for _, log := range b.plan.remembered(id) {
				r.Sizes[u] += ends[log] - starts[log]
			}
		}
	}
	return r
}

// knowTime is how long a leader asks for the sizes of changelogs.
const knowTime = 5 * time.Second

// assignment lists the partitions, for brokers and tools, and the units.
func (b *balancer) assignment(share assign.Share) []byte {
	a := kmsg.NewConsumerMemberAssignment()
	for _, topic := range b.plan.sources {
		at := kmsg.NewConsumerMemberAssignmentTopic()
		at.Topic = topic
		for _, u := range share.Units {
			if int(u) < len(b.plan.topics[topic].Partitions) {
				at.Partitions = append(at.Partitions, u)
			}
		}
		if len(at.Partitions) > 0 {
			a.Topics = append(a.Topics, at)
		}
	}
	a.UserData = share.Encode()
	return a.AppendTo(nil)
}

// parse reads an assignment.
func parse(raw []byte) (assign.Share, error) {
	if len(raw) == 0 {
		return assign.Share{}, nil
	}
	var a kmsg.ConsumerMemberAssignment
	if err := a.ReadFrom(raw); err != nil {
		return assign.Share{}, fmt.Errorf("streams: assignment: %w", err)
	}
	s, err := assign.DecodeShare(a.UserData)
	if err != nil {
		return s, fmt.Errorf("streams: assignment: %w", err)
	}
	return s, nil
}
