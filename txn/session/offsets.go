package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// compareParts orders by topic, then number.
func compareParts(a, b TopicPartition) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}

// byTopic groups the partitions by topic, in order.
func (o Offsets) byTopic() map[string][]TopicPartition {
	parts := make([]TopicPartition, 0, len(o))
	for p := range o {
		parts = append(parts, p)
	}
	return groupParts(parts)
}

func groupParts(parts []TopicPartition) map[string][]TopicPartition {
	parts = slices.Clone(parts)
	slices.SortFunc(parts, compareParts)
	topics := map[string][]TopicPartition{}
	for _, p := range parts {
		topics[p.Topic] = append(topics[p.Topic], p)
	}
	return topics
}

// wireID is the generation as requests carry it: -1 proves nothing.
func (g Generation) wireID() int32 {
	if g.Member == "" {
		return -1
	}
	return g.ID
}

// topicIDs looks up the ids of the topics in offsets. Each is remembered as it
// was first seen.
func (c *Cluster) topicIDs(ctx context.Context, offsets Offsets) (map[string][16]byte, error) {
	ids := map[string][16]byte{}
	var missing []string
	c.mu.Lock()
	for p := range offsets {
		if id, ok := c.ids[p.Topic]; ok {
			ids[p.Topic] = id
		} else if !slices.Contains(missing, p.Topic) {
			missing = append(missing, p.Topic)
		}
	}
	c.mu.Unlock()
	if len(missing) == 0 {
		return ids, nil
	}
	topics, err := c.Topics(ctx, missing...)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range missing {
		t, ok := topics[name]
		if !ok {
			return nil, fmt.Errorf("session: topic %s does not exist", name)
		}
		if _, known := c.ids[name]; !known {
			c.ids[name] = t.ID
		}
		ids[name] = c.ids[name]
	}
	return ids, nil
}

// commitOffsets commits outside a transaction.
func (c *Cluster) commitOffsets(ctx context.Context, offsets Offsets, by Generation) error {
	ids, err := c.topicIDs(ctx, offsets)
	if err != nil {
		return err
	}
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation, req.MemberID = by.Group, by.wireID(), by.Member
	if by.Instance != "" {
		req.InstanceID = &by.Instance
	}
	for topic, parts := range offsets.byTopic() {
		rt := kmsg.NewOffsetCommitRequestTopic()
		rt.Topic, rt.TopicID = topic, ids[topic]
		for _, p := range parts {
			o := offsets[p]
			rp := kmsg.NewOffsetCommitRequestTopicPartition()
			rp.Partition, rp.Offset, rp.LeaderEpoch = p.Partition, o.Next, o.LeaderEpoch
			rp.Metadata = kmsg.StringPtr(o.Metadata)
			rt.Partitions = append(rt.Partitions, rp)
		}
		req.Topics = append(req.Topics, rt)
	}
	return c.retry(ctx, func() error {
		resp, err := req.RequestWith(ctx, c.client)
		if err != nil {
			return err
		}
		for _, rt := range resp.Topics {
			for _, rp := range rt.Partitions {
				if err := kerr.ErrorForCode(rp.ErrorCode); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// CommittedOffsets reads what the group has committed for the partitions. It
// waits until no transaction that may still change the answer is undecided
// (KIP-447). Every partition is in the result; one without a commit has Next -1.
func (c *Cluster) CommittedOffsets(ctx context.Context, group string, parts []TopicPartition) (Offsets, error) {
	return c.offsets(ctx, group, parts, true)
}

// PastOffsets are the committed offsets as they are now, or -1. An undecided
// transaction may be about to move them, and is not waited for: they are of use
// to know that something was committed once, not to go on from.
func (c *Cluster) PastOffsets(ctx context.Context, group string, parts []TopicPartition) (Offsets, error) {
	return c.offsets(ctx, group, parts, false)
}

func (c *Cluster) offsets(ctx context.Context, group string, parts []TopicPartition, stable bool) (Offsets, error) {
	found := make(Offsets, len(parts))
	err := c.retry(ctx, func() error {
		for _, p := range parts {
			found[p] = Offset{Next: -1, LeaderEpoch: -1}
		}
		return c.fetchOffsets(ctx, group, parts, stable, found)
	})
	if err != nil {
		return nil, fmt.Errorf("session: committed offsets of group %s: %w", group, err)
	}
	return found, nil
}

func (c *Cluster) fetchOffsets(ctx context.Context, group string, parts []TopicPartition, stable bool, into Offsets) error {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.RequireStable = stable
	rg := kmsg.NewOffsetFetchRequestGroup()
	rg.Group = group
	for topic, ps := range groupParts(parts) {
		rt := kmsg.NewOffsetFetchRequestGroupTopic()
		rt.Topic = topic
		for _, p := range ps {
			rt.Partitions = append(rt.Partitions, p.Partition)
		}
		rg.Topics = append(rg.Topics, rt)
	}
	req.Groups = append(req.Groups, rg)
	resp, err := req.RequestWith(ctx, c.client)
	if err != nil {
		return err
	}
	for _, g := range resp.Groups {
		err := kerr.ErrorForCode(g.ErrorCode)
		if errors.Is(err, kerr.GroupIDNotFound) {
			continue // nobody has committed or joined yet
		}
		if err != nil {
			return err
		}
		for _, rt := range g.Topics {
			for _, rp := range rt.Partitions {
				if err := kerr.ErrorForCode(rp.ErrorCode); err != nil {
					return err
				}
				o := Offset{Next: rp.Offset, LeaderEpoch: rp.LeaderEpoch}
				if rp.Metadata != nil {
					o.Metadata = *rp.Metadata
				}
				into[TopicPartition{rt.Topic, rp.Partition}] = o
			}
		}
	}
	return nil
}

// Bound says which end of a partition is asked for.
type Bound int

const (
	// Start is the first offset that is there.
	Start Bound = iota
	// End is the high watermark: undecided transactions are before it.
	End
	// StableEnd is the last stable offset: where a committed reader stops.
	StableEnd
)

// ListAt returns for each partition the offset of the first record with a time not
// before the given one; -1 where there is none.
func (c *Cluster) ListAt(ctx context.Context, at time.Time, parts []TopicPartition) (map[TopicPartition]int64, error) {
	found := make(map[TopicPartition]int64, len(parts))
	if len(parts) == 0 {
		return found, nil
	}
	err := c.retry(ctx, func() error {
		clear(found)
		return c.listAt(ctx, at.UnixMilli(), false, parts, found)
	})
	if err != nil {
		return nil, fmt.Errorf("session: list offsets at %v: %w", at, err)
	}
	return found, nil
}

// List returns one end of each partition.
func (c *Cluster) List(ctx context.Context, bound Bound, parts []TopicPartition) (map[TopicPartition]int64, error) {
	found := make(map[TopicPartition]int64, len(parts))
	if len(parts) == 0 {
		return found, nil
	}
	err := c.retry(ctx, func() error {
		clear(found)
		return c.list(ctx, bound, parts, found)
	})
	if err != nil {
		return nil, fmt.Errorf("session: list offsets: %w", err)
	}
	return found, nil
}

func (c *Cluster) list(ctx context.Context, bound Bound, parts []TopicPartition, into map[TopicPartition]int64) error {
	at := int64(-1)
	if bound == Start {
		at = -2
	}
	return c.listAt(ctx, at, bound == StableEnd, parts, into)
}

// listAt asks for offsets by time; -1 and -2 are the ends.
func (c *Cluster) listAt(ctx context.Context, at int64, stable bool, parts []TopicPartition, into map[TopicPartition]int64) error {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	if stable {
		req.IsolationLevel = 1
	}
	for topic, ps := range groupParts(parts) {
		rt := kmsg.NewListOffsetsRequestTopic()
		rt.Topic = topic
		for _, p := range ps {
			rp := kmsg.NewListOffsetsRequestTopicPartition()
			rp.Partition, rp.Timestamp = p.Partition, at
			rt.Partitions = append(rt.Partitions, rp)
		}
		req.Topics = append(req.Topics, rt)
	}
	resp, err := req.RequestWith(ctx, c.client)
	if err != nil {
		return err
	}
	for _, rt := range resp.Topics {
		for _, rp := range rt.Partitions {
			if err := kerr.ErrorForCode(rp.ErrorCode); err != nil {
				return err
			}
			into[TopicPartition{rt.Topic, rp.Partition}] = rp.Offset
		}
	}
	if len(into) != len(parts) {
		return fmt.Errorf("%d partitions asked, %d answered", len(parts), len(into))
	}
	return nil
}

// EpochEnd asks the leader where the given epoch ended: a position of that
// epoch beyond the answer belongs to records that the log has lost. The answer
// is -1 when the leader knows nothing of the epoch.
func (c *Cluster) EpochEnd(ctx context.Context, part TopicPartition, epoch int32) (int64, error) {
	end := int64(-1)
	err := c.retry(ctx, func() error {
		req := kmsg.NewPtrOffsetForLeaderEpochRequest()
		req.ReplicaID = -1
		rt := kmsg.NewOffsetForLeaderEpochRequestTopic()
		rt.Topic = part.Topic
		rp := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
		rp.Partition, rp.CurrentLeaderEpoch, rp.LeaderEpoch = part.Partition, -1, epoch
		rt.Partitions = append(rt.Partitions, rp)
		req.Topics = append(req.Topics, rt)
		resp, err := req.RequestWith(ctx, c.client)
		if err != nil {
			return err
		}
		for _, rt := range resp.Topics {
			for _, rp := range rt.Partitions {
				if err := kerr.ErrorForCode(rp.ErrorCode); err != nil {
					return err
				}
				end = rp.EndOffset
			}
		}
		return nil
	})
	if err != nil {
		return -1, fmt.Errorf("session: end of epoch %d of %s/%d: %w", epoch, part.Topic, part.Partition, err)
	}
	return end, nil
}
