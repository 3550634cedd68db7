package inspect

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/internal/seam"
	"github.com/millrace/millrace/core/vfs"
)

// ownDir is where the broker of these tests keeps its data.
const ownDir = "/data"

// node starts a broker of ours on a file system.
func node(t *testing.T, fsys vfs.FS) *broker.Broker {
	t.Helper()
	ctx := seam.With(context.Background(), seam.Options{FS: fsys})
	b, err := broker.Start(ctx, broker.Config{Dir: ownDir, InternalPartitions: 2, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func client(t *testing.T, b *broker.Broker, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.SnappyCompression(), kgo.NoCompression()),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

// load makes a broker write a bit of everything: plain and transactional records, commits and aborts, offsets within and without
// transactions, small segments, a moved log start, a deleted topic.
func load(t *testing.T, b *broker.Broker, round int) {
	t.Helper()
	ctx := context.Background()
	plain := client(t, b)
	defer plain.Close()
	adm := kadm.NewClient(plain)
	small := map[string]*string{"internal.segment.bytes": kadm.StringPtr("3000"), "index.interval.bytes": kadm.StringPtr("200")}
	if round == 0 {
		must(t)(adm.CreateTopics(ctx, 2, 1, small, "events"))
		must(t)(adm.CreateTopics(ctx, 1, 1, map[string]*string{"cleanup.policy": kadm.StringPtr("compact")}, "table"))
	}
	gone := fmt.Sprint("gone-", round)
	must(t)(adm.CreateTopics(ctx, 1, 1, nil, gone))
	send(t, plain, gone, 0, 2)
	for i := range 15 {
		send(t, plain, "events", int32(i%2), 2)
		send(t, plain, "table", 0, 1)
	}
	commit := kadm.Offsets{}
	commit.AddOffset("events", 0, int64(round+1), -1)
	must(t)(adm.CommitOffsets(ctx, fmt.Sprint("group-", round%2), commit))
	transactions(t, b, round)
	if round == 1 {
		trim := kadm.Offsets{}
		trim.AddOffset("events", 1, 9, -1)
		must(t)(adm.DeleteRecords(ctx, trim))
	}
	must(t)(adm.DeleteTopics(ctx, gone))
}

// must gives a function that takes what a call returns and fails the test on an error.
func must(t *testing.T) func(_ any, err error) {
	t.Helper()
	return func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}

func transactions(t *testing.T, b *broker.Broker, round int) {
	t.Helper()
	ctx := context.Background()
	a := client(t, b, kgo.TransactionalID("one"))
	defer a.Close()
	c := client(t, b, kgo.TransactionalID(fmt.Sprint("two-", round)))
	defer c.Close()
	for i := range 6 {
		for _, cl := range []*kgo.Client{a, c} {
			if err := cl.BeginTransaction(); err != nil {
				t.Fatal(err)
			}
		}
		send(t, a, "events", 0, 3)
		send(t, c, "events", 0, 2)
		send(t, c, "events", 1, 1)
		for j, cl := range []*kgo.Client{c, a} {
			if err := cl.EndTransaction(ctx, kgo.TransactionEndTry((i+j)%3 == 0)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func send(t *testing.T, cl *kgo.Client, topic string, partition int32, n int) {
	t.Helper()
	var rs []*kgo.Record
	for i := range n {
		rs = append(rs, &kgo.Record{Topic: topic, Partition: partition, Key: fmt.Append(nil, "key", i), Value: fmt.Appendf(nil, "value %d of some length", i)})
	}
	if err := cl.ProduceSync(context.Background(), rs...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// ownFolder is a data folder of ours after a load with power cuts and a clean stop.
func ownFolder(t *testing.T, rounds int) *vfs.Mem {
	t.Helper()
	fsys := vfs.NewMem()
	for round := range rounds {
		b := node(t, fsys)
		load(t, b, round)
		if round == rounds-1 {
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			break
		}
		next := fsys.CrashClone(uint64(round) + 7)
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		for _, f := range faults(verifyAt(t, next, ownDir)) {
			if f.Severity != TornTail {
				t.Errorf("after power cut %d: %v", round, f)
			}
		}
		fsys = next
	}
	return fsys
}

func TestOwnFolderIsClean(t *testing.T) {
	fsys := ownFolder(t, 4)
	for _, f := range verifyAt(t, fsys, ownDir) {
		if f.Severity > Note {
			t.Error(f)
		} else {
			t.Log(f)
		}
	}
	d, err := Open(fsys, ownDir)
	if err != nil {
		t.Fatal(err)
	}
	segments := 0
	for _, p := range d.Partitions {
		segments += len(p.logs)
	}
	if segments < 12 {
		t.Errorf("only %d segments in %d partitions: the load is too small to prove anything", segments, len(d.Partitions))
	}
}
