package onsarama

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/IBM/sarama"

	"github.com/millrace/millrace/txn/session"
)

// Session is a [session.Loop] on Sarama. Its methods are for one goroutine. Goroutines of Sarama hand it records and
// assignments, one at a time; it takes them in Poll, and a rebalance waits for that.
type Session struct {
	options  session.Options
	log      *slog.Logger
	client   sarama.Client
	group    sarama.ConsumerGroup
	producer *producer

	inbox  chan delivered
	events chan event
	closed chan struct{} // no more events are taken
	stop   context.CancelFunc
	done   sync.WaitGroup
	joined bool // the goroutine that consumes runs

	membership sarama.ConsumerGroupSession // nil: has no partitions
	parts      []session.TopicPartition    // of the membership
	waiting    []*sarama.ConsumerMessage   // not polled yet
	polled     []*sarama.ConsumerMessage   // since the last commit
	next       session.Offsets             // what Commit commits
	record     session.Record
	settled    bool  // false: a commit failed, find out what became of it
	refused    bool  // a commit failed, and nothing was polled since
	fatal      error // the session is over
}

var _ session.Loop = (*Session)(nil)

// inboxRoom is how many records may wait between Sarama's goroutines and the session, so that a Poll finds more than one.
const inboxRoom = 1024

// Open connects, and fences every earlier session with the same transactional id. It joins the group at the first Poll.
// OnStep is called with StepOffsets and StepEnd one after the other: Sarama sends the offsets with the commit.
func Open(ctx context.Context, o session.Options) (*Session, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.MaxRecords == 0 {
		o.MaxRecords = 10_000
	}
	s := &Session{
		options: o, log: o.Logger, inbox: make(chan delivered, inboxRoom), events: make(chan event), closed: make(chan struct{}),
		next: session.Offsets{}, settled: true, stop: func() {},
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	cfg := config(o)
	var err error
	if s.client, err = sarama.NewClient(o.Seeds, cfg); err != nil {
		return nil, fmt.Errorf("session: connect to %v: %w", o.Seeds, err)
	}
	if s.producer, err = openProducer(ctx, o); err == nil {
		s.group, err = sarama.NewConsumerGroupFromClient(o.Group, s.client)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("session: transactional id %s: %w", o.TransactionalID, err), s.client.Close())
	}
	return s, nil
}

// Send adds a record to the transaction. It is copied.
func (s *Session) Send(ctx context.Context, r *session.Record) error {
	if s.fatal != nil {
		return s.fatal
	}
	err := s.producer.send(ctx, r)
	if err != nil && ctx.Err() == nil {
		s.failed(err)
	}
	return err
}

// failed notes that the transaction can not be committed any more, or that nobody knows.
func (s *Session) failed(err error) {
	s.refused, s.settled = true, false
	if errors.Is(err, session.ErrFenced) {
		s.fatal = err
	}
}

// Commit commits what was sent and what was polled, together.
func (s *Session) Commit(ctx context.Context) error {
	if s.fatal != nil {
		return s.fatal
	}
	if s.refused {
		return fmt.Errorf("%w: the last commit failed, poll first", session.ErrAborted)
	}
	err := s.producer.commit(ctx, s.next, s.metadata())
	clear(s.next)
	if err == nil {
		s.polled = s.polled[:0]
		return nil
	}
	s.failed(err)
	return err
}

// metadata is what lets the coordinator fence this member.
func (s *Session) metadata() *sarama.ConsumerGroupMetadata {
	if s.membership == nil {
		return sarama.NewConsumerGroupMetadata(s.options.Group)
	}
	var instance *string
	if s.options.Instance != "" {
		instance = &s.options.Instance
	}
	return sarama.NewConsumerGroupMetadataFromSession(s.membership, s.options.Group, instance)
}

// Abort drops what was sent; what was polled since the last commit is delivered again.
func (s *Session) Abort(ctx context.Context) error {
	if s.fatal != nil {
		return s.fatal
	}
	s.again()
	if err := s.producer.abort(ctx); err != nil {
		s.fatal = err
		return err
	}
	return nil
}

// again puts what was polled in front of what was not.
func (s *Session) again() {
	clear(s.next)
	s.waiting = append(s.polled, s.waiting...)
	s.polled = nil
}

// Close gives the partitions up. An open transaction is aborted. A static member stays in the group until its session is
// over, others leave.
func (s *Session) Close(ctx context.Context) error {
	select {
	case <-s.closed:
		return nil
	default:
	}
	err := s.producer.close(ctx)
	close(s.closed)
	s.stop()
	err = errors.Join(err, s.group.Close())
	s.done.Wait()
	if closing := s.client.Close(); closing != nil && !errors.Is(closing, sarama.ErrClosedClient) {
		err = errors.Join(err, closing)
	}
	s.fatal = fmt.Errorf("%w: session of group %s", session.ErrClosed, s.options.Group)
	return err
}

// partsOf are the partitions of a membership, in order.
func partsOf(m sarama.ConsumerGroupSession) []session.TopicPartition {
	var parts []session.TopicPartition
	claims := m.Claims()
	for _, topic := range slices.Sorted(maps.Keys(claims)) {
		for _, p := range slices.Sorted(slices.Values(claims[topic])) {
			parts = append(parts, session.TopicPartition{Topic: topic, Partition: p})
		}
	}
	return parts
}
