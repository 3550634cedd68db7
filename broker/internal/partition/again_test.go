package partition

import (
	"errors"
	"io/fs"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/core/vfs"
)

// crowded is a file system of a process without a descriptor for a file, or for a folder that is to be synced: the machine's says of
// that too that the opening failed.
type crowded struct {
	vfs.FS
	file, folder atomic.Bool
}

func (c *crowded) Open(path string) (vfs.File, error) {
	if c.file.Load() && filepath.Base(path) == "partition.metadata" {
		return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.EMFILE}
	}
	return c.FS.Open(path)
}

func (c *crowded) SyncDir(dir string) error {
	if c.folder.Load() && filepath.Base(dir) == "t-0" {
		return &fs.PathError{Op: "open", Path: dir, Err: syscall.EMFILE}
	}
	return c.FS.SyncDir(dir)
}

// TestFlushIsTriedAgain: a flush for which there is no descriptor takes nothing offline, and another one comes by itself: who sends the
// records again is recognised, and asks for no sync.
func TestFlushIsTriedAgain(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a file", "a folder"} {
		disk := &crowded{FS: vfs.NewMem()}
		r := newRig(t, disk, tiny)
		r.alone = true
		r.open()
		disk.file.Store(name == "a file")
		disk.folder.Store(name == "a folder")
		s := &sender{id: 1}
		batch := s.batch(t, 1, "a")
		again := append([]byte(nil), batch...)
		a, err := r.p.Append(batch, AppendOptions{RequestVersion: 12})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := await(r.p, a.LastOffset); !errors.Is(err, syscall.EMFILE) || offline(err) {
			t.Fatalf("%s: %v", name, err)
		}
		disk.file.Store(false)
		disk.folder.Store(false)
		a, err = r.p.Append(again, AppendOptions{RequestVersion: 12})
		if err != nil || !a.Duplicate {
			t.Fatalf("%s: %+v, %v", name, a, err)
		}
		done := make(chan error, 1)
		r.p.Await(a.LastOffset, func(err error) { done <- err })
		r.clock.Advance(time.Second)
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
		r.close()
	}
}
