package twophase

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/txn/session"
)

// Committer commits transactions that span a store and the log, one at a time; [OpenStoreDecides] and [OpenLogDecides] make
// one. T is what the store gives to write with. Its methods are for one goroutine.
type Committer[T any] struct {
	way    way[T]
	client *client
	broken error // set: Recover first
}

// way is one of the two directions.
type way[T any] interface {
	// recover takes the identity over on both sides and finishes what was left.
	recover(ctx context.Context) error
	// do carries out one transaction. An error that is ErrAborted leaves the committer ready for the next one.
	do(ctx context.Context, work func(*Txn[T]) error) error
	// sweep ends what earlier incarnations left behind after recover.
	sweep(ctx context.Context) error
}

// Txn is one transaction, for the time of the function that [Committer.Do] runs.
type Txn[T any] struct {
	// Store is the store's open transaction.
	Store T
	p     *producer
}

// Send adds a record to the transaction of the log. Its bytes must not change until Do returns. An error of the transmission
// itself comes from Do.
func (t *Txn[T]) Send(ctx context.Context, r session.Record) error { return t.p.send(ctx, r) }

// CommitOffsets adds positions of a consumer group to the transaction of the log, for a program that reads what it works on
// from the log. gen is the membership that proves it is still the reader; see [session.Generation].
func (t *Txn[T]) CommitOffsets(ctx context.Context, gen session.Generation, offsets session.Offsets) error {
	return t.p.commitOffsets(ctx, gen, offsets)
}

func open[T any](ctx context.Context, cluster Cluster, o Options, twoPhase bool, make func(*client, Options) way[T]) (*Committer[T], error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	cl, err := newClient(cluster, o)
	if err != nil {
		return nil, err
	}
	c := &Committer[T]{client: cl, way: make(cl, o)}
	if err = cl.support(ctx, twoPhase); err == nil {
		err = c.Recover(ctx)
	}
	if err != nil {
		cl.kgo.Close()
		return nil, err
	}
	return c, nil
}

// Do runs work and commits what it wrote to the store and to the log: both or neither. Errors:
//
//   - nil: both are committed.
//   - [ErrAborted], joined with the reason: neither is. The next Do may follow at once.
//   - [ErrUnfinished]: the outcome is for Recover to find out and to finish. Until then every Do returns this.
//   - [ErrFenced]: a newer incarnation has the transactional id, and finishes.
func (c *Committer[T]) Do(ctx context.Context, work func(*Txn[T]) error) error {
	if c.broken != nil {
		return c.broken
	}
	// Should work panic, then what it has written is in neither transaction of the next Do.
	c.broken = fmt.Errorf("%w: the last transaction did not come to an end", ErrUnfinished)
	err := c.way.do(ctx, work)
	if c.broken = err; errors.Is(err, ErrAborted) {
		c.broken = nil
	}
	return err
}

// Recover finishes what is not finished, and makes this process the owner of the transactional id again. Opening does the
// same. It goes on trying until ctx ends.
func (c *Committer[T]) Recover(ctx context.Context) error {
	c.broken = fmt.Errorf("%w: recovery did not succeed", ErrUnfinished)
	if err := c.way.recover(ctx); err != nil {
		return err
	}
	c.broken = nil
	return nil
}

// Sweep ends transactions that an incarnation, paused for long, prepared in the store after it was replaced. They can never
// commit, but they hold locks. Between two Do it may be called as often as one likes; a minute apart is often enough. When
// the store decides there is nothing to sweep.
func (c *Committer[T]) Sweep(ctx context.Context) error {
	if c.broken != nil {
		return c.broken
	}
	return c.way.sweep(ctx)
}

// Close closes the connections to the log. A transaction that is not finished stays for the next incarnation.
func (c *Committer[T]) Close() { c.client.kgo.Close() }

// crash is an error of Options.OnStep: everything stays where it is.
type crash struct{ error }

func (c crash) Unwrap() error { return c.error }

func (o Options) step(s Step) error {
	if err := o.OnStep(s); err != nil {
		return crash{fmt.Errorf("twophase: at step %s: %w", s, err)}
	}
	return nil
}

func isCrash(err error) bool {
	var c crash
	return errors.As(err, &c)
}
