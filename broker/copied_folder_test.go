package broker_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
)

// TestCopiedFolders: a folder that was copied whole serves where it lies now; of one that was copied in part, what is missing is
// named: the start is refused where the folder as a whole can not be trusted, and one partition is offline where it is that one's.
func TestCopiedFolders(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "used")
	b := brokertest.Start(t, brokertest.OnTCP(), brokertest.InFolder(dir))
	ctx := background(t)
	for _, topic := range []string{"a", "b"} {
		createTopic(t, b, topic, 1)
		cl := newClient(t, kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial))
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("v")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	copied := func(without string) string {
		t.Helper()
		to := filepath.Join(t.TempDir(), "elsewhere")
		if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		if without != "" {
			if err := os.RemoveAll(filepath.Join(to, without)); err != nil {
				t.Fatal(err)
			}
		}
		return to
	}
	for _, missing := range []string{"meta.properties", "recovery-journal", "__cluster_metadata-0"} {
		to := copied(missing)
		b, err := broker.Start(context.Background(), broker.Config{Dir: to})
		if err == nil {
			t.Errorf("a folder without %s was taken", missing)
			if err := b.Close(); err != nil {
				t.Error(err)
			}
			continue
		}
		if !strings.Contains(err.Error(), filepath.Join(to, missing)) {
			t.Errorf("without %s: %v, which does not name it", missing, err)
		}
	}
	for _, missing := range []string{"", "a-0"} {
		b := brokertest.Start(t, brokertest.InFolder(copied(missing)))
		cl := newClient(t, kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial), kgo.DisableIdempotentWrite(), kgo.RecordRetries(0))
		for _, topic := range []string{"a", "b"} {
			r := &kgo.Record{Topic: topic, Value: []byte("w")}
			err := cl.ProduceSync(ctx, r).FirstErr()
			if offline := topic+"-0" == missing; offline != errors.Is(err, kerr.KafkaStorageError) || !offline && (err != nil || r.Offset != 1) {
				t.Errorf("without %q a record to %s: offset %d, %v", missing, topic, r.Offset, err)
			}
		}
	}
}
