package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/broker/inspect"
)

func newLogDump() *cobra.Command {
	var o inspect.WalkOptions
	var files []string
	var offsets bool
	cmd := &cobra.Command{
		Use:   "dump DIR...",
		Short: "Print batches, records, indexes and snapshots",
		Long: `dump prints everything in the folder of a partition, in the order of the file names: batches (with --records also
their records), entries of the indexes, snapshots of the producers' state, leader epochs, the topic id. Records of
__consumer_offsets, __transaction_state, __share_group_state and __cluster_metadata are decoded. Of a whole data folder
it prints all partitions, and whose folder it is, Kafka's checkpoints or our recovery journal.

With --output json every line is an object; "kind" tells what it is about. What is damaged is printed as far as it
can be read; to hear what is wrong use "millrace log verify".`,
		Example: `  millrace log dump ./data/orders-0
  millrace log dump --records --from 1000 --to 1010 ./data/orders-0
  millrace log dump --records --files log --output json ./data/__consumer_offsets-2
  millrace log dump --offsets ./data/orders-0`,
		Args: atLeast(1, "a data folder or the folder of a partition"),
		RunE: func(cmd *cobra.Command, dirs []string) error {
			if offsets {
				if len(files) > 0 {
					return badUsage("--offsets is --files index,timeindex: give one of the two")
				}
				files = []string{"index", "timeindex"}
			}
			o.Suffixes = suffixes(files)
			if err := o.Validate(); err != nil {
				return badUsage("--from is %d and --to is %d: --to must be above --from, and neither negative", o.From, o.To)
			}
			w := bufio.NewWriter(cmd.OutOrStdout())
			d := dumper{w: w, json: newPrinter(cmd).json, options: o}
			for _, dir := range dirs {
				if err := d.folder(dir); err != nil {
					return errors.Join(ioError(err), w.Flush())
				}
			}
			return w.Flush()
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.Records, "records", false, "print the records of each batch too")
	f.BoolVar(&o.Long, "long", false, "print long keys and values whole; else those over 1 KB are a length and a hash")
	f.Int64Var(&o.From, "from", 0, "first offset of the batches and records to print")
	f.Int64Var(&o.To, "to", 0, "offset behind the last one; 0 is the end of the log")
	f.StringSliceVar(&files, "files", nil, "kinds of files to print: log, index, timeindex, txnindex, snapshot, checkpoint, or a whole name; all by default")
	f.BoolVar(&offsets, "offsets", false, "print the offset and time indexes only")
	return cmd
}

// suffixes makes names of kinds those that inspect knows.
func suffixes(files []string) []string {
	var out []string
	for _, f := range files {
		switch f {
		case "log", "index", "timeindex", "txnindex", "txnsum", "snapshot", "checkpoint":
			f = "." + f
		}
		out = append(out, f)
	}
	return out
}

// dumper prints items.
type dumper struct {
	w       io.Writer
	json    bool
	options inspect.WalkOptions
}

func (d *dumper) folder(dir string) error {
	data, err := openData(dir)
	if err != nil {
		return err
	}
	if data.Whole() {
		if err := data.Walk(func(i inspect.Item) error { return d.print("", i) }); err != nil {
			return err
		}
	}
	for _, p := range data.Partitions {
		if !d.json {
			if _, err := fmt.Fprintf(d.w, "== %s in %s\n", p.Name(), p.Dir); err != nil {
				return err
			}
		}
		if err := p.Walk(d.options, func(i inspect.Item) error { return d.print(p.Name(), i) }); err != nil {
			return err
		}
	}
	return nil
}

// print writes one item. Its JSON gets the partition as its first field.
func (d *dumper) print(partition string, i inspect.Item) error {
	if !d.json {
		_, err := fmt.Fprintln(d.w, i)
		return err
	}
	b, err := json.Marshal(i)
	if err != nil {
		return err
	}
	if partition != "" {
		name, err := json.Marshal(partition)
		if err != nil {
			return err
		}
		b = append(fmt.Appendf(nil, `{"partition":%s,`, name), bytes.TrimPrefix(b, []byte("{"))...)
	}
	_, err = d.w.Write(append(b, '\n'))
	return err
}
