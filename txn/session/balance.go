package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// rangeBalancer is Kafka's range assignment: per topic, each interested member
// gets a consecutive share, so that partitions of the same number of equally
// large topics end up at the same member. Members of other clients that use
// "range" may be in the same group.
type rangeBalancer struct {
	topics []string
	counts func(ctx context.Context, topics []string) (map[string]int32, error)
}

func (b *rangeBalancer) Protocol() string { return "range" }

func (b *rangeBalancer) Metadata() []byte {
	m := kmsg.NewConsumerMemberMetadata()
	m.Version = 1
	m.Topics = slices.Sorted(slices.Values(b.topics))
	return m.AppendTo(nil)
}

func (b *rangeBalancer) Balance(ctx context.Context, members []Peer) (map[string][]byte, error) {
	members = slices.Clone(members)
	slices.SortFunc(members, func(x, y Peer) int {
		return strings.Compare(x.Instance+"\x00"+x.ID, y.Instance+"\x00"+y.ID)
	})
	interested := map[string][]string{}
	var topics []string
	for _, m := range members {
		var meta kmsg.ConsumerMemberMetadata
		if err := meta.ReadFrom(m.Metadata); err != nil {
			return nil, fmt.Errorf("subscription of member %s: %w", m.ID, err)
		}
		for _, t := range meta.Topics {
			if interested[t] == nil {
				topics = append(topics, t)
			}
			interested[t] = append(interested[t], m.ID)
		}
	}
	slices.Sort(topics)
	counts, err := b.counts(ctx, topics)
	if err != nil {
		return nil, err
	}
	given := map[string]*kmsg.ConsumerMemberAssignment{}
	for _, m := range members {
		a := kmsg.NewConsumerMemberAssignment()
		given[m.ID] = &a
	}
	for _, t := range topics {
		shareOut(given, t, counts[t], interested[t])
	}
	plan := map[string][]byte{}
	for id, a := range given {
		plan[id] = a.AppendTo(nil)
	}
	return plan, nil
}

// shareOut splits n partitions of a topic; the first members get one more when
// they do not divide evenly.
func shareOut(given map[string]*kmsg.ConsumerMemberAssignment, topic string, n int32, members []string) {
	each, extra, next := n/int32(len(members)), n%int32(len(members)), int32(0)
	for i, id := range members {
		share := each
		if int32(i) < extra {
			share++
		}
		if share == 0 {
			continue
		}
		at := kmsg.NewConsumerMemberAssignmentTopic()
		at.Topic = topic
		for range share {
			at.Partitions = append(at.Partitions, next)
			next++
		}
		given[id].Topics = append(given[id].Topics, at)
	}
}

// parseAssignment reads the bytes of Kafka's consumer protocol. Empty bytes,
// which a coordinator sends to a member that the leader forgot, assign nothing.
func parseAssignment(raw []byte) ([]TopicPartition, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var a kmsg.ConsumerMemberAssignment
	if err := a.ReadFrom(raw); err != nil {
		return nil, fmt.Errorf("session: assignment: %w", err)
	}
	var parts []TopicPartition
	for _, t := range a.Topics {
		for _, p := range t.Partitions {
			parts = append(parts, TopicPartition{t.Topic, p})
		}
	}
	slices.SortFunc(parts, compareParts)
	return parts, nil
}
