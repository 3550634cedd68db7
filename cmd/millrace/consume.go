package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// consumeFlags are the options of consume.
type consumeFlags struct {
	fromBeginning bool
	isolation     string
	group         string
	max           int64
	format        string
	idle          time.Duration
	await         bool

	// check says what keeps records from coming; asked when none comes.
	check func(context.Context) error
}

func newConsume() *cobra.Command {
	var f consumeFlags
	cmd := &cobra.Command{
		Use:   "consume TOPIC...",
		Short: "Print records",
		Long: `Prints records as they come, until --max-messages, --idle or a signal. With --group
the partitions are shared with the other members and the position is committed;
without, all partitions are read from the end or, with --from-beginning, from
the start. A topic that does not exist is an error, or with --wait-for-topic waited
for. A broker that goes away while records are read is waited for as well.

--format knows %t topic, %p partition, %o offset, %d time in milliseconds, %k key,
%v value, %h{%k=%v } headers, and the escapes \n, \t. With --output json each
record is an object in a line of its own.`,
		Example: `  millrace consume orders --from-beginning --max-messages 10
  millrace consume orders --group printer --format '%p %o %k %v\n'`,
		Args: atLeast(1, "the name of a topic"),
		RunE: func(cmd *cobra.Command, topics []string) error {
			opts, err := f.options(topics)
			if err != nil {
				return err
			}
			write, err := f.writer(newPrinter(cmd))
			if err != nil {
				return err
			}
			cl, err := newClient(cmd, opts...)
			if err != nil {
				return err
			}
			defer cl.Close()
			if err := f.ready(cmd, cl, topics); err != nil {
				return err
			}
			f.check = func(ctx context.Context) error { return f.missing(ctx, cl, brokers(cmd), topics) }
			return f.consume(cmd.Context(), cl, bufio.NewWriter(cmd.OutOrStdout()), write)
		},
	}
	addClientFlags(cmd)
	fl := cmd.Flags()
	fl.BoolVar(&f.fromBeginning, "from-beginning", false, "start with the oldest record where no position is committed")
	fl.StringVar(&f.isolation, "isolation", "read_committed", "read_committed or read_uncommitted")
	fl.StringVar(&f.group, "group", "", "consumer group to join")
	fl.Int64Var(&f.max, "max-messages", 0, "stop after so many records; 0 does not stop")
	fl.StringVar(&f.format, "format", `%v\n`, "what to print for a record")
	fl.DurationVar(&f.idle, "idle", 0, "stop when no record came for so long; 0 does not stop")
	fl.BoolVar(&f.await, "wait-for-topic", false, "wait for topics that do not exist yet")
	return cmd
}

// ready says whether there is something to consume: brokers that answer, and the
// topics, unless they are to be waited for.
func (f *consumeFlags) ready(cmd *cobra.Command, cl *kgo.Client, topics []string) error {
	if err := reach(cmd, cl); err != nil {
		return err
	}
	return within(cmd, func(ctx context.Context) error { return f.missing(ctx, cl, brokers(cmd), topics) })
}

// missing is the error for a topic that does not exist and is not waited for, and
// for a partition that can not be read. The client itself would wait for either
// without a word.
func (f *consumeFlags) missing(ctx context.Context, cl *kgo.Client, brokers string, topics []string) error {
	if f.await {
		return nil
	}
	adm := kadm.NewClient(cl)
	_, err := existing(ctx, adm, brokers, topics)
	for i := 0; err == nil && i < len(topics); i++ {
		err = readable(ctx, adm, brokers, topics[i])
	}
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		err = fmt.Errorf("%w; --wait-for-topic waits for it", err)
	}
	return err
}

// readable names the first partition of a topic that can not be read.
func readable(ctx context.Context, adm *kadm.Client, brokers, topic string) error {
	ends, err := adm.ListEndOffsets(ctx, topic)
	if errors.Is(err, kerr.UnknownTopicOrPartition) { // deleted this moment
		return noTopic(topic, brokers)
	}
	if err != nil {
		return err
	}
	for _, end := range slices.SortedFunc(maps.Values(ends[topic]), byPartition) {
		if errors.Is(end.Err, kerr.KafkaStorageError) {
			return unreadable(topic, end.Partition)
		}
	}
	return nil
}

func byPartition(a, b kadm.ListedOffset) int { return cmp.Compare(a.Partition, b.Partition) }

// unreadable is the error for a partition that its broker can not read.
func unreadable(topic string, partition int32) error {
	return fmt.Errorf("consume %s partition %d: the broker can not read it, its log says why (%w)",
		topic, partition, refused{kerr.KafkaStorageError})
}

func (f *consumeFlags) options(topics []string) ([]kgo.Opt, error) {
	if f.max < 0 {
		return nil, badUsage("--max-messages is %d, must be at least 0", f.max)
	}
	if f.idle < 0 {
		return nil, badUsage("--idle is %v, must be at least 0", f.idle)
	}
	opts := []kgo.Opt{kgo.ConsumeTopics(topics...), kgo.KeepRetryableFetchErrors()}
	start := kgo.NewOffset().AtEnd()
	if f.fromBeginning {
		start = kgo.NewOffset().AtStart()
	}
	opts = append(opts, kgo.ConsumeResetOffset(start))
	switch f.isolation {
	case "read_committed":
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	case "read_uncommitted":
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadUncommitted()))
	default:
		return nil, badUsage("--isolation is %q, must be read_committed or read_uncommitted", f.isolation)
	}
	if f.group != "" {
		opts = append(opts, kgo.ConsumerGroup(f.group), kgo.DisableAutoCommit())
	}
	return opts, nil
}

// writer returns the function that appends one record's line.
func (f *consumeFlags) writer(p printer) (func([]byte, *kgo.Record) ([]byte, error), error) {
	if p.json {
		return appendJSON, nil
	}
	format, err := kgo.NewRecordFormatter(f.format)
	if err != nil {
		return nil, badUsage("--format %q: %w", f.format, err)
	}
	return func(b []byte, r *kgo.Record) ([]byte, error) { return format.AppendRecord(b, r), nil }, nil
}

// consume prints records until there is enough or the context ends, which is no
// error. With a group the position of what was printed is committed.
func (f *consumeFlags) consume(ctx context.Context, cl *kgo.Client, out *bufio.Writer, write func([]byte, *kgo.Record) ([]byte, error)) error {
	var line []byte
	last := time.Now() // of the last record
	for n := int64(0); f.max == 0 || n < f.max; {
		fetches := f.poll(ctx, cl, f.max-n, last)
		if err := fetchError(ctx, fetches); err != nil {
			return err
		}
		var printed []*kgo.Record
		for r := range fetches.RecordsAll() {
			var err error
			if line, err = write(line[:0], r); err != nil {
				return err
			}
			if _, err := out.Write(line); err != nil {
				return err
			}
			printed = append(printed, r)
		}
		n += int64(len(printed))
		if err := out.Flush(); err != nil {
			return err
		}
		if f.group != "" && len(printed) > 0 {
			// Also when a signal came meanwhile: what was printed is done.
			if err := cl.CommitRecords(context.WithoutCancel(ctx), printed...); err != nil {
				return fmt.Errorf("commit the position of group %s: %w", f.group, err)
			}
		}
		if len(printed) > 0 {
			last = time.Now()
		} else if err := f.lost(ctx); err != nil {
			return err
		}
		if ctx.Err() != nil || f.idle > 0 && time.Since(last) >= f.idle {
			return nil
		}
	}
	return nil
}

// pollMax is how many records are taken at once.
const pollMax = 10_000

// patrol is after how long without a record the topics are looked for again.
const patrol = 3 * time.Second

// poll waits for records, at most most of them (0 or less: no limit), until
// something is to be done without any: at the end of --idle, or of a patrol.
func (f *consumeFlags) poll(ctx context.Context, cl *kgo.Client, most int64, last time.Time) kgo.Fetches {
	n := pollMax
	if most > 0 {
		n = int(min(most, pollMax))
	}
	wait := patrol
	if f.idle > 0 {
		wait = min(wait, f.idle-time.Since(last))
	}
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return cl.PollRecords(limited, n)
}

// lost is the error when a topic was deleted or a partition broke meanwhile. A
// broker that does not answer is waited for, by the client.
func (f *consumeFlags) lost(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, patrol)
	defer cancel()
	err := f.check(limited)
	if errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.KafkaStorageError) {
		return err
	}
	return nil
}

// fetchError is the first error of a poll that ends the work. The end of the
// poll's time is none, nor what passes by itself; but a partition that can not be
// read (KAFKA_STORAGE_ERROR) will not be before somebody looks after its broker.
func fetchError(ctx context.Context, fetches kgo.Fetches) error {
	for _, e := range fetches.Errors() {
		switch {
		case errors.Is(e.Err, context.DeadlineExceeded), errors.Is(e.Err, context.Canceled) && ctx.Err() != nil:
		case errors.Is(e.Err, kerr.KafkaStorageError):
			return unreadable(e.Topic, e.Partition)
		case kerr.IsRetriable(e.Err), kgo.IsRetryableBrokerErr(e.Err):
		default:
			return fmt.Errorf("consume %s partition %d: %w", e.Topic, e.Partition, explained(e.Err, ""))
		}
	}
	return nil
}

// jsonRecord is a record in JSON. Bytes that are no text come as base64 under
// another name.
type jsonRecord struct {
	Topic       string       `json:"topic"`
	Partition   int32        `json:"partition"`
	Offset      int64        `json:"offset"`
	Timestamp   int64        `json:"timestamp"`
	Key         *string      `json:"key"`
	KeyBase64   []byte       `json:"keyBase64,omitempty"`
	Value       *string      `json:"value"`
	ValueBase64 []byte       `json:"valueBase64,omitempty"`
	Headers     []jsonHeader `json:"headers,omitempty"`
}

type jsonHeader struct {
	Key         string  `json:"key"`
	Value       *string `json:"value"`
	ValueBase64 []byte  `json:"valueBase64,omitempty"`
}

// text splits bytes into text and what is none.
func text(b []byte) (*string, []byte) {
	switch {
	case b == nil:
		return nil, nil
	case utf8.Valid(b):
		s := string(b)
		return &s, nil
	}
	return nil, b
}

func appendJSON(dst []byte, r *kgo.Record) ([]byte, error) {
	j := jsonRecord{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp.UnixMilli()}
	j.Key, j.KeyBase64 = text(r.Key)
	j.Value, j.ValueBase64 = text(r.Value)
	for _, h := range r.Headers {
		v, raw := text(h.Value)
		j.Headers = append(j.Headers, jsonHeader{h.Key, v, raw})
	}
	b, err := json.Marshal(j)
	if err != nil {
		return dst, err
	}
	return append(append(dst, b...), '\n'), nil
}
