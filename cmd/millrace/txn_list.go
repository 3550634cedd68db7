package main

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func newTxnList() *cobra.Command {
	var states, pattern string
	var producerIDs []int64
	var older time.Duration
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List transactional ids",
		Example: `  millrace txn list
  millrace txn list --state Ongoing --older-than 5m`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f := listFilter{states: commaList(states), producerIDs: producerIDs, pattern: pattern, olderThan: -1}
			if cmd.Flags().Changed("older-than") {
				if older < 0 {
					return badUsage("--older-than is %v, must be at least 0", older)
				}
				f.olderThan = older.Milliseconds()
			}
			if _, err := regexp.Compile(pattern); err != nil {
				return badUsage("--pattern is no regular expression: %v", err)
			}
			return withClient(cmd, func(ctx context.Context, cl *kgo.Client, _ *kadm.Client) error {
				rows, err := listTransactions(ctx, cl, f)
				if err != nil {
					return err
				}
				if err := addTimes(ctx, kadm.NewClient(cl), rows); err != nil {
					return err
				}
				p := newPrinter(cmd)
				for _, r := range rows {
					if err := p.print(r, "%s", r.text()); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&states, "state", "", "only these states, comma-separated: Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort")
	cmd.Flags().Int64SliceVar(&producerIDs, "producer-id", nil, "only these producer ids")
	cmd.Flags().DurationVar(&older, "older-than", 0, "only ids whose transaction began longer ago; ids without one count as older than any")
	cmd.Flags().StringVar(&pattern, "pattern", "", "only ids that this regular expression matches as a whole")
	return cmd
}

// listedTransaction is one row of txn list.
type listedTransaction struct {
	TransactionalID string `json:"transactionalId"`
	State           string `json:"state"`
	ProducerID      int64  `json:"producerId"`
	Coordinator     int32  `json:"coordinator"`
	// StartTimestamp and TwoPhase are of the transaction that is open or being completed.
	StartTimestamp int64 `json:"startTimestamp,omitempty"`
	TwoPhase       bool  `json:"twoPhase,omitempty"` // it has no timeout
}

func (r listedTransaction) text() string {
	s := fmt.Sprintf("%s\t%s\tproducer %d", r.TransactionalID, r.State, r.ProducerID)
	if r.StartTimestamp > 0 {
		s += fmt.Sprintf("\topen for %v", age(r.StartTimestamp))
	}
	if r.TwoPhase {
		s += "\ttwo-phase, no timeout"
	}
	return s
}

// addTimes asks since when the transactions are open that are not at rest, and whether they have a timeout. One that has
// ended, or is hidden, meanwhile is left as it is.
func addTimes(ctx context.Context, adm *kadm.Client, rows []listedTransaction) error {
	var ids []string
	for _, r := range rows {
		if r.State == "Ongoing" || strings.HasPrefix(r.State, "Prepare") {
			ids = append(ids, r.TransactionalID)
		}
	}
	if len(ids) == 0 { // kadm would describe all
		return nil
	}
	described, err := adm.DescribeTransactions(ctx, ids...)
	if err != nil {
		return err
	}
	for i := range rows {
		if d, ok := described[rows[i].TransactionalID]; ok && d.Err == nil && d.State == rows[i].State {
			rows[i].StartTimestamp, rows[i].TwoPhase = d.StartTimestamp, d.TimeoutMillis == twoPhaseTimeout
		}
	}
	return nil
}

// listFilter is what ListTransactions can filter by.
type listFilter struct {
	states      []string
	producerIDs []int64
	olderThan   int64 // ms; negative: any
	pattern     string
}

// needs is the first version of ListTransactions that has the filter. A broker of an older one would list too much.
func (f listFilter) needs() int16 {
	switch {
	case f.pattern != "":
		return 2
	case f.olderThan >= 0:
		return 1
	}
	return 0
}

// listTransactions asks every broker, for each coordinates a part of the ids. A part that can not be had is an error.
func listTransactions(ctx context.Context, cl *kgo.Client, f listFilter) ([]listedTransaction, error) {
	req := kmsg.NewPtrListTransactionsRequest()
	req.StateFilters, req.ProducerIDFilters, req.DurationFilterMillis = f.states, f.producerIDs, f.olderThan
	if f.pattern != "" {
		req.TransactionalIDPattern = &f.pattern
	}
	shards := cl.RequestSharded(ctx, req)
	if err := shardErrors("list transactions", shards); err != nil {
		return nil, err
	}
	var rows []listedTransaction
	for _, s := range shards {
		resp := s.Resp.(*kmsg.ListTransactionsResponse)
		if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
			return nil, fmt.Errorf("list transactions: broker %d: %w", s.Meta.NodeID, explained(err, ""))
		}
		if resp.Version < f.needs() {
			return nil, fmt.Errorf("list transactions: broker %d speaks version %d, the filter needs %d", s.Meta.NodeID, resp.Version, f.needs())
		}
		if len(resp.UnknownStateFilters) > 0 {
			return nil, badUsage("--state: there is no state %s", strings.Join(resp.UnknownStateFilters, ", "))
		}
		for _, t := range resp.TransactionStates {
			rows = append(rows, listedTransaction{TransactionalID: t.TransactionalID, State: t.TransactionState, ProducerID: t.ProducerID, Coordinator: s.Meta.NodeID})
		}
	}
	slices.SortFunc(rows, func(a, b listedTransaction) int { return cmp.Compare(a.TransactionalID, b.TransactionalID) })
	return rows, nil
}
