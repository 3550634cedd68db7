package main

import "github.com/spf13/cobra"

func newTxn() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "txn",
		Short: "List and describe transactions, end those that hang or are never decided",
		Long: `Shows transactional ids and what is open (KIP-664), and ends a transaction that hangs:
one that a partition holds open and no coordinator knows of, so that nobody will
ever end it and no read_committed consumer gets past it.

A transaction of a two-phase commit (KIP-939) has no timeout. When its program does
not come back, millrace txn resolve decides it.`,
		Example: `  millrace txn list
  millrace txn hanging`,
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	addClientFlags(cmd)
	cmd.AddCommand(newTxnList(), newTxnDescribe(), newTxnHanging(), newTxnAbort(), newTxnResolve())
	return cmd
}
