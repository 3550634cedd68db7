package partition

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/vfs"
)

// TestSyncThatFailedIsForgotten is rule 3 of package vfs over a restart of the process: the kernel may take bytes whose sync failed
// for written, and answer nil to the next process. What is acknowledged after the restart, and what is found then, is there after
// a power cut all the same.
func TestSyncThatFailedIsForgotten(t *testing.T) {
	t.Parallel()
	for seed := range uint64(16) {
		mem := vfs.NewMem()
		disk := vfs.WithFaults(mem)
		r := newRig(t, disk, tiny)
		p := r.open()
		for i := range 3 {
			appendOne(t, p, int64(i), "first")
			if err := await(p, int64(i)); err != nil {
				t.Fatal(err)
			}
		}
		heal := disk.Add(vfs.Rule{Kinds: vfs.OpSync, Path: "*.log", Nth: 1, Err: syscall.EIO})
		appendOne(t, p, 3, strings.Repeat("x", 2000))
		if err := await(p, 3); err == nil {
			t.Fatal("acknowledged, and the sync has failed")
		}
		if err := p.Close(); err == nil {
			t.Fatal("closing does not tell that the partition is offline")
		}
		heal()
		if err := r.flusher.Close(); err != nil {
			t.Fatal(err)
		}
		p = r.open() // another process on the same kernel
		found := p.Marks().LogEnd
		appendOne(t, p, found, "second")
		if err := await(p, found); err != nil {
			t.Fatal(err)
		}
		left := mem.CrashClone(seed)
		r.close()
		after := newRig(t, left, tiny)
		p = after.open()
		var got []int64
		if err := p.Replay(func(b record.Batch) error { got = append(got, b.BaseOffset()); return nil }); err != nil {
			t.Fatal(err)
		}
		if want := []int64{0, 1, 2, 3, 4}; found != 4 || !slices.Equal(got, want) {
			t.Fatalf("seed %d: batches at %d, %d were found after the sync had failed, want %d", seed, got, found, want)
		}
		after.close()
	}
}

func appendOne(t *testing.T, p *Partition, want int64, value string) {
	t.Helper()
	a, err := p.Append(plain.batch(t, 1_700_000_000_000, value), AppendOptions{RequestVersion: 9})
	if err != nil || a.BaseOffset != want {
		t.Fatalf("append: %+v, %v, want offset %d", a, err, want)
	}
}
