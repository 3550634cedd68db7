package twophase

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/millrace/millrace/txn/session"
)

// Participant is a store that does what the log decides: it can prepare a transaction, which then survives a crash and
// commits or rolls back when it is told to, from any session.
type Participant[T any] interface {
	// Prepare runs work in a transaction and prepares it under the name gid. An error of work comes back as it is, and then
	// nothing was prepared. An error whose transaction may be prepared is ErrUnknownOutcome; every other says that it is not.
	Prepare(ctx context.Context, gid string, work func(T) error) error
	// Finish commits or rolls back. A gid that is not there is no error: it is finished.
	Finish(ctx context.Context, gid string, commit bool) error
	// Prepared lists the gids that begin with prefix.
	Prepared(ctx context.Context, prefix string) ([]string, error)
}

type logDecides[T any] struct {
	client *client
	store  Participant[T]
	o      Options
	p      *producer
	count  int // transactions of this incarnation
}

// OpenLogDecides opens a committer whose log decides, after it has finished what an earlier incarnation left. It needs no
// two-phase commit of the log, only transactions of version 2 (KIP-890), so Apache Kafka 4 will do.
func OpenLogDecides[T any](ctx context.Context, cluster Cluster, store Participant[T], o Options) (*Committer[T], error) {
	return open(ctx, cluster, o, false, func(cl *client, o Options) way[T] {
		return &logDecides[T]{client: cl, store: store, o: o}
	})
}

// prefix begins the gid of every transaction of the transactional id, and of no other id.
func (w *logDecides[T]) prefix() string { return "millrace/" + w.o.TransactionalID + "//" }

// recover fences earlier incarnations in the log, which ends their transaction there one way or the other, reads which of
// them was committed last, and does the same in the store.
func (w *logDecides[T]) recover(ctx context.Context) error {
	now, _, err := w.client.initProducerID(ctx, w.o.Timeout, false, false)
	if err != nil {
		return err
	}
	w.p = newProducer(w.client, now)
	if err := w.client.createTopic(ctx, w.o.DecisionTopic, map[string]string{"cleanup.policy": "compact"}); err != nil {
		return err
	}
	return w.finish(ctx)
}

// finish ends whatever is prepared in the store. Only the owner may do it, and it must have been the owner after the list
// was read: then all on the list are of its own or of earlier incarnations, whose transactions are decided. A gid of a newer
// incarnation, which may still commit, can not be on it.
func (w *logDecides[T]) finish(ctx context.Context) error {
	committed, err := w.client.lastDecision(ctx, w.o.DecisionTopic, w.o.TransactionalID)
	if err != nil {
		return err
	}
	gids, err := w.store.Prepared(ctx, w.prefix())
	if err != nil {
		return fmt.Errorf("twophase: %s: prepared transactions: %w", w.o.TransactionalID, err)
	}
	if len(gids) == 0 {
		return nil
	}
	owner, err := w.client.owner(ctx)
	switch {
	case err != nil:
		return err
	case owner != w.p.now:
		return fmt.Errorf("%w: it is %s, this one is %s", ErrFenced, owner, w.p.now)
	}
	for _, gid := range gids {
		commit := gid == committed
		w.o.Logger.Info("finishing a prepared transaction", "transactional_id", w.o.TransactionalID, "gid", gid, "commit", commit)
		if err := w.store.Finish(ctx, gid, commit); err != nil {
			return fmt.Errorf("twophase: %s: finish %s: %w", w.o.TransactionalID, gid, err)
		}
	}
	return nil
}

func (w *logDecides[T]) sweep(ctx context.Context) error { return w.finish(ctx) }

func (w *logDecides[T]) do(ctx context.Context, work func(*Txn[T]) error) error {
	w.count++
	gid := fmt.Sprintf("%s%s/%d", w.prefix(), w.p.now, w.count)
	err := w.store.Prepare(ctx, gid, func(t T) error {
		if err := w.o.step(StepWork); err != nil {
			return err
		}
		if err := work(&Txn[T]{Store: t, p: w.p}); err != nil {
			return err
		}
		return w.o.step(StepWritten)
	})
	if err == nil {
		err = w.vote(ctx, gid)
	}
	if isCrash(err) {
		return err
	}
	if err != nil {
		return w.abort(ctx, gid, err)
	}
	return w.decide(ctx, gid)
}

// vote writes the decision into the transaction that makes it one, and waits until the log has all of it.
func (w *logDecides[T]) vote(ctx context.Context, gid string) error {
	err := w.p.send(ctx, session.Record{
		Topic: w.o.DecisionTopic, Partition: 0, Key: []byte(w.o.TransactionalID), Value: []byte(gid),
	})
	if err == nil {
		err = w.p.flush(ctx)
	}
	if err == nil {
		err = w.o.step(StepPrepared)
	}
	return err
}

// decide commits the log, then the store.
func (w *logDecides[T]) decide(ctx context.Context, gid string) error {
	next, err := w.client.endTxn(ctx, w.p.now, true)
	switch {
	case errors.Is(err, ErrFenced):
		return w.fenced(ctx, gid, err)
	case errors.Is(err, kerr.InvalidTxnState), errors.Is(err, kerr.TransactionAbortable):
		// It took longer than its timeout, so the coordinator has aborted it.
		return w.abort(ctx, gid, err)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUnfinished, err)
	}
	if err := w.o.step(StepDecided); err != nil {
		return err
	}
	if err := w.store.Finish(ctx, gid, true); err != nil {
		return fmt.Errorf("%w: the log has committed: %w", ErrUnfinished, err)
	}
	w.p.begin(next)
	return w.o.step(StepDone)
}

// abort ends both sides of a transaction that the log has not committed. If the log does not say that it is aborted, the
// store's side stays, for whoever recovers.
func (w *logDecides[T]) abort(ctx context.Context, gid string, reason error) error {
	next, err := w.p.abort(ctx)
	if errors.Is(err, ErrFenced) {
		return w.fenced(ctx, gid, err)
	}
	if err == nil {
		err = w.store.Finish(ctx, gid, false)
	}
	if err != nil {
		return fmt.Errorf("%w: aborting after %w: %w", ErrUnfinished, reason, err)
	}
	w.p.begin(next)
	return fmt.Errorf("%w: %w", ErrAborted, reason)
}

// fenced ends what this incarnation has prepared after a newer one had looked for it. The log is decided by then, and says how.
func (w *logDecides[T]) fenced(ctx context.Context, gid string, reason error) error {
	committed, err := w.client.lastDecision(ctx, w.o.DecisionTopic, w.o.TransactionalID)
	if err != nil {
		return errors.Join(reason, err)
	}
	// Another decision may stand behind this one's, but only of an incarnation that has finished this one first.
	return errors.Join(reason, w.store.Finish(ctx, gid, committed == gid))
}
