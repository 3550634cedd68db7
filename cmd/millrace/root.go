package main

import "github.com/spf13/cobra"

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
		Args:          noSuchCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Version:       build().Version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}} (" + build().Go + ")\n")
	root.PersistentFlags().StringP("output", "o", "text", "form of the results: text or json")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if out := cmd.Flag("output").Value.String(); out != "text" && out != "json" {
			return badUsage("--output is %q, must be text or json", out)
		}
		return nil
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newServer(), newTopic(), newBroker(), newProduce(), newConsume(), newLog(), newVerify(), newTxn(), newStreams(), newFeatures(), newVersion())
	return root
}
