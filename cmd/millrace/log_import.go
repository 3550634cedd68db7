package main

import (
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/broker/adopt"
	"github.com/millrace/millrace/broker/inspect"
	"github.com/millrace/millrace/core/vfs"
)

func newLogImport() *cobra.Command {
	o := adopt.Options{FS: vfs.OS()}
	cmd := &cobra.Command{
		Use:   "import KAFKA_DIR... --data-dir DIR",
		Short: "Make a data folder from one that Apache Kafka left",
		Long: `import reads the data folder of a stopped Apache Kafka (KRaft mode, one node that is broker and controller; all of its
log.dirs) and makes a new data folder for "millrace server": topics with their ids, partitions, settings and every byte
of their logs, the offsets of consumer groups, the state of transactional ids. Kafka's folder is only read, and can be
started again. Every byte is verified on the way; a damaged folder, one that was not stopped cleanly, or one in which
partitions are missing is refused.

What is not taken over (access rules, quotas, credentials, share groups, settings that do not exist here) is printed.`,
		Example: `  millrace log import /var/lib/kafka --data-dir ./data
  millrace server --data-dir ./data --listen 127.0.0.1:9092`,
		Args: atLeast(1, "Kafka's data folder"),
		RunE: func(cmd *cobra.Command, dirs []string) error {
			o.From = dirs
			if o.To == "" {
				return badUsage("--data-dir is missing: the data folder to be made")
			}
			if err := o.Validate(); err != nil {
				return usageError{err}
			}
			o.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
			bar := newByteBar(2 * kafkaBytes(dirs))
			o.Progress = bar.add
			r, err := adopt.Run(o)
			bar.done()
			if err != nil {
				return ioError(err)
			}
			return printImport(newPrinter(cmd), r, o.To)
		},
	}
	cmd.Flags().StringVar(&o.To, "data-dir", "", "data folder to be made; must not exist, or be empty")
	cmd.Flags().BoolVar(&o.Unclean, "unclean", false, "take a folder that was not stopped cleanly, and cut off what is torn; be sure that no Kafka runs")
	return cmd
}

// kafkaBytes is how much there is to read, for the bar; what can not be told now is told by the import.
func kafkaBytes(dirs []string) int64 {
	var sum int64
	for _, dir := range dirs {
		if d, err := inspect.Open(vfs.OS(), dir); err == nil {
			n, _ := dataBytes(d) // an error means a shorter bar
			sum += n
		}
	}
	return sum
}

func printImport(p printer, r adopt.Report, dir string) error {
	text := ""
	if len(r.LeftOut) > 0 {
		text = "\nnot taken over:\n  " + strings.Join(r.LeftOut, "\n  ")
	}
	return p.print(r, "made %s: cluster %s, node %d, %s, %s, %d bytes of logs%s", dir, r.ClusterID, r.NodeID,
		counted(int64(r.Topics), "topic"), counted(int64(r.Partitions), "partition"), r.Bytes, text)
}
