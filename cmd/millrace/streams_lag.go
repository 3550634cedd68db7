package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/streams/inspect"
)

func newStreamsLag() *cobra.Command {
	var topics bool
	cmd := &cobra.Command{
		Use:   "lag APPLICATION",
		Short: "Show how far an application is behind, by sub-topology and partition",
		Long: `Shows for each partition that an application reads where it has committed and where
a committed reader's end is. The lag is in offsets: markers of transactions count too.`,
		Example: `  millrace streams lag shop
  millrace streams lag shop --internal-topics`,
		Args: exactly(1, "an application"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withInspector(cmd, func(ctx context.Context, i *inspect.Inspector) error {
				p := newPrinter(cmd)
				if topics {
					return printSizes(ctx, i, p, args[0])
				}
				lags, err := i.Lags(ctx, args[0])
				if err != nil {
					return err
				}
				for _, l := range lags {
					committed := "nothing committed"
					if l.Committed >= 0 {
						committed = "committed " + strconv.FormatInt(l.Committed, 10)
					}
					if err := p.print(l, "%s\t%s-%d\t%s\tend %d\tlag %d", l.SubTopology, l.Topic, l.Partition, committed, l.End, l.Lag); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&topics, "internal-topics", false, "show the sizes of its repartition and changelog topics instead")
	return cmd
}

func printSizes(ctx context.Context, i *inspect.Inspector, p printer, app string) error {
	sizes, err := i.Sizes(ctx, app)
	if err != nil {
		return err
	}
	for _, s := range sizes {
		if err := p.print(s, "%s\t%s\t%s", s.Topic, counted(int64(s.Partitions), "partition"), counted(s.Offsets, "offset")); err != nil {
			return err
		}
	}
	return nil
}
