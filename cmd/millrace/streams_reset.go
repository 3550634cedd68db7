package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/streams/inspect"
)

func newStreamsReset() *cobra.Command {
	var to, since string
	var by time.Duration
	var dry, yes bool
	cmd := &cobra.Command{
		Use:   "reset APPLICATION",
		Short: "Let an application begin anew: inputs from some point, no state",
		Long: `Deletes the internal topics of an application, with all state in them, and sets the
offsets of its inputs: to the start, to the end, to a time, or to some time ago. It
shows what it is about to do and does it with --yes alone. It is refused while the
application has members: stop all its processes first, and those that were killed
keep their places for their session timeout.

What the application has written to topics of others stays there. State folders need
not be deleted: their stores are rebuilt at the next start.`,
		Example: `  millrace streams reset shop --dry-run
  millrace streams reset shop --to latest --yes
  millrace streams reset shop --since 2026-11-01T00:00:00Z --yes
  millrace streams reset shop --by 24h --yes`,
		Args: exactly(1, "an application"),
		RunE: func(cmd *cobra.Command, args []string) error {
			from, err := resetFrom(cmd, to, since, by)
			if err != nil {
				return err
			}
			if dry == yes {
				return badUsage("say --dry-run to see what a reset would do, or --yes to do it")
			}
			return withInspector(cmd, func(ctx context.Context, i *inspect.Inspector) error {
				plan, err := i.PlanReset(ctx, args[0], from)
				if err != nil {
					return err
				}
				if err := printReset(newPrinter(cmd), plan, yes); err != nil || dry {
					return err
				}
				return plan.Apply(ctx)
			})
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "earliest (the default) or latest")
	cmd.Flags().StringVar(&since, "since", "", "begin with the first record of this time (RFC 3339) or later")
	cmd.Flags().DurationVar(&by, "by", 0, "begin with the records of so long ago")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only show what would be done")
	cmd.Flags().BoolVar(&yes, "yes", false, "do it")
	return cmd
}

// resetFrom is where to begin; at most one of the flags may say so.
func resetFrom(cmd *cobra.Command, to, since string, by time.Duration) (f inspect.From, err error) {
	given := 0
	for _, name := range []string{"to", "since", "by"} {
		if cmd.Flags().Changed(name) {
			given++
		}
	}
	switch {
	case given > 1:
		return f, badUsage("--to, --since and --by exclude each other")
	case since != "":
		if f.At, err = time.Parse(time.RFC3339, since); err != nil {
			return f, badUsage("--since is %q, must be a time like 2026-11-01T00:00:00Z", since)
		}
	case cmd.Flags().Changed("by"):
		if by <= 0 {
			return f, badUsage("--by is %v, must be above 0", by)
		}
		f.At = time.Now().Add(-by)
	case to == "latest":
		f.Latest = true
	case to != "" && to != "earliest":
		return f, badUsage("--to is %q, must be earliest or latest", to)
	}
	return f, nil
}

// printReset shows what a reset does, one step a line.
func printReset(p printer, r *inspect.Reset, done bool) error {
	would := "would "
	if done {
		would = ""
	}
	if p.json {
		return p.print(r, "")
	}
	for _, o := range r.Offsets {
		if err := p.print(nil, "%sread %s-%d from offset %d (was %d)", would, o.Topic, o.Partition, o.At, max(0, o.Was)); err != nil {
			return err
		}
	}
	for _, t := range r.Topics {
		if err := p.print(nil, "%sdelete topic %s", would, t); err != nil {
			return err
		}
	}
	return nil
}
