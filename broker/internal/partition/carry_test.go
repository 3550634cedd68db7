package partition

import (
	"strings"
	"syscall"
	"testing"

	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/broker/internal/flush"
	"github.com/millrace/millrace/core/vfs"
)

// TestCarriedAppend: once a log is open, small batches are acknowledged by an append journal alone; a batch that is too large for one,
// and Close, sync the log file. After a kill they are there.
func TestCarriedAppend(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	faults := vfs.WithFaults(mem)
	r := newRig(t, faults, commitlog.Config{})
	p := r.open()
	r.append(plain.batch(t, 1, "the first makes names durable"))
	syncs := map[string]int{}
	count := make(chan map[string]int, 1)
	count <- syncs
	faults.OnOp(func(op vfs.Op) {
		if op.Kind == vfs.OpSync {
			m := <-count
			m[op.Path[strings.LastIndex(op.Path, "/")+1:]]++
			count <- m
		}
	})
	for i := range 20 {
		r.append(plain.batch(t, int64(i), "small"))
	}
	m := <-count
	if m["00000000000000000000.log"] != 0 || m[flush.CarryName+"0"] < 20 {
		t.Fatalf("%v", m)
	}
	count <- m
	killed := mem.CrashClone(1)
	r.append(plain.batch(t, 1, strings.Repeat("x", 100_000)))
	m = <-count
	if m["00000000000000000000.log"] != 1 {
		t.Fatalf("%v", m)
	}
	count <- m
	faults.OnOp(nil)
	if marks := p.Marks(); marks.HighWatermark != 22 {
		t.Fatalf("%+v", marks)
	}
	r.close()
	r.fs = killed
	p = r.open()
	if have := records(t, p, 0, 1<<20, false); len(have) != 21 || have[20].value != "small" {
		t.Fatalf("%d records after a power cut, want 21", len(have))
	}
	r.close()
}

// TestFailedAppendJournal: when an append journal can't be written or synced, the log file is synced instead, and nothing is lost or
// said too early.
func TestFailedAppendJournal(t *testing.T) {
	t.Parallel()
	for _, kind := range []vfs.Kind{vfs.OpCreate, vfs.OpWrite, vfs.OpSync} {
		mem := vfs.NewMem()
		faults := vfs.WithFaults(mem)
		r := newRig(t, faults, commitlog.Config{})
		p := r.open()
		r.append(plain.batch(t, 1, "first"))
		remove := faults.Add(vfs.Rule{Kinds: kind, Path: flush.CarryName + "*", Err: syscall.EIO})
		for range 3 {
			r.append(plain.batch(t, 1, "with a failing journal")) // waits for the acknowledgement
		}
		if p.durableSize() != p.log.End() {
			t.Fatal("acknowledged and not durable")
		}
		cut := mem.CrashClone(3)
		remove()
		r.append(plain.batch(t, 1, "goes on"))
		r.close()
		r.fs = cut
		p = r.open()
		if have := records(t, p, 0, 1<<20, false); len(have) != 4 {
			t.Fatalf("%s fails: %d records after a power cut, want 4", kind, len(have))
		}
		r.close()
	}
}

// durableSize is where the durable part of the log ends.
func (p *Partition) durableSize() commitlog.Position {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.durable
}
