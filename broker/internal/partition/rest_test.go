package partition

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/broker/internal/flush"
	"github.com/millrace/millrace/core/vfs"
)

// rest lets the partition's files count as idle, and closes those that can be.
func (r *rig) rest() (asked bool) {
	for range 5 {
		r.files.Turn()
	}
	return r.p.Rest()
}

// acked appends a batch and waits for its acknowledgement.
func (r *rig) acked(b []byte) {
	r.t.Helper()
	if err := await(r.p, r.append(b).LastOffset); err != nil {
		r.t.Fatal(err)
	}
}

// settled rests until nothing is left that a sync has to come first for.
func (r *rig) settled() {
	r.t.Helper()
	for r.rest() {
		r.p.Flush()
	}
}

// TestFilesRest: a file that nobody uses is closed once all its bytes are synced, not while only an append journal has them, and the
// next append and the next fetch open it again.
func TestFilesRest(t *testing.T) {
	t.Parallel()
	disk := vfs.WithFaults(vfs.NewMem())
	r := newRig(t, disk, tiny)
	var synced, opened atomic.Int32
	disk.OnOp(func(op vfs.Op) {
		if strings.HasSuffix(op.Path, ".log") {
			switch op.Kind {
			case vfs.OpSync:
				synced.Add(1)
			case vfs.OpOpen:
				opened.Add(1)
			}
		}
	})
	r.open()
	r.acked(plain.batch(t, 1, "a")) // the first flush is one of the files: names
	r.acked(plain.batch(t, 1, "b"))
	before := synced.Load()
	if !r.rest() || r.files.Open() != 1 {
		t.Fatalf("%d files are open; one has a byte that only the append journal has", r.files.Open())
	}
	r.settled()
	if n := r.files.Open(); n != 0 {
		t.Fatalf("%d files are open", n)
	}
	if synced.Load() == before {
		t.Fatal("a file was closed whose bytes were not synced")
	}
	opens := opened.Load()
	r.acked(plain.batch(t, 1, "c"))
	if r.files.Open() != 1 || opened.Load() != opens+1 {
		t.Fatalf("%d files are open, %d times opened", r.files.Open(), opened.Load()-opens)
	}
	r.settled()
	read, err := r.p.Read(ReadOptions{MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	r.settled() // a file that somebody reads stays
	if r.files.Open() != 1 {
		t.Fatalf("%d files are open, one is being read", r.files.Open())
	}
	if got := len(bytesOf(t, read)); got != read.Bytes {
		t.Fatalf("read %d bytes of %d", got, read.Bytes)
	}
	read.Release()
	r.settled()
	if r.files.Open() != 0 {
		t.Fatalf("%d files are open after the read", r.files.Open())
	}
	r.close()
	if r.files.Open() != 0 {
		t.Fatalf("%d files are open after closing", r.files.Open())
	}
}

// TestFailedSyncIsNotForgotten: bytes whose sync failed are not taken for synced because their file was closed and opened again.
func TestFailedSyncIsNotForgotten(t *testing.T) {
	t.Parallel()
	disk := vfs.WithFaults(vfs.NewMem())
	r := newRig(t, disk, tiny)
	r.open()
	r.acked(plain.batch(t, 1, "a"))
	r.acked(plain.batch(t, 1, "b")) // in the append journal
	heal := disk.Add(vfs.Rule{Kinds: vfs.OpSync, Path: "*.log", Err: syscall.EIO})
	if !r.rest() {
		t.Fatal("the file has bytes that are not synced, and no sync was asked for")
	}
	over := make(chan error, 1)
	r.p.Await(1<<40, func(err error) { over <- err })
	if err := <-over; err == nil {
		t.Fatal("the sync failed, and the partition goes on")
	}
	heal()
	if r.rest(); r.files.Open() != 1 {
		t.Fatal("the file is closed, and with it the knowledge that its sync failed")
	}
	if _, err := r.p.Append(plain.batch(t, 1, "c"), AppendOptions{RequestVersion: 12}); !offline(err) {
		t.Fatalf("append: %v", err)
	}
}

func offline(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Offline
}

// TestNoDescriptorLeft: while the process has no descriptor left, appends and fetches are refused, with an error that can be tried
// again, and they work as soon as there is one.
func TestNoDescriptorLeft(t *testing.T) {
	t.Parallel()
	disk := vfs.WithFaults(vfs.NewMem())
	r := newRig(t, disk, tiny)
	r.open()
	r.acked(plain.batch(t, 1, "a"))
	r.settled()
	heal := disk.Add(vfs.Rule{Kinds: vfs.OpOpen, Err: syscall.EMFILE})
	for range 2 {
		_, err := r.p.Append(plain.batch(t, 1, "b"), AppendOptions{RequestVersion: 12})
		if e := (*Error)(nil); !errors.As(err, &e) || e.Code != CodeKafkaStorageError || e.Offline || !errors.Is(err, syscall.EMFILE) {
			t.Fatalf("append: %v", err)
		}
		if _, err := r.p.Read(ReadOptions{MaxBytes: 100}); !errors.Is(err, syscall.EMFILE) {
			t.Fatalf("read: %v", err)
		}
	}
	heal()
	r.acked(plain.batch(t, 1, "b"))
	if got := values(t, r.p); !slices.Equal(got, []string{"a", "b"}) {
		t.Fatalf("records %q", got)
	}
	r.close()
}

func values(t *testing.T, p *Partition) (out []string) {
	t.Helper()
	for _, g := range committed(t, p, 0, 1<<20) {
		out = append(out, g.value)
	}
	return out
}

// TestRestBesideEverything appends, reads and compacts while every file counts as idle all the time.
func TestRestBesideEverything(t *testing.T) {
	t.Parallel()
	c := tiny
	c.Compacted = true
	r := newRig(t, vfs.NewMem(), c)
	r.open()
	stop := make(chan struct{})
	var side sync.WaitGroup
	beside := func(f func()) {
		side.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					f()
				}
			}
		})
	}
	beside(func() { r.rest() })
	beside(func() {
		read, err := r.p.Read(ReadOptions{Offset: r.p.Marks().LogStart, MaxBytes: 1 << 20})
		if err != nil {
			t.Error(err)
			return
		}
		if got := len(bytesOf(t, read)); got != read.Bytes {
			t.Errorf("read %d bytes of %d", got, read.Bytes)
		}
		read.Release()
	})
	beside(func() {
		if _, err := r.p.Compact(Compaction{NowMs: 1_700_000_000_000}); err != nil {
			t.Error(err)
		}
	})
	for i := range 300 {
		r.acked(plain.batch(t, int64(i), fmt.Sprint(i, strings.Repeat("x", 200))))
	}
	close(stop)
	side.Wait()
	if got := values(t, r.p); got[len(got)-1][:3] != "299" {
		t.Fatalf("the last record is %q", got[len(got)-1])
	}
	r.close()
	if r.files.Open() != 0 {
		t.Fatalf("%d files are open", r.files.Open())
	}
}

// TestSilentPartitionsHoldNoFile: of many partitions that are opened only as many have a file open as may stay so.
func TestSilentPartitionsHoldNoFile(t *testing.T) {
	t.Parallel()
	disk := vfs.NewMem()
	if err := disk.MkdirAll("data"); err != nil {
		t.Fatal(err)
	}
	files := commitlog.NewFiles(10)
	f, err := flush.New(flush.Options{FS: disk, Dir: "data"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range int32(100) {
		p, err := Open(Options{FS: disk, Dir: filepath.Join("data", fmt.Sprint("t-", i)), Topic: "t", TopicID: topicID, Index: i, Flusher: f, Files: files})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	if n := files.Open(); n < 10 || n > 11 {
		t.Fatalf("%d files are open, 10 may be", n)
	}
}
