package fire

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/millrace/millrace/txn/session"
	"github.com/millrace/millrace/txn/session/onsarama"
)

// oneAbort is how many transactions there are per abort on purpose, as in Apache Kafka's copier.
const oneAbort = 3

// copyTopic is our copier: a process of its own. It ends with exit code 0 when everything that was there when it began
// (or when its group gave it partitions) is copied and committed.
func copyTopic() int {
	var j job
	flags := flag.NewFlagSet("copier", flag.ExitOnError)
	j.register(flags)
	if err := flags.Parse(os.Args[1:]); err != nil {
		return say(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if j.groupMode {
		return say(copyAsMember(ctx, &j))
	}
	return say(copyPartition(ctx, &j))
}

func say(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// copyAsMember copies the partitions that the group assigns.
func copyAsMember(ctx context.Context, j *job) (err error) {
	left := &remainder{job: j}
	options := session.Options{
		ClusterOptions: session.ClusterOptions{Seeds: j.seeds()},
		Group:          j.group, TransactionalID: j.id, Topics: []string{j.input},
		TransactionTimeout: j.timeout, SessionTimeout: 6 * time.Second, Heartbeat: 500 * time.Millisecond, MaxRecords: j.size,
		OnAssign: left.assigned, OnRevoke: left.revoked, OnLost: left.revoked,
	}
	var s session.Loop
	if j.sarama {
		s, err = onsarama.Open(ctx, options)
	} else {
		s, err = session.Open(ctx, options)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closing(s.Close)) }()
	for {
		n, err := memberStep(ctx, s, j)
		if err != nil && !errors.Is(err, session.ErrAborted) && !errors.Is(err, session.ErrUnknownOutcome) {
			return err
		}
		if n > 0 || err != nil {
			continue
		}
		if over, err := left.done(ctx); over || err != nil {
			return err
		}
	}
}

// memberStep is one transaction, of what a poll brings.
func memberStep(ctx context.Context, s session.Loop, j *job) (n int, err error) {
	wait, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	records, err := s.Poll(wait)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for r := range records {
		if err := s.Send(ctx, &session.Record{Topic: j.output, Partition: r.Partition, Value: r.Value}); err != nil {
			return n, err
		}
		n++
	}
	if rand.IntN(oneAbort) == 0 {
		return n, s.Abort(ctx)
	}
	return n, s.Commit(ctx)
}

// remainder knows what is left to copy of the partitions that a member has.
type remainder struct {
	job     *job
	cluster *session.Cluster // lazily made
	ends    map[session.TopicPartition]int64
	fresh   []session.TopicPartition // whose ends are not known yet
	had     bool                     // has ever had an assignment
}

func (r *remainder) assigned(parts []session.TopicPartition) {
	clear(r.ends)
	r.fresh, r.had = append(r.fresh[:0], parts...), true
}

func (r *remainder) revoked([]session.TopicPartition) {
	clear(r.ends)
	r.fresh, r.had = r.fresh[:0], false
}

// done says whether the group has committed everything that the member's partitions held.
func (r *remainder) done(ctx context.Context) (bool, error) {
	if !r.had {
		return false, nil
	}
	if r.cluster == nil {
		c, err := session.Connect(ctx, session.ClusterOptions{Seeds: r.job.seeds()})
		if err != nil {
			return false, err
		}
		r.cluster = c
	}
	if len(r.fresh) > 0 {
		ends, err := r.cluster.List(ctx, session.StableEnd, r.fresh)
		if err != nil {
			return false, err
		}
		r.ends, r.fresh = ends, nil
	}
	var parts []session.TopicPartition
	for p := range r.ends {
		parts = append(parts, p)
	}
	at, err := r.cluster.CommittedOffsets(ctx, r.job.group, parts)
	if err != nil {
		return false, err
	}
	for p, end := range r.ends {
		if at[p].Next < end {
			return false, nil
		}
	}
	return true, nil
}

// closing closes something although the program's context may be over.
func closing(f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return f(ctx)
}

// copyPartition copies one partition; nobody else does. The group only keeps the offset.
func copyPartition(ctx context.Context, j *job) (err error) {
	c, err := session.Connect(ctx, session.ClusterOptions{Seeds: j.seeds()})
	if err != nil {
		return err
	}
	defer c.Close()
	// The producer first: it ends what a predecessor has left open, and with it the question what is committed.
	p, err := c.NewProducer(ctx, session.ProducerOptions{TransactionalID: j.id, Timeout: j.timeout})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closing(p.Close)) }()
	part := session.TopicPartition{Topic: j.input, Partition: int32(j.partition)}
	ends, err := c.List(ctx, session.StableEnd, []session.TopicPartition{part})
	if err != nil {
		return err
	}
	r := c.NewReader(session.ReaderOptions{})
	defer r.Close()
	for again := true; again; {
		if again, err = copyOn(ctx, j, c, p, r, part, ends[part]); err != nil {
			return err
		}
	}
	return nil
}

// copyOn copies from the committed offset to the end, or until a transaction does not commit: then again is true.
func copyOn(ctx context.Context, j *job, c *session.Cluster, p *session.Producer, r *session.Reader, part session.TopicPartition, end int64) (again bool, err error) {
	at, err := c.CommittedOffsets(ctx, j.group, []session.TopicPartition{part})
	if err != nil {
		return false, err
	}
	feed := r.Add(part, max(at[part].Next, 0))
	defer r.Remove(feed)
	for feed.Position() < end {
		if err := sendSome(ctx, j, p, r, feed, end); err != nil {
			return false, err
		}
		if rand.IntN(oneAbort) == 0 {
			return true, p.Abort(ctx)
		}
		next := session.Offsets{part: {Next: feed.Position(), LeaderEpoch: feed.LeaderEpoch()}}
		switch err := p.Commit(ctx, next, session.Generation{Group: j.group}); {
		case errors.Is(err, session.ErrUnknownOutcome):
			return true, p.Renew(ctx)
		case errors.Is(err, session.ErrAborted):
			return true, nil
		case err != nil:
			return false, err
		}
	}
	return false, nil
}

// sendSome sends a transaction's worth of records.
func sendSome(ctx context.Context, j *job, p *session.Producer, r *session.Reader, feed *session.Feed, end int64) error {
	for n := 0; n < j.size && feed.Position() < end; {
		rec, ok := feed.Head()
		if !ok {
			if err := feed.Err(); err != nil {
				return err
			}
			if n > 0 || feed.Position() >= end {
				return nil
			}
			select {
			case <-r.Arrived():
			case <-ctx.Done():
				return ctx.Err()
			}
			continue
		}
		if err := p.Send(ctx, &session.Record{Topic: j.output, Partition: rec.Partition, Value: rec.Value}, nil); err != nil {
			return err
		}
		feed.Pop()
		n++
	}
	return nil
}
