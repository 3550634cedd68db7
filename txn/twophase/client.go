package twophase

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/millrace/millrace/txn/wire"
)

// client sends requests to the brokers that they are for. The library's own producer is not used: it would ask for
// producer ids of its own.
type client struct {
	kgo     *kgo.Client
	cluster Cluster
	id      string // transactional id
}

func newClient(c Cluster, o Options) (*client, error) {
	cl, err := kgo.NewClient(
		kgo.SeedBrokers(c.Seeds()...), kgo.Dialer(c.Dial), kgo.ClientID(o.ClientID),
		kgo.MaxVersions(wire.AllowInitProducerID6(kversion.Stable())),
		kgo.RetryBackoffFn(func(tries int) time.Duration {
			return min(time.Duration(tries)*20*time.Millisecond, 500*time.Millisecond)
		}),
		kgo.MetadataMinAge(10*time.Millisecond),
	)
	if err != nil {
		return nil, fmt.Errorf("twophase: %w", err)
	}
	return &client{kgo: cl, cluster: c, id: o.TransactionalID}, nil
}

// support asks what the cluster speaks: every end of a transaction must raise the epoch (KIP-890), or a late request of one
// transaction could decide the next.
func (c *client) support(ctx context.Context, twoPhase bool) error {
	return c.retry(ctx, "api versions", func() error {
		req := kmsg.NewPtrApiVersionsRequest()
		req.ClientSoftwareName, req.ClientSoftwareVersion = "millrace", "1"
		resp, err := req.RequestWith(ctx, c.kgo)
		if err != nil {
			return err
		}
		if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
			return err
		}
		level := int16(0)
		for _, f := range resp.FinalizedFeatures {
			if f.Name == "transaction.version" {
				level = f.MaxVersionLevel
			}
		}
		if level < 2 {
			return fmt.Errorf("%w: transaction.version is %d, 2 is needed", ErrUnsupported, level)
		}
		for _, k := range resp.ApiKeys {
			if twoPhase && k.ApiKey == int16(kmsg.InitProducerID) && k.MaxVersion < 6 {
				return fmt.Errorf("%w: InitProducerId goes up to version %d, 6 is needed (KIP-939)", ErrUnsupported, k.MaxVersion)
			}
		}
		return nil
	})
}

// permanent wraps an error that no repetition helps against.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// passing says that a code goes away by itself. That another step of the same id is under way is such, though the list of the
// library says otherwise: Apache Kafka answers it to an InitProducerId that has just begun to abort.
func passing(e *kerr.Error) bool { return e.Retriable || e.Code == kerr.ConcurrentTransactions.Code }

// retry repeats f until it succeeds, fails for good, or ctx ends.
func (c *client) retry(ctx context.Context, what string, f func() error) error {
	pause := 5 * time.Millisecond
	for {
		err := f()
		if err == nil {
			return nil
		}
		var ke *kerr.Error
		var p permanent
		if errors.As(err, &p) || errors.As(err, &ke) && !passing(ke) || errors.Is(err, ErrUnsupported) || errors.Is(err, ErrFenced) {
			return fmt.Errorf("twophase: %s: %s: %w", c.id, what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("twophase: %s: %s: %w, last: %w", c.id, what, ctx.Err(), err)
		case <-time.After(pause):
			pause = min(2*pause, 200*time.Millisecond)
		}
	}
}

// coordinator asks the coordinator of a transactional id, or of a group, once.
func (c *client) coordinator(ctx context.Context, kind int8, key string, req kmsg.Request) (kmsg.Response, error) {
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.CoordinatorType, find.CoordinatorKey, find.CoordinatorKeys = kind, key, []string{key}
	found, err := find.RequestWith(ctx, c.kgo)
	if err != nil {
		return nil, err
	}
	node, code := found.NodeID, found.ErrorCode
	if len(found.Coordinators) > 0 {
		node, code = found.Coordinators[0].NodeID, found.Coordinators[0].ErrorCode
	}
	if err := kerr.ErrorForCode(code); err != nil {
		return nil, err
	}
	return c.kgo.Broker(int(node)).Request(ctx, req)
}

// Kinds of coordinators.
const (
	groupCoordinator int8 = 0
	txnCoordinator   int8 = 1
)

// who is the error of a code, and ErrFenced for those that say that somebody else is the owner.
func who(code int16) error {
	err := kerr.ErrorForCode(code)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kerr.ProducerFenced), errors.Is(err, kerr.InvalidProducerEpoch), errors.Is(err, kerr.InvalidProducerIDMapping):
		return fmt.Errorf("%w: %w", ErrFenced, err)
	}
	return err
}

// initProducerID takes the transactional id over. kept is the transaction that was left open, if keep says so.
func (c *client) initProducerID(ctx context.Context, timeout time.Duration, twoPhase, keep bool) (now, kept PreparedState, err error) {
	err = c.retry(ctx, "init producer id", func() error {
		req := wire.NewInitProducerIDRequest()
		req.TransactionalID, req.TransactionTimeoutMillis = &c.id, int32(timeout.Milliseconds())
		req.Enable2PC, req.KeepPreparedTxn = twoPhase, keep
		r, err := c.coordinator(ctx, txnCoordinator, c.id, req)
		if err != nil {
			return err
		}
		resp := r.(*wire.InitProducerIDResponse)
		if (twoPhase || keep) && resp.GetVersion() < 6 {
			return fmt.Errorf("%w: InitProducerId version %d, 6 is needed (KIP-939)", ErrUnsupported, resp.GetVersion())
		}
		if resp.ErrorCode == kerr.TransactionalIDAuthorizationFailed.Code && twoPhase {
			return fmt.Errorf("%w (is transaction.two.phase.commit.enable set on the broker, and TWO_PHASE_COMMIT allowed?)", kerr.TransactionalIDAuthorizationFailed)
		}
		if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
			return err
		}
		now = NewPreparedState(resp.ProducerID, resp.ProducerEpoch)
		kept = NewPreparedState(resp.OngoingTxnProducerID, resp.OngoingTxnProducerEpoch)
		return nil
	})
	return now, kept, err
}

// endTxn decides. A repeat after a lost answer is answered as the first.
func (c *client) endTxn(ctx context.Context, owner PreparedState, commit bool) (next PreparedState, err error) {
	err = c.retry(ctx, "end of transaction", func() error {
		req := kmsg.NewPtrEndTxnRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = c.id, owner.ProducerID(), owner.Epoch(), commit
		r, err := c.coordinator(ctx, txnCoordinator, c.id, req)
		if err != nil {
			return err
		}
		resp := r.(*kmsg.EndTxnResponse)
		if err := who(resp.ErrorCode); err != nil {
			return err
		}
		if next = NewPreparedState(resp.ProducerID, resp.ProducerEpoch); !next.Any() {
			return permanent{fmt.Errorf("%w: EndTxn version %d names no next epoch, 5 is needed", ErrUnsupported, resp.GetVersion())}
		}
		return nil
	})
	return next, err
}

// owner asks the coordinator who has the transactional id now.
func (c *client) owner(ctx context.Context) (now PreparedState, err error) {
	err = c.retry(ctx, "describe transaction", func() error {
		req := kmsg.NewPtrDescribeTransactionsRequest()
		req.TransactionalIDs = []string{c.id}
		r, err := c.coordinator(ctx, txnCoordinator, c.id, req)
		if err != nil {
			return err
		}
		for _, t := range r.(*kmsg.DescribeTransactionsResponse).TransactionStates {
			if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
				return err
			}
			now = NewPreparedState(t.ProducerID, t.ProducerEpoch)
		}
		return nil
	})
	return now, err
}
