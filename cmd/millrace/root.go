package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// usageError is a command line that makes no sense.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func badUsage(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// newRoot builds the tree of commands.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "millrace",
		Short: "A broker of the Kafka protocol, and its tools",
		Long: `millrace runs a broker of the Kafka protocol, and works with topics and records of
it or of any other such broker.

Exit codes: 0 success, 1 the work failed, 2 the command line makes no sense.`,
		Example: `  millrace server --data-dir ./data --listen 127.0.0.1:9092
  millrace topic create orders --partitions 3
  echo 'k1:hello' | millrace produce orders --key-separator :
  millrace consume orders --from-beginning --max-messages 1`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.PersistentFlags().StringP("output", "o", "text", "form of the results: text or json")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if out := cmd.Flag("output").Value.String(); out != "text" && out != "json" {
			return badUsage("--output is %q, must be text or json", out)
		}
		return nil
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newServer(), newTopic(), newProduce(), newConsume(), newVersion())
	return root
}

// exactly is cobra.ExactArgs as a usage error.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return badUsage("%s needs %s, got %d arguments", cmd.CommandPath(), what, len(args))
		}
		return nil
	}
}

// atLeast is cobra.MinimumNArgs as a usage error.
func atLeast(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < n {
			return badUsage("%s needs %s", cmd.CommandPath(), what)
		}
		return nil
	}
}
