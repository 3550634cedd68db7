package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func newTxnAbort() *cobra.Command {
	var partition int32
	var offset int64
	var yes bool
	cmd := &cobra.Command{
		Use:   "abort TOPIC --partition N --start-offset N",
		Short: "Abort a transaction that hangs, on one partition",
		Long: `Writes the abort marker of a transaction that millrace txn hanging has found. Its
records on this partition are then skipped by read_committed consumers, for good.

It acts on the partition alone. So a transaction that its coordinator knows is
refused: the other partitions might be committed. Such a one ends by itself, by its
producer or its timeout.`,
		Example: `  millrace txn hanging
  millrace txn abort orders --partition 2 --start-offset 4711 --yes`,
		Args: exactly(1, "the name of a topic"),
		RunE: func(cmd *cobra.Command, names []string) error {
			for _, flag := range []string{"partition", "start-offset"} {
				if !cmd.Flags().Changed(flag) {
					return badUsage("%s needs --%s, see millrace txn hanging", cmd.CommandPath(), flag)
				}
			}
			tp := topicPartition{names[0], partition}
			return withClient(cmd, func(ctx context.Context, cl *kgo.Client, adm *kadm.Client) error {
				o, err := toAbort(ctx, cmd, cl, adm, tp, offset)
				if err != nil {
					return err
				}
				if !yes {
					return badUsage("this would abort %s of producer %d, epoch %d, from offset %d on, for good (%s); say --yes to do it",
						tp, o.ProducerID, o.ProducerEpoch, o.StartOffset, o.Reason)
				}
				if err := abort(ctx, adm, o); err != nil {
					return err
				}
				return newPrinter(cmd).print(o, "aborted %s from offset %d, producer %d epoch %d", tp, o.StartOffset, o.ProducerID, o.ProducerEpoch)
			})
		},
	}
	cmd.Flags().Int32Var(&partition, "partition", 0, "the partition")
	cmd.Flags().Int64Var(&offset, "start-offset", 0, "offset of the transaction's first record")
	cmd.Flags().BoolVar(&yes, "yes", false, "do it; without this it only says what it would do")
	return cmd
}

// toAbort finds the transaction and makes sure that it hangs.
func toAbort(ctx context.Context, cmd *cobra.Command, cl *kgo.Client, adm *kadm.Client, tp topicPartition, offset int64) (openTransaction, error) {
	topics, err := existing(ctx, adm, brokers(cmd), []string{tp.Topic})
	if err != nil {
		return openTransaction{}, err
	}
	if _, ok := topics[tp.Topic].Partitions[tp.Partition]; !ok {
		return openTransaction{}, fmt.Errorf("topic %s has no partition %d", tp.Topic, tp.Partition)
	}
	set := kadm.TopicsSet{}
	set.Add(tp.Topic, tp.Partition)
	isIt := func(o openTransaction) bool { return o.topicPartition == tp && o.StartOffset == offset }
	found, err := hanging(ctx, cl, adm, set)
	if err != nil {
		return openTransaction{}, err
	}
	if i := slices.IndexFunc(found, isIt); i >= 0 {
		return found[i], nil
	}
	open, err := openTransactions(ctx, adm, set)
	if err != nil {
		return openTransaction{}, err
	}
	if slices.ContainsFunc(open, isIt) {
		return openTransaction{}, fmt.Errorf("the transaction of %s from offset %d does not hang: its coordinator knows it and will end it on all of its partitions", tp, offset)
	}
	return openTransaction{}, fmt.Errorf("%s has no open transaction from offset %d", tp, offset)
}

// abort writes the marker, with the epoch of the producer: no other has its records.
func abort(ctx context.Context, adm *kadm.Client, o openTransaction) error {
	set := kadm.TopicsSet{}
	set.Add(o.Topic, o.Partition)
	written, err := adm.WriteTxnMarkers(ctx, kadm.TxnMarkers{
		ProducerID: o.ProducerID, ProducerEpoch: o.ProducerEpoch, Commit: false,
		CoordinatorEpoch: max(o.CoordinatorEpoch, 0), // -1: no marker of it is in the partition yet
		Topics:           set,
	})
	if err != nil {
		return err
	}
	answered := false
	var errs []error
	written.EachPartition(func(r kadm.TxnMarkersPartitionResponse) {
		answered = true
		if r.Err != nil {
			errs = append(errs, fmt.Errorf("marker of %s: %w", topicPartition{r.Topic, r.Partition}, explained(r.Err, "")))
		}
	})
	if !answered {
		return fmt.Errorf("marker of %s: the broker has not said that it is written", o.topicPartition)
	}
	return errors.Join(errs...)
}
