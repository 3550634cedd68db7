package adopt

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/vfs"
)

// forget removes the first batches of a partition, as Kafka's retention does: its checkpoint files say nothing of that.
func forget(t *testing.T, fsys vfs.FS, folder string, batches int) (begins int64) {
	t.Helper()
	old := path.Join(kafka, folder, fmt.Sprintf("%020d.log", 0))
	data, err := vfs.ReadFile(fsys, old)
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for b, err := range record.Batches(data) {
		if err != nil {
			t.Fatal(err)
		}
		if begins = b.BaseOffset(); batches == 0 {
			break
		}
		batches--
		at += len(b)
	}
	if batches > 0 || begins == 0 {
		t.Fatalf("%s has not enough batches", folder)
	}
	if err := vfs.WriteFile(fsys, path.Join(kafka, folder, fmt.Sprintf("%020d.log", begins)), data[at:], true); err != nil {
		t.Fatal(err)
	}
	names, err := fsys.List(path.Join(kafka, folder))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, fmt.Sprintf("%020d.", 0)) {
			if err := fsys.Remove(path.Join(kafka, folder, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return begins
}

// TestAdoptWhatRetentionLeft: a log that begins behind offset 0 keeps its beginning, which the recovery journal is told: else it would
// look like a log that a power cut took the beginning of.
func TestAdoptWhatRetentionLeft(t *testing.T) {
	fsys := kafkaFolder(t)
	begins := forget(t, fsys, "orders-0", 1)
	want := records(t, fsys, kafka, "orders")
	if len(want) == 0 {
		t.Fatal("nothing is left")
	}
	adopt(t, fsys)
	for range 2 {
		b, err := start(fsys, ours)
		if err != nil {
			t.Fatal(err)
		}
		got := consume(t, b, len(want), kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		if !slices.Equal(got, want) {
			t.Errorf("the log begins at %d; got %q, want %q", begins, got, want)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	clean(t, fsys)
}
