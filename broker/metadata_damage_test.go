package broker_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker/brokertest"
)

// TestS03DamagedMetadataDeletesNothing: a metadata log that does not check, or is gone, is no reason to take the topics that it names
// for nobody's: the start is refused, and not a byte of them changes. The report is NATS#7556, found by Jepsen. What no metadata log
// has ever named is kept too, see TestUnknownFoldersAreKept.
func TestS03DamagedMetadataDeletesNothing(t *testing.T) {
	dir := t.TempDir()
	b := brokertest.Start(t, brokertest.InFolder(dir))
	ctx := background(t)
	if _, err := admin(t, b).CreateTopic(ctx, 1, 1, nil, "kept"); err != nil {
		t.Fatal(err)
	}
	cl := newClient(t, kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial))
	if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "kept", Value: []byte("v")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join("__cluster_metadata-0", "00000000000000000000.log")
	whole, err := os.ReadFile(filepath.Join(dir, log))
	if err != nil {
		t.Fatal(err)
	}
	for name, harm := range map[string]func([]byte) []byte{
		"a wrong byte":     func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"half of it":       func(b []byte) []byte { return b[:len(b)/2] },
		"nothing of it":    func([]byte) []byte { return []byte{} },
		"its file is gone": func([]byte) []byte { return nil },
	} {
		to := filepath.Join(t.TempDir(), "harmed")
		if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		harmed := harm(append([]byte(nil), whole...))
		if err := os.WriteFile(filepath.Join(to, log), harmed, 0o600); err != nil {
			t.Fatal(err)
		}
		if harmed == nil {
			if err := os.Remove(filepath.Join(to, log)); err != nil {
				t.Fatal(err)
			}
		}
		before := filesUnder(t, to, "kept-0")
		if b, err := brokertest.TryStart(t, brokertest.InFolder(to)); err == nil {
			t.Errorf("%s: the broker starts", name)
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		} else if !strings.Contains(err.Error(), "__cluster_metadata-0") {
			t.Errorf("%s: %v, which does not name it", name, err)
		}
		if after := filesUnder(t, to, "kept-0"); !maps.Equal(after, before) {
			t.Errorf("%s: the topic had the files %v and has %v", name, before, after)
		}
	}
}

// filesUnder gives the content of all files in a folder of a data folder.
func filesUnder(t *testing.T, dir, folder string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(os.DirFS(filepath.Join(dir, folder)), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, folder, path))
		out[path] = string(text)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return out
}
