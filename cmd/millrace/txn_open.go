package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// openTransaction is a transaction that a partition holds open, as its leader tells.
type openTransaction struct {
	topicPartition
	StartOffset      int64  `json:"startOffset"`
	ProducerID       int64  `json:"producerId"`
	ProducerEpoch    int16  `json:"producerEpoch"`
	CoordinatorEpoch int32  `json:"coordinatorEpoch"`
	LastTimestamp    int64  `json:"lastTimestamp"`
	TransactionalID  string `json:"transactionalId,omitempty"`
	Reason           string `json:"reason,omitempty"` // why it hangs
}

func (o openTransaction) String() string {
	return fmt.Sprintf("%s\toffset %d\tproducer %d epoch %d\tlast record %s",
		o.topicPartition, o.StartOffset, o.ProducerID, o.ProducerEpoch, moment(o.LastTimestamp))
}

// openTransactions asks the leaders of the partitions what is open there.
func openTransactions(ctx context.Context, adm *kadm.Client, set kadm.TopicsSet) ([]openTransaction, error) {
	topics, err := adm.DescribeProducers(ctx, set)
	if err != nil {
		return nil, err
	}
	var open []openTransaction
	for _, p := range topics.SortedPartitions() {
		if p.Err != nil {
			return nil, fmt.Errorf("producers of %s: %w", topicPartition{p.Topic, p.Partition}, explained(p.Err, p.ErrMessage))
		}
		for _, a := range p.ActiveProducers.Sorted() {
			if a.CurrentTxnStartOffset >= 0 {
				open = append(open, openTransaction{
					topicPartition: topicPartition{a.Topic, a.Partition}, StartOffset: a.CurrentTxnStartOffset,
					ProducerID: a.ProducerID, ProducerEpoch: a.ProducerEpoch, CoordinatorEpoch: a.CoordinatorEpoch,
					LastTimestamp: a.LastTimestamp,
				})
			}
		}
	}
	return open, nil
}

// partitionsOf lists the partitions of topics, of all topics when none is named.
func partitionsOf(ctx context.Context, cmd *cobra.Command, adm *kadm.Client, names []string) (kadm.TopicsSet, error) {
	if len(names) == 0 {
		topics, err := adm.ListTopicsWithInternal(ctx)
		if err != nil {
			return nil, err
		}
		return topics.TopicsSet(), nil
	}
	topics, err := existing(ctx, adm, brokers(cmd), names)
	if err != nil {
		return nil, err
	}
	return topics.TopicsSet(), nil
}

// hanging returns the open transactions that nobody will end: no coordinator knows their producer, or none has the
// partition in a transaction of it. What ended meanwhile is not among them, for the partitions are asked once more.
func hanging(ctx context.Context, cl *kgo.Client, adm *kadm.Client, set kadm.TopicsSet) ([]openTransaction, error) {
	open, err := openTransactions(ctx, adm, set)
	if err != nil || len(open) == 0 {
		return nil, err
	}
	owners, err := ownersOf(ctx, cl, adm, open)
	if err != nil {
		return nil, err
	}
	again := kadm.TopicsSet{}
	var suspects []openTransaction
	for _, o := range open {
		if o.TransactionalID, o.Reason = owners.judge(o); o.Reason != "" {
			suspects = append(suspects, o)
			again.Add(o.Topic, o.Partition)
		}
	}
	if len(suspects) == 0 {
		return nil, nil
	}
	still, err := openTransactions(ctx, adm, again)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(suspects, func(o openTransaction) bool {
		return !slices.ContainsFunc(still, func(s openTransaction) bool {
			return s.topicPartition == o.topicPartition && s.StartOffset == o.StartOffset && s.ProducerID == o.ProducerID
		})
	}), nil
}

// owners are the transactional ids that coordinators know, by producer id.
type owners map[int64]kadm.DescribedTransaction

func ownersOf(ctx context.Context, cl *kgo.Client, adm *kadm.Client, open []openTransaction) (owners, error) {
	var pids []int64
	for _, o := range open {
		pids = append(pids, o.ProducerID)
	}
	slices.Sort(pids)
	rows, err := listTransactions(ctx, cl, listFilter{producerIDs: slices.Compact(pids), olderThan: -1})
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, r := range rows {
		ids = append(ids, r.TransactionalID)
	}
	if len(ids) == 0 { // kadm would describe all
		return owners{}, nil
	}
	described, err := adm.DescribeTransactions(ctx, ids...)
	if err != nil {
		return nil, err
	}
	by := owners{}
	for _, d := range described.Sorted() {
		if d.Err != nil {
			return nil, fmt.Errorf("transactional id %s: %w", d.TxnID, explained(d.Err, ""))
		}
		by[d.ProducerID] = d
	}
	return by, nil
}

// judge says whose an open transaction is, and why it hangs if it does.
func (w owners) judge(o openTransaction) (id, reason string) {
	d, ok := w[o.ProducerID]
	switch {
	case !ok:
		return "", "no coordinator knows its producer"
	case !slices.Contains([]string{"Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"}, d.State):
		return d.TxnID, fmt.Sprintf("transactional id %s has no transaction, it is %s", d.TxnID, d.State)
	case !d.Topics.Lookup(o.Topic, o.Partition):
		return d.TxnID, fmt.Sprintf("the transaction of %s does not have the partition", d.TxnID)
	}
	return d.TxnID, ""
}
