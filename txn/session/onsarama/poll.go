package onsarama

import (
	"context"
	"errors"
	"iter"

	"github.com/IBM/sarama"

	"github.com/millrace/millrace/txn/session"
)

// Poll waits for records and returns them, up to [session.Options.MaxRecords]. The records of one partition come in
// order. A record and its slices are valid until the next step. What the caller does not take from the sequence comes with
// the next Poll.
//
// Poll is also where a rebalance happens: everything polled before counts as processed, and is committed before partitions
// are given up.
func (s *Session) Poll(ctx context.Context) (iter.Seq[*session.Record], error) {
	s.refused = false
	for {
		if s.fatal != nil {
			return nil, s.fatal
		}
		s.join()
		// A rebalance goes before records.
		select {
		case e := <-s.events:
			if err := s.handle(ctx, e); err != nil {
				return nil, err
			}
			continue
		default:
		}
		if err := s.settle(ctx); err != nil {
			return nil, err
		}
		s.gather()
		if len(s.waiting) > 0 {
			return s.take, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case e := <-s.events:
			if err := s.handle(ctx, e); err != nil {
				return nil, err
			}
		case d := <-s.inbox:
			s.accept(d)
		}
	}
}

// gather takes what is there, as far as there is room.
func (s *Session) gather() {
	for len(s.waiting) < s.options.MaxRecords {
		select {
		case d := <-s.inbox:
			s.accept(d)
		default:
			return
		}
	}
}

// accept keeps a record of the present membership.
func (s *Session) accept(d delivered) {
	if d.membership == s.membership {
		s.waiting = append(s.waiting, d.message)
	}
}

func (s *Session) take(yield func(*session.Record) bool) {
	for n := 0; n < s.options.MaxRecords && len(s.waiting) > 0; n++ {
		m := s.waiting[0]
		s.waiting = s.waiting[1:]
		s.polled = append(s.polled, m)
		s.record = recordOf(m, s.record.Headers[:0])
		s.next[session.TopicPartition{Topic: m.Topic, Partition: m.Partition}] = session.Offset{Next: m.Offset + 1, LeaderEpoch: -1}
		if !yield(&s.record) {
			return
		}
	}
}

func recordOf(m *sarama.ConsumerMessage, headers []session.Header) session.Record {
	for _, h := range m.Headers {
		headers = append(headers, session.Header{Key: string(h.Key), Value: h.Value})
	}
	return session.Record{
		Topic: m.Topic, Partition: m.Partition, Offset: m.Offset, LeaderEpoch: -1, Time: m.Timestamp,
		Key: m.Key, Value: m.Value, Headers: headers,
	}
}

// handle carries out what the group wants.
func (s *Session) handle(ctx context.Context, e event) error {
	switch {
	case e.failure != nil:
		s.fatal = e.failure
		return e.failure
	case e.given:
		s.membership, s.parts = e.membership, partsOf(e.membership)
		s.waiting, s.polled = nil, nil
		clear(s.next)
		if len(s.parts) > 0 && s.options.OnAssign != nil {
			s.options.OnAssign(s.parts)
		}
		return nil
	}
	defer close(e.handled)
	return s.giveUp(ctx)
}

// giveUp commits what was processed and lets go of all partitions.
func (s *Session) giveUp(ctx context.Context) error {
	lost := false
	if s.settled {
		err := s.Commit(ctx)
		switch {
		case err == nil, errors.Is(err, session.ErrAborted), errors.Is(err, session.ErrUnknownOutcome):
		case errors.Is(err, session.ErrFenced) && isAny(err, groupFencing):
			// The group has gone on without this member, which may join again. The producer is still the holder
			// of its id, and has aborted.
			lost, s.fatal = true, nil
		default:
			return err
		}
	}
	gone := s.parts
	s.membership, s.parts, s.waiting, s.polled = nil, nil, nil, nil
	clear(s.next)
	switch {
	case len(gone) == 0:
	case lost && s.options.OnLost != nil:
		s.options.OnLost(gone)
	case !lost && s.options.OnRevoke != nil:
		s.options.OnRevoke(gone)
	}
	return nil
}

// settle finds out what became of a commit that failed, and delivers again what is not committed.
func (s *Session) settle(ctx context.Context) error {
	if s.settled {
		return nil
	}
	if err := s.producer.renew(ctx); err != nil {
		return err
	}
	s.again()
	if len(s.waiting) > 0 {
		at, err := s.committed(ctx)
		if err != nil {
			return err
		}
		kept := s.waiting[:0:0]
		for _, m := range s.waiting {
			if m.Offset >= at[session.TopicPartition{Topic: m.Topic, Partition: m.Partition}] {
				kept = append(kept, m)
			}
		}
		s.waiting = kept
	}
	s.settled = true
	return nil
}
