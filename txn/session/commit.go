package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Commit makes the records of the transaction and the offsets visible together,
// or neither. The offsets, which may be none, are those of the generation's
// group.
//
// A transaction without a record needs no transaction: its offsets go out as a
// plain offset commit, which the same generation protects.
//
// Errors: [ErrAborted], [ErrFenced], [ErrUnknownOutcome].
func (p *Producer) Commit(ctx context.Context, offsets Offsets, by Generation) error {
	if p.broken != nil {
		return p.broken
	}
	if !p.open {
		return p.commitPlain(ctx, offsets, by)
	}
	if p.options.Mode != ExactlyOnce {
		return p.commitLoose(ctx, offsets, by)
	}
	deadline, _ := p.Deadline()
	bounded, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	if err := p.prepare(bounded, offsets, by); err != nil {
		return p.refuse(ctx, err)
	}
	if err := p.step(StepEnd); err != nil {
		return err
	}
	if err := p.sender.end(bounded, true); err != nil {
		return p.unfinished(ctx, ending(err))
	}
	p.finish()
	return p.step(StepDone)
}

// prepare gets everything into the transaction.
func (p *Producer) prepare(ctx context.Context, offsets Offsets, by Generation) error {
	if err := p.step(StepFlush); err != nil {
		return err
	}
	if err := p.deliver(ctx); err != nil {
		return err
	}
	if err := p.step(StepOffsets); err != nil {
		return err
	}
	if len(offsets) == 0 {
		return nil
	}
	t := txnOffsets{cluster: p.cluster, id: p.options.TransactionalID, producer: p.sender.id, epoch: p.sender.epoch, by: by}
	return before("commit offsets in transaction", t.send(ctx, offsets))
}

// deliver waits until all records are acknowledged, after sending those held back.
func (p *Producer) deliver(ctx context.Context) error {
	if p.failed != nil {
		return before("send", p.failed)
	}
	p.sealAll()
	p.sender.release()
	return before("send", p.sender.flush(ctx))
}

// errCrash marks an error of OnStep: the transaction is left as it is.
var errCrash = errors.New("session: abandoned by OnStep")

func (p *Producer) step(s Step) error {
	if p.options.OnStep == nil {
		return nil
	}
	if err := p.options.OnStep(s); err != nil {
		p.broken = fmt.Errorf("%w before %s: %w", errCrash, s, err)
		return p.broken
	}
	return nil
}

// refuse ends a transaction that cannot commit, and returns why.
func (p *Producer) refuse(ctx context.Context, err error) error {
	if errors.Is(err, errCrash) {
		return err
	}
	if errors.Is(err, ErrFenced) && !isAny(err, groupFencing) {
		p.broken = err
		return err
	}
	if abort := p.Abort(ctx); abort != nil {
		return errors.Join(err, abort)
	}
	return err
}

// unfinished deals with a commit that was asked for and not confirmed.
func (p *Producer) unfinished(ctx context.Context, err error) error {
	if !errors.Is(err, ErrAborted) {
		p.broken = err
		return err
	}
	return p.refuse(ctx, err)
}

// Abort drops the records of the transaction. When the coordinator cannot be
// told so, the producer renews its epoch, which aborts too. It is an error
// only when neither works, or when another producer has the id.
func (p *Producer) Abort(ctx context.Context) error {
	if p.broken != nil {
		return p.broken
	}
	if !p.open {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, p.options.Timeout)
	defer cancel()
	// Whatever has an unknown fate, or may not have been ended, is fenced by the
	// next epoch.
	if !p.sender.drain(bounded) {
		return p.Renew(ctx)
	}
	if p.options.Mode != ExactlyOnce || !p.sender.touched {
		p.finish()
		return nil
	}
	err := p.sender.end(bounded, false)
	if err == nil {
		p.finish()
		return nil
	}
	if isAny(err, fencing) {
		p.broken = fmt.Errorf("%w: abort: %w", ErrFenced, err)
		return p.broken
	}
	return p.Renew(ctx)
}

// commitPlain commits offsets outside a transaction. Offsets only grow within a
// generation, so sending them again after a lost reply changes nothing.
func (p *Producer) commitPlain(ctx context.Context, offsets Offsets, by Generation) error {
	if len(offsets) == 0 {
		return nil
	}
	if err := p.step(StepOffsets); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, p.options.Timeout)
	defer cancel()
	if err := p.tellOffsets(bounded, offsets, by); err != nil {
		return err
	}
	return p.step(StepDone)
}

// tellOffsets is the request of a commit without a transaction.
func (p *Producer) tellOffsets(ctx context.Context, offsets Offsets, by Generation) error {
	if len(offsets) == 0 {
		return nil
	}
	err := p.cluster.commitOffsets(ctx, offsets, by)
	switch {
	case err == nil:
		return nil
	case isAny(err, fencing):
		return fmt.Errorf("%w: commit offsets: %w", ErrFenced, err)
	case errors.Is(err, kerr.RebalanceInProgress):
		return fmt.Errorf("%w: commit offsets: %w", ErrAborted, err)
	case isAny(err, refusals):
		return aborted("commit offsets", err)
	}
	return fmt.Errorf("%w: commit offsets: %w", ErrUnknownOutcome, err)
}

// txnOffsets is one commit of offsets within a transaction.
type txnOffsets struct {
	cluster  *Cluster
	id       string
	producer int64
	epoch    int16
	by       Generation
}

func (t *txnOffsets) send(ctx context.Context, offsets Offsets) error {
	if !t.cluster.txnV2 {
		if err := t.addGroup(ctx); err != nil {
			return err
		}
	}
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = t.id, t.producer, t.epoch
	req.Group, req.Generation, req.MemberID = t.by.Group, t.by.wireID(), t.by.Member
	if t.by.Instance != "" {
		req.InstanceID = &t.by.Instance
	}
	ids, err := t.cluster.topicIDs(ctx, offsets)
	if err != nil {
		return err
	}
	for topic, parts := range offsets.byTopic() {
		rt := kmsg.NewTxnOffsetCommitRequestTopic()
		rt.Topic, rt.TopicID = topic, ids[topic]
		for _, p := range parts {
			o := offsets[p]
			rp := kmsg.NewTxnOffsetCommitRequestTopicPartition()
			rp.Partition, rp.Offset, rp.LeaderEpoch = p.Partition, o.Next, o.LeaderEpoch
			rp.Metadata = kmsg.StringPtr(o.Metadata)
			rt.Partitions = append(rt.Partitions, rp)
		}
		req.Topics = append(req.Topics, rt)
	}
	return t.cluster.retry(ctx, func() error {
		resp, err := req.RequestWith(ctx, t.cluster.client)
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

// addGroup is the extra step of transaction version 1.
func (t *txnOffsets) addGroup(ctx context.Context) error {
	req := kmsg.NewPtrAddOffsetsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = t.id, t.producer, t.epoch, t.by.Group
	return t.cluster.retry(ctx, func() error {
		resp, err := req.RequestWith(ctx, t.cluster.client)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(resp.ErrorCode)
	})
}
