package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/streams/inspect"
)

func newStreamsState() *cobra.Command {
	var f inspect.Filter
	cmd := &cobra.Command{
		Use:   "state APPLICATION STORE",
		Short: "Show what a store holds, as committed",
		Long: `Reads the changelog of a store and shows its rows: partition, start of the window if it
has windows, key, value, time. Strings, numbers and JSON are shown as such, other
bytes in hex. The whole changelog is read, whatever the filter.`,
		Example: `  millrace streams state shop orders-per-user --key ann
  millrace streams state shop spend-1m --prefix a --limit 10`,
		Args: exactly(2, "an application and a store"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.Limit < 0 {
				return badUsage("--limit is %d, must not be negative", f.Limit)
			}
			return withInspector(cmd, func(ctx context.Context, i *inspect.Inspector) error {
				rows, err := i.State(ctx, args[0], args[1], f)
				if err != nil {
					return err
				}
				p := newPrinter(cmd)
				for _, r := range rows {
					line := ""
					if r.Window != nil {
						line = "\t" + r.Window.Format(time.RFC3339)
					}
					line += "\t" + r.Key + "\t" + r.Value
					if r.Time != nil {
						line += "\t" + r.Time.Format("2006-01-02T15:04:05.000Z")
					}
					if err := p.print(r, "%d%s", r.Partition, line); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&f.Key, "key", "", "only the row of this key")
	cmd.Flags().StringVar(&f.Prefix, "prefix", "", "only keys that begin so")
	cmd.Flags().IntVar(&f.Limit, "limit", 0, "at most so many rows, 0 for all")
	return cmd
}
