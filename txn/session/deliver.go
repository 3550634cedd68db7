package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/core/record"
)

// produceTimeout is how long a broker may wait for its followers.
const produceTimeoutMs = 10_000

// deliver sends the first parcel of each lane and says which lanes have to be sent
// again.
func (s *sender) deliver(ctx context.Context, leader int32, lanes []*lane) (again []*lane) {
	if err := s.joinTransaction(ctx, lanes); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.fail(fmt.Errorf("add partitions to transaction: %w", err))
		return nil
	}
	req, err := s.request(lanes)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.fail(err)
		return nil
	}
	kresp, err := s.cluster.client.Broker(int(leader)).Request(ctx, req)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		for _, l := range lanes {
			l.unsure = true
		}
		return lanes
	}
	return s.landed(lanes, kresp.(*kmsg.ProduceResponse))
}

// request makes the request. A parcel that goes out for the first time gets its
// sequence here.
func (s *sender) request(lanes []*lane) (*kmsg.ProduceRequest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.touched = true
	req := kmsg.NewPtrProduceRequest()
	req.TransactionID, req.Acks, req.TimeoutMillis = s.txnID, -1, produceTimeoutMs
	topics := map[string]int{}
	for _, l := range lanes {
		p := l.queue[0]
		if p.batch == nil {
			if err := p.seal(record.Producer{ID: s.id, Epoch: s.epoch, Sequence: l.seq}); err != nil {
				return nil, fmt.Errorf("produce to %s partition %d: %w", l.part.Topic, l.part.Partition, err)
			}
		}
		i, ok := topics[l.part.Topic]
		if !ok {
			i = len(req.Topics)
			topics[l.part.Topic] = i
			rt := kmsg.NewProduceRequestTopic()
			rt.Topic, rt.TopicID = l.part.Topic, l.topicID
			req.Topics = append(req.Topics, rt)
		}
		rp := kmsg.NewProduceRequestTopicPartition()
		rp.Partition, rp.Records = l.part.Partition, p.batch
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, rp)
	}
	return req, nil
}

// joinTransaction adds partitions to the transaction, where a batch alone does not.
func (s *sender) joinTransaction(ctx context.Context, lanes []*lane) error {
	if s.txnID == nil || s.cluster.txnV2 {
		return nil
	}
	s.mu.Lock()
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = *s.txnID, s.id, s.epoch
	var fresh []TopicPartition
	for _, l := range lanes {
		if !l.joined {
			fresh = append(fresh, l.part)
		}
	}
	s.touched = true
	s.mu.Unlock()
	if len(fresh) == 0 {
		return nil
	}
	for topic, parts := range groupParts(fresh) {
		rt := kmsg.NewAddPartitionsToTxnRequestTopic()
		rt.Topic = topic
		for _, p := range parts {
			rt.Partitions = append(rt.Partitions, p.Partition)
		}
		req.Topics = append(req.Topics, rt)
	}
	err := s.cluster.retry(ctx, func() error {
		resp, err := req.RequestWith(ctx, s.cluster.client)
		if err != nil {
			return err
		}
		if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
			return err
		}
		// A partition's own error comes before the one that only says that
		// others were refused.
		var refused error
		for _, rt := range resp.Topics {
			for _, rp := range rt.Partitions {
				err := kerr.ErrorForCode(rp.ErrorCode)
				if err != nil && (refused == nil || errors.Is(refused, kerr.OperationNotAttempted)) {
					refused = err
				}
			}
		}
		return refused
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range lanes {
		l.joined = true
	}
	return nil
}

// landed sorts the answers; again lists the lanes whose parcel has to be repeated.
func (s *sender) landed(lanes []*lane, resp *kmsg.ProduceResponse) (again []*lane) {
	for _, l := range lanes {
		rp := answerFor(resp, l)
		if rp == nil {
			l.unsure = true
			again = append(again, l)
			continue
		}
		err := kerr.ErrorForCode(rp.ErrorCode)
		if err == nil {
			s.acknowledged(l, rp.BaseOffset)
			continue
		}
		if s.repeat(l, err) {
			again = append(again, l)
			continue
		}
		s.refused(l, err)
	}
	return again
}

// answerFor finds the answer for a lane: version 13 names topics by their id only.
func answerFor(resp *kmsg.ProduceResponse, l *lane) *kmsg.ProduceResponseTopicPartition {
	for i := range resp.Topics {
		rt := &resp.Topics[i]
		if rt.Topic != l.part.Topic && (rt.Topic != "" || rt.TopicID != l.topicID) {
			continue
		}
		for j := range rt.Partitions {
			if rt.Partitions[j].Partition == l.part.Partition {
				return &rt.Partitions[j]
			}
		}
	}
	return nil
}

// acknowledged is the end of a parcel.
func (s *sender) acknowledged(l *lane, base int64) {
	p := l.queue[0]
	p.acknowledge(base)
	s.waiting--
	s.bytes -= p.builder.Size()
	l.seq = record.AddSequence(l.seq, int32(p.builder.Count()))
	l.unsure, l.unknowns = false, 0
	l.queue[0] = nil
	if l.queue = l.queue[1:]; len(l.queue) == 0 {
		l.queue = nil
	}
	if p.kept = p.builder.Size(); s.kept+p.kept <= spareBytes {
		s.kept += p.kept
		s.spare = append(s.spare, p)
	}
}

// repeat reports an answer after which the same batch is sent once more.
func (s *sender) repeat(l *lane, err error) bool {
	var ke *kerr.Error
	if !errors.As(err, &ke) || !repeatable(ke) {
		return false
	}
	switch ke {
	case kerr.CorruptMessage:
		return false
	case kerr.RequestTimedOut, kerr.NotEnoughReplicasAfterAppend:
		l.unsure = true
	case kerr.UnknownTopicOrPartition, kerr.UnknownTopicID:
		l.unknowns++
		return l.unknowns < unknownTries
	}
	return true
}

// refused ends the transaction for a batch that is not taken.
func (s *sender) refused(l *lane, err error) {
	p := l.queue[0]
	switch {
	case errors.Is(err, kerr.MessageTooLarge) && p.builder.Count() > 1:
		// The records themselves may be small enough: in the next transaction
		// batches are smaller, and this error is not one for good.
		l.tooLarge = len(p.batch)
		err = fmt.Errorf("a batch of %d bytes is more than the topic takes", len(p.batch))
	case isAny(err, outOfStep):
		s.lost = true
	}
	s.fail(fmt.Errorf("produce to %s partition %d: %w", l.part.Topic, l.part.Partition, err))
}

// outOfStep lists the answers of a partition that remembers the producer otherwise
// than it does itself. Only a new epoch settles that.
var outOfStep = []error{
	kerr.OutOfOrderSequenceNumber, kerr.DuplicateSequenceNumber, kerr.UnknownProducerID, kerr.InvalidProducerIDMapping,
}
