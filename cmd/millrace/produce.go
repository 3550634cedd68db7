package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"
)

// produceFlags are the options of produce.
type produceFlags struct {
	separator       string
	acks            string
	partition       int32
	transactionalID string
	compression     string

	brokers  string        // for messages
	patience time.Duration // how long to go without an acknowledgement
}

// maxLine is the longest line taken from standard input.
const maxLine = 64 << 20

func newProduce() *cobra.Command {
	var f produceFlags
	cmd := &cobra.Command{
		Use:   "produce TOPIC",
		Short: "Write lines of standard input as records",
		Long: `Writes each line of standard input as one record. With --key-separator the part
before the first separator is the key. With --transactional-id all lines are one
transaction, which is committed at the end of the input. A broker that acknowledges
nothing for --timeout ends the work with an error.`,
		Example: `  echo 'k1:hello' | millrace produce orders --key-separator :
  millrace produce orders --acks 1 --compression zstd < orders.txt`,
		Args: exactly(1, "the name of a topic"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts, err := f.options(args[0])
			if err != nil {
				return err
			}
			cl, err := newClient(cmd, opts...)
			if err != nil {
				return err
			}
			defer cl.Close()
			if f.patience, err = timeout(cmd); err != nil {
				return err
			}
			if err := reach(cmd, cl); err != nil {
				return err
			}
			f.brokers = brokers(cmd)
			n, err := f.produce(cmd.Context(), cl, cmd.InOrStdin())
			if err != nil {
				return err
			}
			result := struct {
				Topic   string `json:"topic"`
				Records int64  `json:"records"`
			}{args[0], n}
			return newPrinter(cmd).print(result, "produced %s to %s", counted(n, "record"), args[0])
		},
	}
	addClientFlags(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.separator, "key-separator", "", "what separates key and value in a line; empty means no key")
	fl.StringVar(&f.acks, "acks", "all", "what to wait for: all (on disk), 1 (written) or 0 (nothing)")
	fl.Int32Var(&f.partition, "partition", -1, "partition to write to; -1 chooses by key")
	fl.StringVar(&f.transactionalID, "transactional-id", "", "write all lines in one transaction of this id")
	fl.StringVar(&f.compression, "compression", "none", "none, gzip, snappy, lz4 or zstd")
	return cmd
}

// options turns the flags into the client's.
func (f *produceFlags) options(topic string) ([]kgo.Opt, error) {
	opts := []kgo.Opt{kgo.DefaultProduceTopic(topic), kgo.AllowAutoTopicCreation()}
	switch f.acks {
	case "all", "-1":
		opts = append(opts, kgo.RequiredAcks(kgo.AllISRAcks()))
	case "1":
		opts = append(opts, kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	case "0":
		opts = append(opts, kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite())
	default:
		return nil, badUsage("--acks is %q, must be all, 1 or 0", f.acks)
	}
	if f.transactionalID != "" {
		if f.acks != "all" && f.acks != "-1" {
			return nil, badUsage("--acks is %s, a transaction needs all", f.acks)
		}
		opts = append(opts, kgo.TransactionalID(f.transactionalID))
	}
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	codec, ok := codecs[f.compression]
	if !ok {
		return nil, badUsage("--compression is %q, must be none, gzip, snappy, lz4 or zstd", f.compression)
	}
	opts = append(opts, kgo.ProducerBatchCompression(codec))
	if f.partition >= 0 {
		opts = append(opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	} else if f.partition != -1 {
		return nil, badUsage("--partition is %d, must be at least 0, or -1", f.partition)
	}
	return opts, nil
}

// produce writes all lines and waits for their acknowledgement; the transaction,
// if there is one, is aborted when anything fails.
func (f *produceFlags) produce(ctx context.Context, cl *kgo.Client, in io.Reader) (int64, error) {
	if f.transactionalID == "" {
		return f.lines(ctx, cl, in)
	}
	if err := cl.BeginTransaction(); err != nil {
		return 0, fmt.Errorf("begin transaction: %w", err)
	}
	n, err := f.lines(ctx, cl, in)
	end := kgo.TryCommit
	if err != nil {
		end = kgo.TryAbort
	}
	// The end is asked for even when the work was interrupted: an open transaction
	// holds up every reader.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.patience)
	defer cancel()
	if endErr := cl.EndTransaction(last, end); endErr != nil {
		err = errors.Join(err, fmt.Errorf("end transaction: %w", endErr))
	}
	return n, err
}

func (f *produceFlags) lines(ctx context.Context, cl *kgo.Client, in io.Reader) (int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var acked atomic.Int64
	bar := progress{}
	if file, ok := in.(*os.File); !ok || !isTerminal(file) {
		bar = newProgress("producing")
	}
	defer bar.done()
	watch := watchStall(f.patience, func() {
		cancel(fmt.Errorf("no acknowledgement from %s within %v", f.brokers, f.patience))
	})
	defer watch.stop()
	scan := bufio.NewScanner(in)
	scan.Buffer(make([]byte, 64<<10), maxLine)
	for scan.Scan() && ctx.Err() == nil {
		watch.sent()
		cl.Produce(ctx, f.record(scan.Text()), func(r *kgo.Record, err error) {
			watch.answered()
			if err != nil {
				cancel(fmt.Errorf("produce to %s: %w", r.Topic, f.explain(err)))
				return
			}
			acked.Add(1)
			bar.add(1)
		})
	}
	if err := scan.Err(); err != nil {
		cancel(fmt.Errorf("read standard input: %w", err))
	}
	if err := cl.Flush(ctx); err != nil && context.Cause(ctx) == nil {
		return acked.Load(), err
	}
	if cause := context.Cause(ctx); cause != nil {
		return acked.Load(), fmt.Errorf("%w (acknowledged before: %s)", cause, counted(acked.Load(), "record"))
	}
	return acked.Load(), nil
}

// explain adds what to do about errors that are not the broker's.
func (f *produceFlags) explain(err error) error {
	if f.partition >= 0 && strings.Contains(err.Error(), "partitioning choice") {
		return fmt.Errorf("there is no partition %d: %w", f.partition, err)
	}
	return explained(err, "")
}

func (f *produceFlags) record(line string) *kgo.Record {
	r := &kgo.Record{Value: []byte(line), Partition: max(f.partition, 0)}
	if f.separator != "" {
		if k, v, ok := strings.Cut(line, f.separator); ok {
			r.Key, r.Value = []byte(k), []byte(v)
		}
	}
	return r
}
