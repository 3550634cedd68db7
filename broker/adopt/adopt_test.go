package adopt

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/inspect"
	"github.com/millrace/millrace/broker/internal/seam"
	"github.com/millrace/millrace/core/vfs"
)

const (
	kafka = "/kafka"
	ours  = "/ours"
)

// kafkaFolder is the golden data folder on a file system of its own.
func kafkaFolder(t *testing.T) *vfs.Mem {
	t.Helper()
	packed, err := os.ReadFile("testdata/kafka-4.4.0-data.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	fsys := vfs.NewMem()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		name := path.Join(kafka, h.Name)
		if err := fsys.MkdirAll(path.Dir(name)); err != nil {
			t.Fatal(err)
		}
		if err := vfs.WriteFile(fsys, name, data, true); err != nil {
			t.Fatal(err)
		}
	}
	return fsys
}

func start(fsys vfs.FS, dir string) (*broker.Broker, error) {
	ctx := seam.With(context.Background(), seam.Options{FS: fsys})
	return broker.Start(ctx, broker.Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
}

func adopt(t *testing.T, fsys vfs.FS) Report {
	t.Helper()
	r, err := Run(Options{FS: fsys, From: []string{kafka}, To: ours})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// records reads what an inspection sees of a topic's records.
func records(t *testing.T, fsys vfs.FS, dir, topic string) []string {
	t.Helper()
	d, err := inspect.Open(fsys, dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, p := range d.Partitions {
		if p.Topic != topic {
			continue
		}
		err := p.Walk(inspect.WalkOptions{Records: true, Suffixes: []string{".log"}}, func(i inspect.Item) error {
			if r, ok := i.(*inspect.RecordItem); ok && r.Control == nil {
				out = append(out, fmt.Sprintf("%s %d %s %s", p.Name(), r.Offset, r.Key.Bytes, r.Value.Bytes))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(out)
	return out
}

// consume reads n records of a topic through a broker.
func consume(t *testing.T, b *broker.Broker, n int, opts ...kgo.Opt) []string {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	var out []string
	for len(out) < n {
		f := cl.PollFetches(context.Background())
		if err := f.Err(); err != nil {
			t.Fatal(err)
		}
		f.EachRecord(func(r *kgo.Record) {
			out = append(out, fmt.Sprintf("%s-%d %d %s %s", r.Topic, r.Partition, r.Offset, r.Key, r.Value))
		})
	}
	slices.Sort(out)
	return out
}

// A folder that Kafka left opens, serves and goes on: topics with their ids, every record, the offsets of the group; and then again
// after a restart.
func TestAdopt(t *testing.T) {
	fsys := kafkaFolder(t)
	before := fsys.Clone()
	r := adopt(t, fsys)
	if r.Topics != 5 || r.Partitions != 14 || r.NodeID != 1 || r.Bytes == 0 {
		t.Errorf("report %+v", r)
	}
	for _, topic := range []string{"orders", "times", "table", "__consumer_offsets", "__transaction_state"} {
		if got, want := records(t, fsys, ours, topic), records(t, before, kafka, topic); len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s: %d records, Kafka had %d", topic, len(got), len(want))
		}
	}
	for round := range 2 {
		b, err := start(fsys, ours)
		if err != nil {
			t.Fatal(err)
		}
		serve(t, b, before, round)
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	clean(t, fsys)
	d, err := inspect.Open(fsys, ours)
	if err != nil {
		t.Fatal(err)
	}
	old, err := inspect.Open(before, kafka)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range old.Cluster.Names() {
		if have := d.Cluster.Topics[name]; have == nil || have.ID != old.Cluster.Topics[name].ID {
			t.Errorf("topic %s has not got its id: %+v", name, have)
		}
	}
}

func clean(t *testing.T, fsys vfs.FS) {
	t.Helper()
	d, err := inspect.Open(fsys, ours)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Verify(inspect.VerifyOptions{}, func(f inspect.Finding) {
		if f.Severity > inspect.Note {
			t.Error(f)
		}
	}); err != nil {
		t.Fatal(err)
	}
}

// serve reads everything through a broker, goes on as the group, and writes one more record.
func serve(t *testing.T, b *broker.Broker, before vfs.FS, round int) {
	t.Helper()
	ctx := context.Background()
	want := records(t, before, kafka, "orders")
	got := consume(t, b, len(want)+2*round, kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("round %d: %q is not served", round, line)
		}
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	offsets, err := adm.FetchOffsets(ctx, "readers")
	if err != nil {
		t.Fatal(err)
	}
	if o, ok := offsets.Lookup("orders", 0); !ok || o.At+offsetOf(offsets, 1) != 150 {
		t.Errorf("round %d: the group stands at %+v", round, offsets)
	}
	for p := range int32(2) {
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "orders", Partition: p, Value: []byte("new")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	topics, err := adm.ListTopics(ctx, "orders", "table")
	if err != nil {
		t.Fatal(err)
	}
	if e := topics["orders"].Partitions[0].LeaderEpoch; e == 0 {
		t.Error("the leader epoch did not rise")
	}
	configs, err := adm.DescribeTopicConfigs(ctx, "table")
	if err != nil {
		t.Fatal(err)
	}
	policy := ""
	for _, kv := range configs[0].Configs {
		if kv.Key == "cleanup.policy" {
			policy = kv.MaybeValue()
		}
	}
	if policy != "compact" {
		t.Errorf("table has cleanup.policy=%q", policy)
	}
}

func offsetOf(o kadm.OffsetResponses, partition int32) int64 {
	r, _ := o.Lookup("orders", partition)
	return r.At
}
