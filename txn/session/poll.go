package session

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
)

// Poll waits for records and returns them, up to [Options.MaxRecords]. The
// records of one partition come in order. A record and its slices are valid
// until the next step. What the caller does not take from the sequence comes
// with the next Poll.
//
// Poll is also where a rebalance happens: everything polled before counts as
// processed, and is committed before partitions are given up.
func (s *Session) Poll(ctx context.Context) (iter.Seq[*Record], error) {
	s.refused = false
	for {
		if s.fatal != nil {
			return nil, s.fatal
		}
		if err := s.settle(ctx); err != nil {
			return nil, err
		}
		if err := s.feedError(ctx); err != nil {
			return nil, err
		}
		for _, f := range s.feeds {
			if _, ok := f.Head(); ok {
				return s.take, nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.member.Changed():
		case <-s.reader.Arrived():
		}
	}
}

// take yields what has arrived, feed after feed, beginning with another one each
// time, and notes what counts as processed.
func (s *Session) take(yield func(*Record) bool) {
	n := 0
	s.next++
	for i := range s.feeds {
		f := s.feeds[(s.next+i)%len(s.feeds)]
		for n < s.options.MaxRecords {
			r, ok := f.Head()
			if !ok {
				break
			}
			s.record = *r
			f.Pop()
			s.done[f.Part()] = Offset{Next: f.Position(), LeaderEpoch: f.LeaderEpoch()}
			n++
			if !yield(&s.record) {
				return
			}
		}
	}
}

// settle brings the session to a state in which it may read: member of the
// group, producer in order, feeds where the group's offsets say.
func (s *Session) settle(ctx context.Context) error {
	if s.joined {
		select {
		case <-s.member.Changed():
			if err := s.giveUp(ctx); err != nil {
				return err
			}
		default:
		}
	}
	if s.rewind && s.producer.broken != nil {
		if err := s.producer.Renew(ctx); err != nil {
			return err
		}
	}
	if !s.joined {
		if err := s.join(ctx); err != nil {
			return err
		}
	}
	if !s.rewind {
		return nil
	}
	s.drop()
	if err := s.assign(ctx); err != nil {
		return err
	}
	s.rewind = false
	if len(s.fresh) > 0 && s.options.OnAssign != nil {
		s.options.OnAssign(s.fresh)
	}
	s.fresh = nil
	return nil
}

// giveUp commits what was processed and lets go of all partitions.
func (s *Session) giveUp(ctx context.Context) error {
	if s.member.Lost() {
		if err := s.producer.Abort(ctx); err != nil {
			s.fatal = err
			return err
		}
		s.lose()
		return nil
	}
	if !s.rewind {
		err := s.Commit(ctx)
		switch {
		case errors.Is(err, ErrFenced):
			s.lose()
			return err
		case err != nil && !errors.Is(err, ErrAborted) && !errors.Is(err, ErrUnknownOutcome):
			return err
		}
	}
	gone := s.drop()
	s.joined = false
	if len(gone) > 0 && s.options.OnRevoke != nil {
		s.options.OnRevoke(gone)
	}
	return nil
}

func (s *Session) join(ctx context.Context) error {
	joined, err := s.member.Join(ctx)
	if err != nil {
		if errors.Is(err, ErrFenced) {
			s.fatal = err
		}
		return err
	}
	parts, err := parseAssignment(joined.Assignment)
	if err != nil {
		return err
	}
	// Reading begins in a step of its own, which may be repeated: the caller's
	// ctx can end in between.
	s.generation, s.assigned, s.fresh = joined.Generation, parts, parts
	s.joined, s.rewind = true, true
	return nil
}

// assign reads the assigned partitions from where the group is.
func (s *Session) assign(ctx context.Context) error {
	parts := s.assigned
	offsets, err := s.cluster.CommittedOffsets(ctx, s.options.Group, parts)
	if err != nil {
		return err
	}
	var fresh []TopicPartition
	for _, p := range parts {
		if offsets[p].Next < 0 {
			fresh = append(fresh, p)
		}
	}
	bound := Start
	if s.options.FromLatest {
		bound = StableEnd
	}
	starts, err := s.cluster.List(ctx, bound, fresh)
	if err != nil {
		return err
	}
	for _, p := range parts {
		at := offsets[p].Next
		if at < 0 {
			at = starts[p]
		}
		s.feeds = append(s.feeds, s.reader.Add(p, at))
	}
	slices.SortFunc(s.feeds, func(a, b *Feed) int { return compareParts(a.part, b.part) })
	return nil
}

// feedError reports a feed that cannot go on. Records that were deleted before
// they were read are the broker's retention at work: reading goes on at the new
// start, and the log says what was missed.
func (s *Session) feedError(ctx context.Context) error {
	for i, f := range s.feeds {
		err := f.Err()
		if err == nil {
			continue
		}
		if !errors.Is(err, ErrOutOfRange) {
			return err
		}
		starts, lerr := s.cluster.List(ctx, Start, []TopicPartition{f.part})
		if lerr != nil {
			return lerr
		}
		start := starts[f.part]
		if start <= f.Position() {
			return fmt.Errorf("%w: the log is shorter than what was read", err)
		}
		s.cluster.log.Error("session: records were deleted before they were read",
			"topic", f.part.Topic, "partition", f.part.Partition, "from", f.Position(), "to", start)
		s.reader.Remove(f)
		s.feeds[i] = s.reader.Add(f.part, start)
	}
	return nil
}
