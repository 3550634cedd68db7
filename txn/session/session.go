package session

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"
)

// Options describe a [Session]. Seeds, Group, TransactionalID and Topics are
// required; the rest has defaults.
type Options struct {
	ClusterOptions

	// Group is the consumer group whose offsets are committed.
	Group string
	// Instance is the group.instance.id of a static member, "" for none. It
	// must be unique among the running members of the group, and the same
	// again after a restart.
	Instance string
	// TransactionalID must be unique among the running members of the group,
	// and the same again after a restart.
	TransactionalID string
	// Topics to consume.
	Topics []string
	// TransactionTimeout is how long a transaction may stay open, default
	// 10 s: the longest time between the first Send and the end of Commit.
	TransactionTimeout time.Duration
	// SessionTimeout, RebalanceTimeout and Heartbeat are those of
	// [MemberOptions].
	SessionTimeout, RebalanceTimeout, Heartbeat time.Duration
	// FromLatest starts a partition without a committed offset at its end;
	// the default is its start.
	FromLatest bool
	// MaxRecords bounds what one Poll returns. Default 10,000.
	MaxRecords int
	// Uncommitted also delivers records of open and aborted transactions. What
	// is computed from them is then not exactly once.
	Uncommitted bool

	// OnRevoke is called before partitions are given up, after what was
	// processed has been committed. OnLost is called instead when they were
	// lost already: nothing of the open transaction will be seen. OnAssign is
	// called with the partitions that are new. They run within Poll.
	OnRevoke, OnLost, OnAssign func([]TopicPartition)

	// OnStep is for tests of crash safety; see [ProducerOptions].
	OnStep func(Step) error
}

// Validate names the field that is wrong.
func (o Options) Validate() error {
	if err := o.ClusterOptions.Validate(); err != nil {
		return err
	}
	switch {
	case o.Group == "":
		return errors.New("session: Options.Group is empty")
	case len(o.Topics) == 0:
		return errors.New("session: Options.Topics is empty")
	case o.MaxRecords < 0:
		return fmt.Errorf("session: Options.MaxRecords is %d, must not be negative", o.MaxRecords)
	}
	return o.producer().Validate()
}

func (o Options) producer() ProducerOptions {
	return ProducerOptions{TransactionalID: o.TransactionalID, Timeout: o.TransactionTimeout, OnStep: o.OnStep}
}

// Loop is what a session does, whatever client library is underneath: [Session] is one, and package onsarama has
// another.
type Loop interface {
	Poll(ctx context.Context) (iter.Seq[*Record], error)
	Send(ctx context.Context, r *Record) error
	Commit(ctx context.Context) error
	Abort(ctx context.Context) error
	Close(ctx context.Context) error
}

var _ Loop = (*Session)(nil)

// Session consumes, and lets its user produce and commit exactly once:
//
//	for {
//		records, err := s.Poll(ctx)
//		for r := range records { … s.Send(ctx, out) … }
//		err = s.Commit(ctx)
//	}
//
// When Commit returns [ErrAborted] or [ErrUnknownOutcome] the loop just goes on:
// the next Poll settles what happened and delivers again what was not
// committed. [ErrFenced] ends the session. Methods are for one goroutine.
type Session struct {
	options  Options
	cluster  *Cluster
	member   *Member
	reader   *Reader
	producer *Producer

	generation Generation
	feeds      []*Feed
	next       int     // feed to begin the next poll with
	done       Offsets // what Commit commits
	record     Record
	rewind     bool // read on from the committed offsets
	refused    bool // a commit failed, and nothing was polled since
	joined     bool // false: join before anything else
	assigned   []TopicPartition
	fresh      []TopicPartition // assigned, and OnAssign was not called yet
	fatal      error            // the session is over
}

// Open connects, and fences every earlier session with the same transactional
// id. It joins the group at the first Poll.
func Open(ctx context.Context, o Options) (*Session, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.MaxRecords == 0 {
		o.MaxRecords = 10_000
	}
	cluster, err := Connect(ctx, o.ClusterOptions)
	if err != nil {
		return nil, err
	}
	s := &Session{options: o, cluster: cluster, done: Offsets{}}
	s.producer, err = cluster.NewProducer(ctx, o.producer())
	if err == nil {
		s.member, err = cluster.NewMember(MemberOptions{
			Group: o.Group, Instance: o.Instance, Session: o.SessionTimeout, Rebalance: o.RebalanceTimeout,
			Heartbeat: o.Heartbeat, Balancer: &rangeBalancer{topics: o.Topics, counts: s.counts},
		})
	}
	if err != nil {
		cluster.Close()
		return nil, err
	}
	s.reader = cluster.NewReader(ReaderOptions{Uncommitted: o.Uncommitted})
	return s, nil
}

func (s *Session) counts(ctx context.Context, topics []string) (map[string]int32, error) {
	found, err := s.cluster.Topics(ctx, topics...)
	if err != nil {
		return nil, err
	}
	counts := map[string]int32{}
	for name, t := range found {
		counts[name] = int32(len(t.Partitions))
	}
	return counts, nil
}

// Send adds a record to the transaction. It is copied.
func (s *Session) Send(ctx context.Context, r *Record) error {
	if s.fatal != nil {
		return s.fatal
	}
	return s.producer.Send(ctx, r, nil)
}

// Commit commits what was sent and what was polled, together.
func (s *Session) Commit(ctx context.Context) error {
	if s.fatal != nil {
		return s.fatal
	}
	if s.refused {
		return fmt.Errorf("%w: the last commit failed, poll first", ErrAborted)
	}
	err := s.producer.Commit(ctx, s.done, s.generation)
	clear(s.done)
	if err == nil {
		return nil
	}
	s.rewind, s.refused = true, true
	if errors.Is(err, ErrFenced) {
		s.fatal = err
	}
	return err
}

// Abort drops what was sent; what was polled since the last commit is
// delivered again.
func (s *Session) Abort(ctx context.Context) error {
	if s.fatal != nil {
		return s.fatal
	}
	s.rewind = true
	clear(s.done)
	if err := s.producer.Abort(ctx); err != nil {
		s.fatal = err
		return err
	}
	return nil
}

// Close gives the partitions up. An open transaction is aborted. A static
// member stays in the group until its session is over, others leave.
func (s *Session) Close(ctx context.Context) error {
	s.reader.Close()
	err := s.producer.Close(ctx)
	if errors.Is(err, ErrFenced) {
		err = nil // there is nothing left to give up
	}
	if s.options.Instance != "" {
		s.member.Close()
	} else {
		err = errors.Join(err, s.member.Leave(ctx))
	}
	s.cluster.Close()
	s.fatal = fmt.Errorf("%w: session of group %s", ErrClosed, s.options.Group)
	return err
}

// lose forgets all partitions without a commit.
func (s *Session) lose() {
	gone := s.drop()
	s.joined = false
	if len(gone) > 0 && s.options.OnLost != nil {
		s.options.OnLost(gone)
	}
}

func (s *Session) drop() (gone []TopicPartition) {
	for _, f := range s.feeds {
		s.reader.Remove(f)
		gone = append(gone, f.Part())
	}
	s.feeds = nil
	clear(s.done)
	slices.SortFunc(gone, compareParts)
	return gone
}
