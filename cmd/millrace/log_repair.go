package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/broker/inspect"
)

func newLogRepair() *cobra.Command {
	var cut int64
	var journal bool
	cmd := &cobra.Command{
		Use:   "repair DIR",
		Short: "Make indexes and snapshots anew; cut damaged records off where you say so",
		Long: `repair verifies a data folder, or the folder of one partition, and makes anew what is derived from the records and wrong:
offset, time and transaction indexes, snapshots, leader epochs, partition.metadata. Every file is written beside the old
one, synced and renamed over it. It refuses a data folder that a Millrace broker has; stop Kafka yourself, its lock is
of another kind.

Records are never touched, unless --truncate-at says from which offset on they are to be given up. That works on the
folder of one partition, between two batches. Everything that is cut or removed is first copied to a folder beside
it, PARTITION.1-stray, which brokers leave alone.

What can not be repaired is printed. Exit codes: 0 all is well now, 1 something is left, 2 the command line makes no
sense, the folder is in use, or files can not be read or written.`,
		Example: `  millrace log repair ./data
  millrace log verify ./data/orders-0
  millrace log repair --truncate-at 117 ./data/orders-0`,
		Args: exactly(1, "a data folder or the folder of a partition"),
		RunE: func(cmd *cobra.Command, dirs []string) error {
			d, err := openData(dirs[0])
			if err != nil {
				return err
			}
			p := newPrinter(cmd)
			if journal {
				if err := d.NewJournal(inspect.VerifyOptions{}); err != nil {
					return ioError(err)
				}
			}
			if cmd.Flags().Changed("truncate-at") {
				if cut < 0 {
					return badUsage("--truncate-at is %d, must be an offset", cut)
				}
				if err := truncate(d, cut, p); err != nil {
					return ioError(err)
				}
			}
			return repair(d, p)
		},
	}
	cmd.Flags().BoolVar(&journal, "new-journal", false, "begin a recovery journal in a data folder that has lost it; what DeleteRecords hid may be visible again")
	cmd.Flags().Int64Var(&cut, "truncate-at", 0, "give up all records from this offset on")
	return cmd
}

// saved says where the copy of what was cut is.
type saved struct {
	Copy string `json:"copy"`
}

func truncate(d *inspect.Data, offset int64, p printer) error {
	var failed error
	dir, err := d.Truncate(offset, func(c inspect.Change) { failed = errors.Join(failed, p.print(c, "%s", c)) })
	if dir != "" {
		failed = errors.Join(failed, p.print(saved{dir}, "the old files are in %s", dir))
	}
	return errors.Join(err, failed)
}

func repair(d *inspect.Data, p printer) error {
	size, err := dataBytes(d)
	if err != nil {
		return ioError(err)
	}
	bar := newByteBar(size)
	defer bar.done()
	var failed error
	left := 0
	err = d.Repair(inspect.VerifyOptions{Progress: bar.add}, func(c inspect.Change) {
		bar.clear()
		failed = errors.Join(failed, p.print(c, "%s", c))
	}, func(f inspect.Finding) {
		left++
		bar.clear()
		failed = errors.Join(failed, p.print(f, "left: %s", f))
	})
	switch err = errors.Join(err, failed); {
	case err != nil:
		return ioError(err)
	case left > 0:
		return errFound
	}
	return nil
}
