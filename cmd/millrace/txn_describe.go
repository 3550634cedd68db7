package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
)

// describedTransaction is one transactional id in full.
type describedTransaction struct {
	TransactionalID string           `json:"transactionalId"`
	State           string           `json:"state"`
	ProducerID      int64            `json:"producerId"`
	ProducerEpoch   int16            `json:"producerEpoch"`
	TimeoutMs       int32            `json:"timeoutMs"`
	StartTimestamp  int64            `json:"startTimestamp"` // -1: none since the producer began
	Coordinator     int32            `json:"coordinator"`
	Partitions      []topicPartition `json:"partitions"`
}

func newTxnDescribe() *cobra.Command {
	return &cobra.Command{
		Use:   "describe ID...",
		Short: "Show transactional ids with the partitions of their transaction",
		Long: `Shows transactional ids with their producer, and the partitions of the transaction
that is open. While one is being completed, only the partitions are shown whose
marker is not written yet.`,
		Example: "  millrace txn describe payments",
		Args:    atLeast(1, "a transactional id"),
		RunE: func(cmd *cobra.Command, ids []string) error {
			return withAdmin(cmd, func(ctx context.Context, adm *kadm.Client) error {
				described, err := adm.DescribeTransactions(ctx, ids...)
				if err != nil {
					return err
				}
				p := newPrinter(cmd)
				var errs []error
				for _, id := range ids {
					d := described[id]
					if d.Err != nil {
						errs = append(errs, fmt.Errorf("transactional id %s: %w", id, explained(d.Err, "")))
						continue
					}
					row := rowOf(d)
					if err := p.print(row, "%s", row.text()); err != nil {
						return err
					}
				}
				return errors.Join(errs...)
			})
		},
	}
}

func rowOf(d kadm.DescribedTransaction) describedTransaction {
	row := describedTransaction{
		TransactionalID: d.TxnID, State: d.State, ProducerID: d.ProducerID, ProducerEpoch: d.ProducerEpoch,
		TimeoutMs: d.TimeoutMillis, StartTimestamp: d.StartTimestamp, Coordinator: d.Coordinator, Partitions: []topicPartition{},
	}
	for _, t := range d.Topics.Sorted() {
		for _, p := range t.Partitions {
			row.Partitions = append(row.Partitions, topicPartition{t.Topic, p})
		}
	}
	return row
}

func (d describedTransaction) text() string {
	var b strings.Builder
	timeout := (time.Duration(d.TimeoutMs) * time.Millisecond).String()
	if d.TimeoutMs == twoPhaseTimeout {
		timeout = "none (two-phase)"
	}
	fmt.Fprintf(&b, "%s\t%s\tproducer %d epoch %d\ttimeout %s", d.TransactionalID, d.State, d.ProducerID, d.ProducerEpoch, timeout)
	if d.StartTimestamp >= 0 {
		fmt.Fprintf(&b, "\tbegan %s", moment(d.StartTimestamp))
	}
	for _, tp := range d.Partitions {
		fmt.Fprintf(&b, "\n  %s", tp)
	}
	return b.String()
}
