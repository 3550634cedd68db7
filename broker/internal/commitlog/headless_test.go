package commitlog

import (
	"fmt"
	"slices"
	"testing"

	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/vfs"
)

// unflushed is a disk with a log of some segments, none of which was ever synced.
func unflushed(t *testing.T, segments int) *vfs.Mem {
	t.Helper()
	mem := vfs.NewMem()
	if err := mem.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	if err := mem.SyncDir("/"); err != nil {
		t.Fatal(err)
	}
	l := &rollLog{t, openOn(t, mem)}
	for len(l.list()) < segments {
		l.put(1, 1, 1, "a record")
	}
	return mem
}

func openOn(t *testing.T, fsys vfs.FS) *Log {
	t.Helper()
	l, err := Open(Options{FS: fsys, Dir: "d", Name: "t-0", Config: Config{SegmentBytes: 300}, NewState: func() State { return stateless{} }})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// whole checks that a log begins at 0 and has no gap, and gives its end.
func whole(t *testing.T, l *Log, seed uint64) int64 {
	t.Helper()
	next := int64(0)
	for _, s := range l.list() {
		if s.base != next {
			t.Fatalf("seed %d: a segment begins at %d, the one before it ends at %d", seed, s.base, next)
		}
		if err := l.replayOne(s, func(b record.Batch, _ int64) error {
			if b.BaseOffset() != next {
				return fmt.Errorf("offset %d follows %d", b.BaseOffset(), next-1)
			}
			next = b.LastOffset() + 1
			return nil
		}); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	if l.LogStart() != 0 || l.Next() != next {
		t.Fatalf("seed %d: the log is from %d to %d, its batches end at %d", seed, l.LogStart(), l.Next(), next)
	}
	return next
}

// TestPowerCutBeforeTheFirstFlush: of a log that was never flushed a power cut leaves the names of any of its files. What a start
// makes of it is a beginning of the log, also when the power fails in that start: records behind what is lost are lost too.
func TestPowerCutBeforeTheFirstFlush(t *testing.T) {
	t.Parallel()
	disk := unflushed(t, 4)
	headless, kept := 0, 0
	for seed := range uint64(300) {
		crashed := disk.CrashClone(seed)
		names, err := crashed.List("d")
		if err != nil {
			t.Fatal(err)
		}
		logs := slices.DeleteFunc(names, func(name string) bool { _, suffix, _ := parseName(name); return suffix != logSuffix })
		if len(logs) > 0 && logs[0] != fileName(0, logSuffix) {
			headless++
		}
		faults := vfs.WithFaults(crashed)
		var again []*vfs.Mem
		faults.OnOp(func(op vfs.Op) {
			if op.Kind&vfs.OpChanges != 0 {
				again = append(again, crashed.CrashClone(seed+uint64(len(again))))
			}
		})
		l := openOn(t, faults)
		faults.OnOp(nil)
		if whole(t, l, seed) > 0 {
			kept++
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		for _, mem := range again {
			l := openOn(t, mem)
			whole(t, l, seed)
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if headless < 10 || kept < 10 {
		t.Errorf("of 300 power cuts %d took the first name and left a later one, %d left records", headless, kept)
	}
}
