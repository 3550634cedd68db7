package adopt

import (
	"errors"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/core/vfs"
)

func remove(name string) func(*testing.T, *vfs.Mem) {
	return func(t *testing.T, fsys *vfs.Mem) {
		t.Helper()
		if err := vfs.RemoveAll(fsys, path.Join(kafka, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func write(name, text string) func(*testing.T, *vfs.Mem) {
	return func(t *testing.T, fsys *vfs.Mem) {
		t.Helper()
		if err := fsys.MkdirAll(path.Dir(name)); err != nil {
			t.Fatal(err)
		}
		if err := vfs.WriteFile(fsys, name, []byte(text), true); err != nil {
			t.Fatal(err)
		}
	}
}

// Whatever is not whole is refused, and nothing is made.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*testing.T, *vfs.Mem)
		want  error
		words string
	}{
		{"not stopped cleanly", remove(cleanStop), ErrUnclean, cleanStop},
		{"a partition is missing", remove("orders-1"), ErrIncomplete, "orders-1"},
		{"no metadata log", remove("__cluster_metadata-0"), ErrNotKafka, "metadata log"},
		{"no meta.properties", remove("meta.properties"), ErrNotKafka, kafka},
		{"one of ours", write(kafka+"/meta.properties", "cluster.id=x\nnode.id=1\nmillrace.format=1\n"), ErrNotKafka, kafka},
		{"damaged", func(t *testing.T, fsys *vfs.Mem) {
			t.Helper()
			name := kafka + "/orders-0/00000000000000000000.log"
			data, err := vfs.ReadFile(fsys, name)
			if err != nil {
				t.Fatal(err)
			}
			data[len(data)/2] ^= 4
			write(name, string(data))(t, fsys)
		}, ErrDamaged, "orders-0"},
		{"something is there", write(ours+"/file", "x"), ErrNotEmpty, ours},
		{"an import was broken off", write(ours+unfinished+"/file", "x"), nil, "did not come to its end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := kafkaFolder(t)
			c.spoil(t, fsys)
			_, err := Run(Options{FS: fsys, From: []string{kafka}, To: ours})
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.words) {
				t.Errorf("got %v, want %v with %q", err, c.want, c.words)
			}
			if _, err := fsys.Stat(ours + "/meta.properties"); err == nil {
				t.Error("something was made all the same")
			}
		})
	}
}

// Kafka's own folder is refused by a broker, which says what to do.
func TestBrokerRefusesKafkasFolder(t *testing.T) {
	fsys := kafkaFolder(t)
	b, err := start(fsys, kafka)
	if err == nil {
		t.Error("it started", b.Close())
	} else if !strings.Contains(err.Error(), "millrace log import") {
		t.Errorf("the refusal does not name the way out: %v", err)
	}
}

// After a power cut at any file operation there is no new folder, or the whole one.
func TestPowerCut(t *testing.T) {
	mem := kafkaFolder(t)
	fsys := vfs.WithFaults(mem)
	var clones []*vfs.Mem
	fsys.OnOp(func(o vfs.Op) {
		if o.Seq%17 == 0 {
			clones = append(clones, mem.CrashClone(uint64(o.Seq)))
		}
	})
	adopt(t, fsys)
	clones = append(clones, mem.CrashClone(1))
	whole := 0
	for _, c := range clones {
		if _, err := c.Stat(ours); err != nil {
			continue
		}
		whole++
		clean(t, c)
		if got, want := records(t, c, ours, "orders"), records(t, mem, kafka, "orders"); !slices.Equal(got, want) {
			t.Errorf("%d records, Kafka had %d", len(got), len(want))
		}
		b, err := start(c, ours)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	if whole == 0 || len(clones) < 20 {
		t.Errorf("%d power cuts, %d whole folders", len(clones), whole)
	}
}

// An import that fails, here because the disk is full, leaves nothing behind, and can be tried again.
func TestFullDisk(t *testing.T) {
	mem := kafkaFolder(t)
	for n := 1; n < 45; n += 4 {
		fsys := vfs.WithFaults(mem)
		full := errors.New("no space left on device")
		fsys.Add(vfs.Rule{Kinds: vfs.OpWrite, Nth: n, Err: full})
		if _, err := Run(Options{FS: fsys, From: []string{kafka}, To: ours}); !errors.Is(err, full) {
			t.Fatalf("write %d failed, and the import says %v", n, err)
		}
		for _, left := range []string{ours, ours + unfinished} {
			if _, err := mem.Stat(left); err == nil {
				t.Fatalf("write %d failed, and %s is left", n, left)
			}
		}
	}
	adopt(t, mem)
	clean(t, mem)
}
