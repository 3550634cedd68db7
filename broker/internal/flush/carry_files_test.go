package flush

import (
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/millrace/millrace/core/vfs"
)

// TestRedoHoldsFewFiles: a broker that serves more partitions than its process may have files open starts again after a kill, whatever
// the order in which their bytes came.
func TestRedoHoldsFewFiles(t *testing.T) {
	t.Parallel()
	const n, rounds = 3*redoFiles + 7, 3
	r := newCarryRig(t, n, 1<<20)
	for range rounds {
		var all []<-chan error
		for _, x := range r.targets {
			done, err := x.append([]byte("carried "))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, done)
		}
		for _, done := range all {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
	}
	disk := r.mem.CrashClone(1)
	faults := vfs.WithFaults(disk)
	var mu sync.Mutex // the redo syncs several files at the same time
	open, most, syncs := 0, 0, 0
	faults.OnOp(func(op vfs.Op) {
		mu.Lock()
		defer mu.Unlock()
		switch op.Kind {
		case vfs.OpOpen, vfs.OpCreate:
			open++
			most = max(most, open)
		case vfs.OpClose:
			open--
		case vfs.OpSync:
			syncs++
		}
	})
	f, err := New(Options{FS: faults, Dir: "d"})
	if err != nil {
		t.Fatal(err)
	}
	if most > redoFiles+10 {
		t.Errorf("%d files were open at the same time", most)
	}
	if syncs > n+10 {
		t.Errorf("%d syncs for %d files", syncs, n)
	}
	for _, x := range r.targets {
		if have := x.content(t, disk, "d"); string(have) != string(x.written) {
			t.Fatalf("%s: %q, want %q", x.name, have, x.written)
		}
	}
	if err := errors.Join(f.Close(), r.f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestRedoMeetsErrors: an error of the disk ends the start, says which file it was, and gives nothing up: the next start does all of it.
func TestRedoMeetsErrors(t *testing.T) {
	t.Parallel()
	r := newCarryRig(t, 4, 1<<20)
	for _, x := range r.targets {
		done, err := x.append([]byte("carried"))
		if err != nil || <-done != nil {
			t.Fatal(err)
		}
	}
	cut := r.mem.CrashClone(2)
	for _, kind := range []vfs.Kind{vfs.OpOpen, vfs.OpRead, vfs.OpWrite, vfs.OpSync, vfs.OpClose, vfs.OpRename, vfs.OpRemove, vfs.OpSyncDir} {
		for nth := 1; ; nth++ {
			disk := cut.Clone()
			faults := vfs.WithFaults(disk)
			remove := faults.Add(vfs.Rule{Kinds: kind, Path: "*.log", Nth: nth, Err: syscall.EIO})
			if kind&(vfs.OpRename|vfs.OpRemove|vfs.OpSyncDir) != 0 {
				remove()
				remove = faults.Add(vfs.Rule{Kinds: kind, Nth: nth, Err: syscall.EIO})
			}
			f, err := New(Options{FS: faults, Dir: "d"})
			if err == nil { // there is no n-th
				if err := f.Close(); err != nil {
					t.Fatal(err)
				}
				break
			}
			if !errors.Is(err, syscall.EIO) || kind&(vfs.OpOpen|vfs.OpWrite|vfs.OpSync) != 0 && !strings.Contains(err.Error(), ".log") {
				t.Errorf("%v: %v", kind, err)
			}
			remove()
			if f, err = New(Options{FS: disk.CrashClone(uint64(nth)), Dir: "d"}); err != nil {
				t.Fatalf("%v, the %d-th: the next start: %v", kind, nth, err)
			}
			for i, x := range r.targets {
				if have := x.content(t, f.o.FS, "d"); string(have) != "carried" {
					t.Fatalf("%v, the %d-th: t-%d has %q after the next start", kind, nth, i, have)
				}
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := r.f.Close(); err != nil {
		t.Fatal(err)
	}
}
