package partition

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/broker/internal/flush"
	"github.com/millrace/millrace/core/vfs"
	"github.com/millrace/millrace/txn/producer"
)

// TestRealDisk is the whole path on the machine's file system: sections have descriptors for sendfile, a restart finds
// everything, and a read-only folder is a clear error.
func TestRealDisk(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	if kept := os.Getenv("MILLRACE_KEEP_LOG"); kept != "" { // to look at the files with other tools
		data = kept
	}
	open := func() (*Partition, *flush.Flusher, error) {
		f, err := flush.New(flush.Options{FS: vfs.OS(), Dir: data})
		if err != nil {
			t.Fatal(err)
		}
		p, err := Open(Options{
			FS: vfs.OS(), Dir: filepath.Join(data, "t-0"), Topic: "t", TopicID: topicID, Log: tiny, Flusher: f, Durable: true,
		})
		return p, f, err
	}
	shut := func(p *Partition, f *flush.Flusher) {
		t.Helper()
		if err := errors.Join(p.Close(), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	p, f, err := open()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, p: p}
	idem, txn := &sender{id: 1}, &sender{id: 2, txn: true}
	for i := range int64(40) {
		r.append(idem.batch(t, 1000+i, fmt.Sprint("i", i, strings.Repeat("x", 200))))
		r.append(txn.batch(t, 1000+i, fmt.Sprint("t", i)))
		if i%8 == 7 {
			if _, err := p.AppendMarker(producer.Marker{ProducerID: 2, Epoch: txn.epoch + 1, Commit: i == 15, TxnVersion: 2}); err != nil {
				t.Fatal(err)
			}
			txn.epoch, txn.sequence = txn.epoch+1, 0
		}
	}
	if err := await(p, p.Marks().LogEnd-1); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint(committed(t, p, 0, 1000))
	read, err := p.Read(ReadOptions{Offset: 5, MaxBytes: 1 << 20})
	if err != nil || len(read.Sections) < 2 {
		t.Fatal(read, err)
	}
	for _, s := range read.Sections {
		if _, ok := s.File.Fd(); !ok {
			t.Error("a section without a descriptor")
		}
	}
	read.Release()
	shut(p, f)
	if p, f, err = open(); err != nil {
		t.Fatal(err)
	}
	if have := fmt.Sprint(committed(t, p, 0, 1000)); have != want {
		t.Errorf("after a restart\n%s\nbefore\n%s", have, want)
	}
	shut(p, f)
}

// TestReadOnlyFolder is a clear error that names the folder.
func TestReadOnlyFolder(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	if os.Geteuid() == 0 {
		t.Skip("root writes anywhere")
	}
	folder := filepath.Join(data, "t-0")
	if err := os.Mkdir(folder, 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(folder, 0o700) // so that the test's folder can be removed
	f, err := flush.New(flush.Options{FS: vfs.OS(), Dir: data})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(Options{FS: vfs.OS(), Dir: folder, Topic: "t", TopicID: topicID, Flusher: f, Durable: true})
	if err == nil || !strings.Contains(err.Error(), folder) {
		t.Errorf("%v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
