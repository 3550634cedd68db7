package twophase

import (
	"context"
	"errors"
	"fmt"
)

// Decider is a store that decides: what it commits is committed. It keeps one cell for each transactional id, with the owner
// and the state of the last transaction that committed.
type Decider[T any] interface {
	// Claim writes owner into the cell of id and returns the state in it. When it returns, no transaction of an earlier owner
	// can commit any more, and those that have are in the state. An owner that is known to be older than the one in the cell is
	// refused with ErrFenced; see Older.
	Claim(ctx context.Context, id, owner string) (last PreparedState, err error)
	// Commit runs work in a transaction, writes the state that work returns into the cell, and commits. The write compares the
	// owner, in the store's own atomic step: another owner's transaction must fail with ErrFenced. A state that names nothing
	// leaves the old one in place, but the owner is compared all the same.
	//
	// An error of work comes back as it is, and then nothing was committed. An error whose transaction may have been
	// committed is ErrUnknownOutcome; every other says that it was not.
	Commit(ctx context.Context, id, owner string, work func(T) (PreparedState, error)) error
}

// Older says that owner a is certainly an earlier incarnation than b. Owners are states of the log at the time of the claim;
// those with the same producer id are in order, others can not be told apart.
func Older(a, b string) bool {
	x, err1 := ParsePreparedState(a)
	y, err2 := ParsePreparedState(b)
	return err1 == nil && err2 == nil && x.Any() && y.Any() && x.producerID == y.producerID && x.epoch < y.epoch
}

type storeDecides[T any] struct {
	client *client
	store  Decider[T]
	o      Options
	p      *producer
	owner  string
}

// OpenStoreDecides opens a committer whose store decides, after it has finished what an earlier incarnation left. The log
// must offer two-phase commit (KIP-939).
func OpenStoreDecides[T any](ctx context.Context, cluster Cluster, store Decider[T], o Options) (*Committer[T], error) {
	return open(ctx, cluster, o, true, func(cl *client, o Options) way[T] {
		return &storeDecides[T]{client: cl, store: store, o: o}
	})
}

// recover first fences earlier incarnations in the log, then in the store. After both the state in the store is final, and
// tells what to do with the transaction that was kept.
func (w *storeDecides[T]) recover(ctx context.Context) error {
	now, kept, err := w.client.initProducerID(ctx, w.o.Timeout, true, true)
	if err != nil {
		return err
	}
	owner := now.String()
	last, err := w.store.Claim(ctx, w.o.TransactionalID, owner)
	if err != nil {
		return fmt.Errorf("twophase: %s: claim: %w", w.o.TransactionalID, err)
	}
	if kept.Any() {
		commit := kept == last
		w.o.Logger.Info("finishing the transaction of an earlier incarnation", "transactional_id", w.o.TransactionalID,
			"transaction", kept.String(), "commit", commit)
		if now, err = w.client.endTxn(ctx, now, commit); err != nil {
			return err
		}
	}
	w.owner, w.p = owner, newProducer(w.client, now)
	return nil
}

func (w *storeDecides[T]) do(ctx context.Context, work func(*Txn[T]) error) error {
	worked := false
	err := w.store.Commit(ctx, w.o.TransactionalID, w.owner, func(t T) (PreparedState, error) {
		s, err := w.prepare(ctx, t, work)
		worked = err == nil
		return s, err
	})
	switch {
	case isCrash(err):
		return err
	case err != nil && worked && errors.Is(err, ErrUnknownOutcome):
		return fmt.Errorf("%w: %w", ErrUnfinished, err)
	case err != nil:
		return w.abort(ctx, err)
	}
	if err := w.o.step(StepDecided); err != nil {
		return err
	}
	if w.p.sent {
		next, err := w.client.endTxn(ctx, w.p.now, true)
		if err != nil {
			return fmt.Errorf("%w: the store has committed: %w", ErrUnfinished, err)
		}
		w.p.begin(next)
	}
	return w.o.step(StepDone)
}

// prepare lets the program write to both sides. The log has prepared when its records are acknowledged.
func (w *storeDecides[T]) prepare(ctx context.Context, t T, work func(*Txn[T]) error) (PreparedState, error) {
	if err := w.o.step(StepWork); err != nil {
		return PreparedState{}, err
	}
	if err := work(&Txn[T]{Store: t, p: w.p}); err != nil {
		return PreparedState{}, err
	}
	if err := w.o.step(StepWritten); err != nil {
		return PreparedState{}, err
	}
	if err := w.p.flush(ctx); err != nil {
		return PreparedState{}, err
	}
	if err := w.o.step(StepPrepared); err != nil || !w.p.sent {
		return PreparedState{}, err
	}
	return w.p.now, nil
}

// abort ends the log's side of a transaction that the store has not committed.
func (w *storeDecides[T]) abort(ctx context.Context, reason error) error {
	next, err := w.p.abort(ctx)
	if err != nil {
		return fmt.Errorf("%w: aborting after %w: %w", ErrUnfinished, reason, err)
	}
	w.p.begin(next)
	if errors.Is(reason, ErrFenced) {
		return reason
	}
	return fmt.Errorf("%w: %w", ErrAborted, reason)
}

// sweep has nothing to do: a store that decides has nothing prepared.
func (w *storeDecides[T]) sweep(context.Context) error { return nil }
