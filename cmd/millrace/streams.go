package main

import "github.com/spf13/cobra"

func newStreams() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "streams",
		Short: "List stream applications, show their topology, lag and state, reset them",
		Long: `Looks at applications of package streams by what they have left on the cluster,
whether they run or not: the description of their topology, the offsets of their
group, their internal topics.`,
		Example: `  millrace streams list
  millrace streams lag shop
  millrace streams reset shop --dry-run`,
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	addClientFlags(cmd)
	cmd.AddCommand(newStreamsList(), newStreamsDescribe(), newStreamsLag(), newStreamsState(), newStreamsReset())
	return cmd
}
