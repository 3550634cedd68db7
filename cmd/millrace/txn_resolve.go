package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/millrace/millrace/txn/twophase"
	"github.com/millrace/millrace/txn/wire"
)

func newTxnResolve() *cobra.Command {
	var commit, abort, yes bool
	var state string
	cmd := &cobra.Command{
		Use:   "resolve ID --commit|--abort",
		Short: "Decide a transaction whose program does not come back",
		Long: `Commits or aborts the open transaction of a transactional id, and shuts its producer
out. It is meant for a two-phase commit (KIP-939): such a transaction has no timeout,
and until it is decided no read_committed consumer gets past it.

The right decision is the one that the other side of the two-phase commit has taken.
Look there first: with txn/twophase on PostgreSQL that is the column state of the
table millrace_two_phase. If it names this transaction (as PRODUCER:EPOCH, see
millrace txn describe), it is committed there: --commit. If it names another one, it
is not: --abort. The wrong one leaves the two apart for good, and nothing will tell.

A program that is still running, and would have decided by itself, is told that it is
fenced. One that had not written all of its transaction yet loses the rest: with
--commit what is there becomes visible without it.

--state PRODUCER:EPOCH makes sure that it is the transaction you have looked at.`,
		Example: `  millrace txn list --state Ongoing --older-than 1h
  millrace txn describe orders
  millrace txn resolve orders --commit --state 4711:12 --yes`,
		Args: exactly(1, "a transactional id"),
		RunE: func(cmd *cobra.Command, ids []string) error {
			if commit == abort {
				return badUsage("%s needs either --commit or --abort", cmd.CommandPath())
			}
			expected, err := twophase.ParsePreparedState(state)
			if err != nil {
				return badUsage("--state is %q, must be PRODUCER:EPOCH", state)
			}
			cl, err := newClient(cmd, kgo.MaxVersions(wire.AllowInitProducerID6(kversion.Stable())))
			if err != nil {
				return err
			}
			defer cl.Close()
			if err := reach(cmd, cl); err != nil {
				return err
			}
			return within(cmd, func(ctx context.Context) error {
				return resolve(ctx, cmd, cl, ids[0], expected, commit, yes)
			})
		},
	}
	cmd.Flags().BoolVar(&commit, "commit", false, "commit it")
	cmd.Flags().BoolVar(&abort, "abort", false, "abort it")
	cmd.Flags().StringVar(&state, "state", "", "only if it is the transaction of this producer id and epoch, PRODUCER:EPOCH")
	cmd.Flags().BoolVar(&yes, "yes", false, "do it; without this it only says what it would do")
	return cmd
}

// resolvedTransaction is what txn resolve prints.
type resolvedTransaction struct {
	TransactionalID string `json:"transactionalId"`
	Committed       bool   `json:"committed"`
	ProducerID      int64  `json:"producerId"`
	ProducerEpoch   int16  `json:"producerEpoch"`
	Partitions      int    `json:"partitions"`
}

func resolve(ctx context.Context, cmd *cobra.Command, cl *kgo.Client, id string, expected twophase.PreparedState, commit, yes bool) error {
	described, err := kadm.NewClient(cl).DescribeTransactions(ctx, id)
	if err != nil {
		return err
	}
	d := described[id]
	if d.Err != nil {
		return fmt.Errorf("transactional id %s: %w", id, explained(d.Err, ""))
	}
	now := twophase.NewPreparedState(d.ProducerID, d.ProducerEpoch)
	row := rowOf(d)
	switch {
	case d.State != "Ongoing":
		return fmt.Errorf("transactional id %s has no open transaction, it is %s", id, d.State)
	case expected.Any() && expected != now:
		return fmt.Errorf("transactional id %s: the open transaction is %s, not %s", id, now, expected)
	case !yes:
		return badUsage("this would %s transaction %s of %s on %d partitions, open for %v, and shut its producer out for good. "+
			"If the other side of its two-phase commit has decided, or will decide, the other way round, the two stay apart; "+
			"see --help for where to look. Say --yes to do it", verb(commit), now, id, len(row.Partitions), age(d.StartTimestamp))
	}
	if commit {
		err = commitKept(ctx, cl, id, now, d.TimeoutMillis)
	} else {
		err = abortByTakeOver(ctx, cl, id)
	}
	if err != nil {
		return err
	}
	done := resolvedTransaction{id, commit, d.ProducerID, d.ProducerEpoch, len(row.Partitions)}
	return newPrinter(cmd).print(done, "%sed transaction %s of %s on %d partitions", commitOrAbort(commit), now, id, len(row.Partitions))
}

func verb(commit bool) string {
	if commit {
		return "commit"
	}
	return "abort"
}

// commitOrAbort is the verb as its past form begins.
func commitOrAbort(commit bool) string {
	if commit {
		return "committ"
	}
	return "abort"
}

// initProducer takes a transactional id over; the request decides whether an open transaction stays.
func initProducer(ctx context.Context, cl *kgo.Client, req *wire.InitProducerIDRequest) (*wire.InitProducerIDResponse, error) {
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.CoordinatorType, find.CoordinatorKey, find.CoordinatorKeys = 1, *req.TransactionalID, []string{*req.TransactionalID}
	for {
		found, err := find.RequestWith(ctx, cl)
		if err != nil {
			return nil, err
		}
		node, code := found.NodeID, found.ErrorCode
		if len(found.Coordinators) > 0 {
			node, code = found.Coordinators[0].NodeID, found.Coordinators[0].ErrorCode
		}
		if code == 0 {
			r, err := cl.Broker(int(node)).RetriableRequest(ctx, req)
			if err != nil {
				return nil, err
			}
			resp := r.(*wire.InitProducerIDResponse)
			if code = resp.ErrorCode; code == 0 {
				return resp, nil
			}
		}
		if err := kerr.ErrorForCode(code); !kerr.IsRetriable(err) && code != kerr.ConcurrentTransactions.Code {
			return nil, fmt.Errorf("transactional id %s: %w", *req.TransactionalID, explained(err, ""))
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// abortByTakeOver does what a new incarnation does, so it works with every broker.
func abortByTakeOver(ctx context.Context, cl *kgo.Client, id string) error {
	req := wire.NewInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis = &id, 60_000
	_, err := initProducer(ctx, cl, req)
	return err
}

// commitKept takes the transaction over undecided, looks whether it is still the same, and commits it.
func commitKept(ctx context.Context, cl *kgo.Client, id string, want twophase.PreparedState, timeoutMs int32) error {
	req := wire.NewInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis, req.KeepPreparedTxn = &id, 60_000, true
	req.Enable2PC = timeoutMs == twoPhaseTimeout
	resp, err := initProducer(ctx, cl, req)
	if err != nil {
		if errors.Is(err, kerr.UnsupportedVersion) || errors.Is(err, kerr.TransactionalIDAuthorizationFailed) {
			return fmt.Errorf("%w: to commit another's transaction the broker needs transaction.two.phase.commit.enable", err)
		}
		return err
	}
	if resp.GetVersion() < 6 {
		return fmt.Errorf("the broker speaks InitProducerId up to version %d; to commit another's transaction it needs 6 (KIP-939)", resp.GetVersion())
	}
	if kept := twophase.NewPreparedState(resp.OngoingTxnProducerID, resp.OngoingTxnProducerEpoch); kept != want {
		return fmt.Errorf("transactional id %s: the open transaction was %s and is now %q; nothing is decided", id, want, kept)
	}
	end := kmsg.NewPtrEndTxnRequest()
	end.TransactionalID, end.ProducerID, end.ProducerEpoch, end.Commit = id, resp.ProducerID, resp.ProducerEpoch, true
	ended, err := end.RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	if err := kerr.ErrorForCode(ended.ErrorCode); err != nil {
		return fmt.Errorf("commit of transactional id %s: %w", id, explained(err, ""))
	}
	return nil
}
