package onsarama

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace/millrace/core/partition"
	"github.com/millrace/millrace/txn/session"
)

// producer sends records in transactions. It is used by the session's goroutine; one of its own counts acknowledgements.
type producer struct {
	options session.Options
	timeout time.Duration
	async   sarama.AsyncProducer // nil: renew first
	open    bool
	sent    int           // records of the open transaction
	acked   chan error    // one for each record that was sent: nil, or why it failed
	drained chan struct{} // closed when the goroutine that counts is gone
}

// openProducer takes a new epoch, which fences every earlier producer with the id and aborts its open transaction.
func openProducer(ctx context.Context, o session.Options) (*producer, error) {
	p := &producer{options: o, timeout: orElse(o.TransactionTimeout, 10*time.Second)}
	return p, p.renew(ctx)
}

// renew takes a new epoch. The outcome of an earlier commit is settled afterwards.
func (p *producer) renew(ctx context.Context) error {
	p.drop()
	cfg := config(p.options)
	cfg.Producer.Idempotent, cfg.Producer.RequiredAcks, cfg.Net.MaxOpenRequests = true, sarama.WaitForAll, 1
	cfg.Producer.Return.Successes, cfg.Producer.Return.Errors = true, true
	cfg.Metadata.Retry.Max = 3 // what needs metadata is tried again as a whole
	cfg.Producer.Partitioner = choosePartition
	cfg.Producer.MaxMessageBytes = 32 << 20 // the brokers know the topic's own limit
	cfg.Producer.Retry.Max, cfg.Producer.Retry.Backoff = 100, 50*time.Millisecond
	cfg.Producer.Transaction.ID, cfg.Producer.Transaction.Timeout = p.options.TransactionalID, p.timeout
	// No longer than the transaction may be open, as a retry after that can only fail.
	cfg.Producer.Transaction.Retry.Backoff = 50 * time.Millisecond
	cfg.Producer.Transaction.Retry.Max = max(int(p.timeout*9/10/cfg.Producer.Transaction.Retry.Backoff), 1)
	return insist(ctx, func() error {
		async, err := sarama.NewAsyncProducer(p.options.Seeds, cfg)
		if err != nil {
			return fmt.Errorf("session: transactional id %s: %w", p.options.TransactionalID, err)
		}
		p.async, p.open, p.sent = async, false, 0
		p.acked, p.drained = make(chan error, 1024), make(chan struct{})
		go count(async, p.acked, p.drained)
		return nil
	})
}

// count passes acknowledgements on until the producer is closed.
func count(async sarama.AsyncProducer, acked chan<- error, drained chan<- struct{}) {
	defer close(drained)
	successes, errs := async.Successes(), async.Errors()
	for successes != nil || errs != nil {
		select {
		case _, ok := <-successes:
			if !ok {
				successes = nil
				continue
			}
			acked <- nil
		case e, ok := <-errs:
			if !ok {
				errs = nil
				continue
			}
			acked <- fmt.Errorf("produce to %s partition %d: %w", e.Msg.Topic, e.Msg.Partition, e.Err)
		}
	}
}

// drop lets go of the client without ending its transaction.
func (p *producer) drop() {
	if p.async == nil {
		return
	}
	p.async.AsyncClose()
	for closed := false; !closed; {
		select {
		case <-p.acked: // nobody waits for it any more
		case <-p.drained:
			closed = true
		}
	}
	p.async, p.open, p.sent = nil, false, 0
}

// wanted is the partition that a record asks for, session.ByKey for none: Sarama's own field is not kept from its
// partitioners.
type wanted struct{ partition int32 }

// partitioner respects an explicit partition and else hashes the key as Kafka's own clients do.
type partitioner struct{ next int32 }

func choosePartition(string) sarama.Partitioner { return &partitioner{next: -1} }

func (p *partitioner) Partition(m *sarama.ProducerMessage, n int32) (int32, error) {
	if w := m.Metadata.(wanted); w.partition >= 0 {
		return w.partition, nil
	}
	if m.Key == nil {
		p.next = (p.next + 1) % n
		return p.next, nil
	}
	key, err := m.Key.Encode()
	return partition.ForKey(key, n), err
}

// RequiresConsistency keeps Sarama from leaving out partitions that have no leader at the moment.
func (p *partitioner) RequiresConsistency() bool { return true }

func (p *producer) send(ctx context.Context, r *session.Record) error {
	if p.async == nil {
		return fmt.Errorf("%w: poll first", session.ErrAborted)
	}
	if err := p.begin(); err != nil {
		return err
	}
	m := &sarama.ProducerMessage{Topic: r.Topic, Timestamp: r.Time, Key: encoder(r.Key), Value: encoder(r.Value), Metadata: wanted{r.Partition}}
	for _, h := range r.Headers {
		m.Headers = append(m.Headers, sarama.RecordHeader{Key: []byte(h.Key), Value: append([]byte(nil), h.Value...)})
	}
	for {
		select {
		case p.async.Input() <- m:
			p.sent++
			return nil
		case err := <-p.acked: // room is made by taking what came
			p.sent--
			if err != nil {
				return p.fail(ctx, err)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// encoder copies bytes; nil is null.
func encoder(b []byte) sarama.Encoder {
	if b == nil {
		return nil
	}
	return sarama.ByteEncoder(append([]byte{}, b...))
}

func (p *producer) begin() error {
	if p.open {
		return nil
	}
	if err := p.async.BeginTxn(); err != nil {
		return aborted("begin", err)
	}
	p.open = true
	return nil
}

// flush waits until all records are acknowledged.
func (p *producer) flush(ctx context.Context) error {
	for p.sent > 0 {
		select {
		case err := <-p.acked:
			p.sent--
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// commit makes the records and the offsets visible together, or neither.
func (p *producer) commit(ctx context.Context, offsets session.Offsets, by *sarama.ConsumerGroupMetadata) error {
	if p.async == nil {
		return fmt.Errorf("%w: poll first", session.ErrAborted)
	}
	if !p.open && len(offsets) == 0 {
		return nil
	}
	if err := p.begin(); err != nil {
		return err
	}
	if err := p.step(session.StepFlush); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, p.timeout*9/10)
	defer cancel()
	if err := p.flush(bounded); err != nil {
		return p.fail(ctx, err)
	}
	if err := p.step(session.StepOffsets); err != nil {
		return err
	}
	if len(offsets) > 0 {
		if err := p.async.AddOffsetsToTxnWithGroupMetadata(rows(offsets), by); err != nil {
			return p.fail(ctx, err)
		}
	}
	if err := p.step(session.StepEnd); err != nil {
		return err
	}
	if err := within(bounded, p.async.CommitTxn); err != nil {
		return p.unfinished(err)
	}
	p.open = false
	return p.step(session.StepDone)
}

func rows(offsets session.Offsets) map[string][]*sarama.PartitionOffsetMetadata {
	out := map[string][]*sarama.PartitionOffsetMetadata{}
	for part, o := range offsets {
		row := &sarama.PartitionOffsetMetadata{Partition: part.Partition, Offset: o.Next, LeaderEpoch: o.LeaderEpoch}
		if o.Metadata != "" {
			row.Metadata = &o.Metadata
		}
		out[part.Topic] = append(out[part.Topic], row)
	}
	return out
}

// within waits for f, which knows no context, until ctx ends. What f still does then meets a client that is closed, and
// brokers that know a newer epoch: the caller renews the producer.
func within(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// step is for tests of crash safety: an error leaves everything where it is.
func (p *producer) step(s session.Step) error {
	if p.options.OnStep == nil {
		return nil
	}
	if err := p.options.OnStep(s); err != nil {
		return fmt.Errorf("session: abandoned by OnStep before %s: %w", s, err)
	}
	return nil
}

// fail ends a transaction whose commit was not asked for. It can not have been committed.
func (p *producer) fail(ctx context.Context, err error) error {
	if isAny(err, fencing) {
		p.drop()
		return fmt.Errorf("%w: %w", session.ErrFenced, err)
	}
	if abort := p.abort(ctx); abort != nil {
		return errors.Join(aborted("send", err), abort)
	}
	return aborted("send", err)
}

// unfinished types the error of CommitTxn, which sends the offsets and then asks for the commit. A code of the broker says
// that it refused; everything else leaves open what became of it. In each case the next transaction gets a new epoch, so
// that no request of this one can reach it.
func (p *producer) unfinished(err error) error {
	p.drop()
	switch {
	case isAny(err, fencing), isAny(err, groupFencing):
		return fmt.Errorf("%w: commit: %w", session.ErrFenced, err)
	case isAny(err, definite):
		return aborted("commit", err)
	}
	return fmt.Errorf("%w: commit: %w", session.ErrUnknownOutcome, err)
}

// abort drops the records of the transaction. Where the coordinator can not be told, a new epoch does it.
func (p *producer) abort(ctx context.Context) error {
	if p.async == nil || !p.open {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	// What is under way must not arrive after the abort.
	for p.sent > 0 {
		if err := p.flush(bounded); err != nil && bounded.Err() != nil {
			break
		}
	}
	if p.sent > 0 {
		return p.renew(ctx)
	}
	err := within(bounded, p.async.AbortTxn)
	switch {
	case err == nil:
		p.open = false
		return nil
	case isAny(err, fencing):
		p.drop()
		return fmt.Errorf("%w: abort: %w", session.ErrFenced, err)
	}
	return p.renew(ctx)
}

// close lets go of the producer. An open transaction is aborted.
func (p *producer) close(ctx context.Context) error {
	err := p.abort(ctx)
	p.drop()
	if errors.Is(err, session.ErrFenced) {
		return nil // there is nothing left to give up
	}
	return err
}
