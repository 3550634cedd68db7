package main

import "github.com/spf13/cobra"

func newTxn() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "txn",
		Short: "List and describe transactions, find and end those that hang",
		Long: `Shows transactional ids and what is open (KIP-664), and ends a transaction that hangs:
one that a partition holds open and no coordinator knows of, so that nobody will
ever end it and no read_committed consumer gets past it.`,
		Example: `  millrace txn list
  millrace txn hanging`,
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	addClientFlags(cmd)
	cmd.AddCommand(newTxnList(), newTxnDescribe(), newTxnHanging(), newTxnAbort())
	return cmd
}
