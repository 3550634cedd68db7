package main

import "github.com/spf13/cobra"

func newLog() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "log",
		Short: "Look into data folders, verify, repair and import them",
		Long: `log works on the files of a broker, without one: on a whole data folder or on the folder of one partition,
written by Millrace or by Apache Kafka. dump and verify only read, and may be used while a broker runs; the end of a
log may then be half written. repair and import refuse a folder that is in use.

Exit codes: 0 success and nothing found, 1 something was found, 2 the command line makes no sense or files can not be read.`,
		Example: `  millrace log verify ./data
  millrace log dump --records ./data/orders-0`,
	}
	cmd.AddCommand(newLogDump(), newLogVerify(), newLogRepair(), newLogImport())
	return cmd
}
