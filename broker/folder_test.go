package broker_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
)

func admin(t *testing.T, b *broker.Broker) *kadm.Client {
	t.Helper()
	return kadm.NewClient(newClient(t, kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial), kgo.MetadataMinAge(10*time.Millisecond)))
}

func folders(t *testing.T, dir, prefix string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			out = append(out, e.Name())
		}
	}
	return out
}

// What nobody knows is never deleted: not at start, and not when a new topic needs
// the name.
func TestUnknownFoldersAreKept(t *testing.T) {
	dir := t.TempDir()
	strange := filepath.Join(dir, "strange-0")
	if err := os.Mkdir(strange, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"00000000000000000000.log": "not ours to judge",
		"partition.metadata":       "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw",
	} {
		if err := os.WriteFile(filepath.Join(strange, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := brokertest.Start(t, brokertest.InFolder(dir))
	content := func(folder string) string {
		text, err := os.ReadFile(filepath.Join(dir, folder, "00000000000000000000.log"))
		if err != nil {
			return err.Error()
		}
		return string(text)
	}
	if got := content("strange-0"); got != "not ours to judge" {
		t.Errorf("after the start: %q", got)
	}
	if _, err := admin(t, b).CreateTopic(background(t), 1, 1, nil, "strange"); err != nil {
		t.Fatal(err)
	}
	if got := content("strange-0.1-stray"); got != "not ours to judge" {
		t.Errorf("after a topic of that name was created: %q; folders %v", got, folders(t, dir, "strange"))
	}
	cl := newClient(t, kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial))
	if err := cl.ProduceSync(background(t), &kgo.Record{Topic: "strange", Value: []byte("v")}).FirstErr(); err != nil {
		t.Error(err)
	}
}

func TestDeletedTopicLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	ctx := background(t)
	b := brokertest.Start(t, brokertest.InFolder(dir))
	adm := admin(t, b)
	cl := newClient(t, kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	var ids []kadm.TopicID
	for life := range 3 {
		made, err := adm.CreateTopic(ctx, 3, 1, nil, "t")
		if err != nil {
			t.Fatalf("life %d: %v", life, err)
		}
		ids = append(ids, made.ID)
		cl.ForceMetadataRefresh()
		r := &kgo.Record{Topic: "t", Value: []byte("v"), Partition: 1}
		if err := cl.ProduceSync(ctx, r).FirstErr(); err != nil || r.Offset != 0 {
			t.Errorf("life %d: offset %d, %v", life, r.Offset, err)
		}
		var commit kadm.Offsets
		commit.AddOffset("t", 1, 1, -1)
		if err := adm.CommitAllOffsets(ctx, "g", commit); err != nil {
			t.Error(err)
		}
		if _, err := adm.DeleteTopic(ctx, "t"); err != nil {
			t.Fatal(err)
		}
		if left := folders(t, dir, "t-"); len(left) > 0 {
			t.Errorf("life %d: folders left: %v", life, left)
		}
		cl.PurgeTopicsFromClient("t")
	}
	if ids[0] == ids[1] || ids[1] == ids[2] {
		t.Errorf("topic ids repeat: %v", ids)
	}
	if _, err := adm.CreateTopic(ctx, 3, 1, nil, "t"); err != nil {
		t.Fatal(err)
	}
	offsets, err := adm.FetchOffsets(ctx, "g")
	if err != nil {
		t.Fatal(err)
	}
	if o, ok := offsets.Lookup("t", 1); ok && o.At >= 0 {
		t.Errorf("the new topic has the old one's committed offset %d", o.At)
	}
}

// A topic whose deletion was cut short by the end of the process is gone at the
// next start.
func TestDeletionSurvivesACrash(t *testing.T) {
	n := brokertest.StartNode(t)
	ctx := background(t)
	for round := range 5 {
		name := fmt.Sprintf("t%d", round)
		adm := admin(t, n.Broker())
		if _, err := adm.CreateTopic(ctx, 2, 1, nil, name); err != nil {
			t.Fatal(err)
		}
		if _, err := adm.DeleteTopic(ctx, name); err != nil {
			t.Fatal(err)
		}
		kept := fmt.Sprintf("kept%d", round)
		if _, err := adm.CreateTopic(ctx, 2, 1, nil, kept); err != nil {
			t.Fatal(err)
		}
		n.Crash(t, uint64(round))
		topics, err := admin(t, n.Broker()).ListTopics(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if topics.Has(name) || !topics.Has(kept) {
			t.Errorf("round %d: after the crash there are %v", round, topics.Names())
		}
	}
}

// A disk that fails under one topic leaves the others and their readers alone.
func TestDiskFaultStaysWhereItIs(t *testing.T) {
	n := brokertest.StartNode(t)
	ctx := background(t)
	adm := admin(t, n.Broker())
	if _, err := adm.CreateTopics(ctx, 1, 1, nil, "good", "bad"); err != nil {
		t.Fatal(err)
	}
	cl := newClient(t, kgo.SeedBrokers(n.Seeds()...), kgo.Dialer(n.Dial), kgo.RecordRetries(0), kgo.DisableIdempotentWrite())
	send := func(topic string) error {
		return cl.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("v")}).FirstErr()
	}
	if err := send("bad"); err != nil {
		t.Fatal(err)
	}
	heal := n.FailDisk("full", "bad-0")
	if err := send("bad"); err == nil {
		t.Error("a record was acknowledged on a full disk")
	}
	if err := send("good"); err != nil {
		t.Errorf("another topic: %v", err)
	}
	reader := newClient(t, kgo.SeedBrokers(n.Seeds()...), kgo.Dialer(n.Dial), kgo.ConsumeTopics("bad"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if got := values(t, ctx, reader, 1); got[0] != "v" {
		t.Errorf("read %q from the topic on the full disk", got)
	}
	heal()
	if err := send("bad"); err != nil {
		t.Errorf("after space was freed: %v", err)
	}
}

// A sync that fails takes its partition offline, which the broker says with the reason; the other partition goes on, a start heals it.
func TestOffline(t *testing.T) {
	n := brokertest.StartNode(t)
	ctx := background(t)
	if _, err := admin(t, n.Broker()).CreateTopics(ctx, 1, 1, map[string]*string{"internal.segment.bytes": kadm.StringPtr("200")}, "good", "bad"); err != nil {
		t.Fatal(err)
	}
	cl := newClient(t, kgo.SeedBrokers(n.Seeds()...), kgo.Dialer(n.Dial), kgo.RecordRetries(0), kgo.DisableIdempotentWrite())
	send := func(topic string) error {
		return cl.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: make([]byte, 100)}).FirstErr()
	}
	if off := n.Broker().Offline(); len(off) != 0 {
		t.Fatalf("offline at the start: %v", off)
	}
	heal := n.FailDisk("sync", "bad-0")
	for range 100 { // small appends are synced elsewhere; a segment that is full is synced itself
		if err := send("bad"); err != nil {
			break
		}
	}
	if off := n.Broker().Offline(); len(off) != 1 || !strings.Contains(off["bad-0"], "sync") {
		t.Errorf("offline: %v", off)
	}
	if err := send("good"); err != nil {
		t.Errorf("another topic: %v", err)
	}
	heal()
	if err := send("bad"); !errors.Is(err, kerr.KafkaStorageError) {
		t.Errorf("the file was asked again: %v", err)
	}
	n.Crash(t, 1) // that one has no clean end
	if off := n.Broker().Offline(); len(off) != 0 {
		t.Errorf("offline after a start: %v", off)
	}
	if err := send("bad"); err != nil {
		t.Errorf("after a start: %v", err)
	}
}
