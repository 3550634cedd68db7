package onsarama

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace/millrace/txn/session"
)

// join starts the goroutine that consumes, once.
func (s *Session) join() {
	if s.joined {
		return
	}
	s.joined = true
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	s.done.Go(func() { s.consume(ctx) })
}

// consume is a member of the group until ctx ends.
func (s *Session) consume(ctx context.Context) {
	topics := sortedTopics(s.options)
	for ctx.Err() == nil {
		err := s.group.Consume(ctx, topics, &handler{s})
		switch {
		case ctx.Err() != nil || err == nil:
			continue
		case isAny(err, []sarama.KError{sarama.ErrFencedInstancedId}):
			s.tell(ctx.Done(), event{failure: fmt.Errorf("%w: another process is member of group %s with instance id %s: %w", session.ErrFenced, s.options.Group, s.options.Instance, err)})
			return
		case errors.Is(err, sarama.ErrClosedConsumerGroup):
			return
		}
		s.log.Warn("consumer group", "group", s.options.Group, "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// tell hands an event to the session, unless over comes first.
func (s *Session) tell(over <-chan struct{}, e event) bool {
	select {
	case s.events <- e:
		return true
	case <-over:
	case <-s.closed:
	}
	return false
}

// handler is called by Sarama, on goroutines of its own.
type handler struct{ s *Session }

// Setup gives the partitions to the session.
func (h *handler) Setup(m sarama.ConsumerGroupSession) error {
	h.s.tell(m.Context().Done(), event{membership: m, given: true})
	return nil
}

// Cleanup waits until the session has given the partitions up, but not for longer than the group would: what the session
// commits after that is refused, by its generation.
func (h *handler) Cleanup(m sarama.ConsumerGroupSession) error {
	limit := time.NewTimer(orElse(h.s.options.RebalanceTimeout, time.Minute))
	defer limit.Stop()
	over := make(chan struct{})
	go func() {
		select {
		case <-limit.C:
			close(over)
		case <-h.s.closed:
		}
	}()
	e := event{membership: m, handled: make(chan struct{})}
	if h.s.tell(over, e) {
		select {
		case <-e.handled:
		case <-h.s.closed:
		}
	}
	return nil
}

// ConsumeClaim hands the records of a partition over.
func (h *handler) ConsumeClaim(m sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case <-m.Context().Done():
			return nil
		case r, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			select {
			case h.s.inbox <- delivered{m, r}:
			case <-m.Context().Done():
				return nil
			}
		}
	}
}

// committed are the offsets that the group has committed of the session's partitions; a partition without one is missing.
// Nothing that is undecided may still change them: the one producer whose transaction could has just been renewed.
func (s *Session) committed(ctx context.Context) (map[session.TopicPartition]int64, error) {
	wanted := map[string][]int32{}
	for _, p := range s.parts {
		wanted[p.Topic] = append(wanted[p.Topic], p.Partition)
	}
	at := map[session.TopicPartition]int64{}
	err := insist(ctx, func() error {
		b, err := s.client.Coordinator(s.options.Group)
		if err != nil {
			return err
		}
		req := sarama.NewOffsetFetchRequest(s.client.Config().Version, s.options.Group, wanted)
		req.RequireStable = true
		resp, err := b.FetchOffset(req)
		if err != nil {
			return errors.Join(err, s.client.RefreshCoordinator(s.options.Group))
		}
		for _, p := range s.parts {
			row := resp.GetBlock(p.Topic, p.Partition)
			switch {
			case row == nil && resp.Err != sarama.ErrNoError:
				return resp.Err
			case row == nil:
				return sarama.ErrIncompleteResponse
			case row.Err != sarama.ErrNoError:
				return row.Err
			}
			at[p] = row.Offset
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("session: committed offsets of group %s: %w", s.options.Group, err)
	}
	return at, nil
}
