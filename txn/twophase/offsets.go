package twophase

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/txn/session"
)

// commitOffsets puts positions of a group into the open transaction.
func (p *producer) commitOffsets(ctx context.Context, gen session.Generation, offsets session.Offsets) error {
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.Group, req.ProducerID, req.ProducerEpoch = p.id, gen.Group, p.now.ProducerID(), p.now.Epoch()
	req.Generation, req.MemberID = -1, gen.Member
	if gen.Member != "" {
		req.Generation = gen.ID
	}
	if gen.Instance != "" {
		req.InstanceID = &gen.Instance
	}
	for tp, o := range offsets {
		t, ok := p.topics[tp.Topic]
		if !ok {
			var err error
			if t, err = p.lookUp(ctx, tp.Topic); err != nil {
				return err
			}
			p.topics[tp.Topic] = t
		}
		rt := kmsg.NewTxnOffsetCommitRequestTopic()
		rt.Topic, rt.TopicID = tp.Topic, t.id
		rp := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		rp.Partition, rp.Offset, rp.LeaderEpoch, rp.Metadata = tp.Partition, o.Next, o.LeaderEpoch, kmsg.StringPtr(o.Metadata)
		rt.Partitions = append(rt.Partitions, rp)
		req.Topics = append(req.Topics, rt)
	}
	p.sent = true
	return p.retry(ctx, "offsets of group "+gen.Group, func() error {
		r, err := p.coordinator(ctx, groupCoordinator, gen.Group, req)
		if err != nil {
			return err
		}
		resp := r.(*kmsg.TxnOffsetCommitResponse)
		if resp.Version < 5 {
			return permanent{fmt.Errorf("%w: TxnOffsetCommit goes up to version %d, 5 is needed", ErrUnsupported, resp.Version)}
		}
		for _, rt := range resp.Topics {
			for _, rp := range rt.Partitions {
				if err := who(rp.ErrorCode); err != nil {
					return fmt.Errorf("%s-%d: %w", rt.Topic, rp.Partition, err)
				}
			}
		}
		return nil
	})
}
