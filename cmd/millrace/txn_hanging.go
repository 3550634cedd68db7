package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func newTxnHanging() *cobra.Command {
	var older time.Duration
	cmd := &cobra.Command{
		Use:   "hanging [TOPIC...]",
		Short: "Find transactions that nobody will end",
		Long: `Finds open transactions that no coordinator knows of, or whose coordinator does not
have the partition in them. Nobody will ever end them: the last stable offset stays
before them, read_committed consumers wait, and compaction leaves what is behind.
Without topics all are looked at, those of the brokers themselves too.

Brokers that verify the first record of a transaction (KIP-890) do not let them
arise. They come from older ones, or with the data of an older one.

A transaction of an unhurried producer is not among them, however old it is: see
millrace txn list --older-than.`,
		Example: `  millrace txn hanging
  millrace txn hanging orders --older-than 15m`,
		RunE: func(cmd *cobra.Command, names []string) error {
			if older < 0 {
				return badUsage("--older-than is %v, must be at least 0", older)
			}
			return withClient(cmd, func(ctx context.Context, cl *kgo.Client, adm *kadm.Client) error {
				set, err := partitionsOf(ctx, cmd, adm, names)
				if err != nil {
					return err
				}
				found, err := hanging(ctx, cl, adm, set)
				if err != nil {
					return err
				}
				p := newPrinter(cmd)
				for _, o := range found {
					if older > 0 && time.Since(time.UnixMilli(o.LastTimestamp)) < older {
						continue
					}
					if err := p.print(o, "%s\t%s", o, o.Reason); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().DurationVar(&older, "older-than", 0, "only those whose last record is dated longer ago")
	return cmd
}
