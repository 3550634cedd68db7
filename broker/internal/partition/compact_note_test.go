package partition

import (
	"syscall"
	"testing"

	"github.com/millrace/millrace/broker/internal/flush"
	"github.com/millrace/millrace/core/vfs"
)

// TestCompactionAfterFullDisk: a checkpoint that the recovery journal had no room for is made again when compaction needs it, also in a
// log to which nobody appends any more.
func TestCompactionAfterFullDisk(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	disk := vfs.WithFaults(mem)
	s := newStore(t, mem, disk, compacting(0), 5)
	s.senders = []*sender{plain}
	s.open()
	heal := disk.Add(vfs.Rule{Kinds: vfs.OpWrite, Path: flush.JournalName, Err: syscall.ENOSPC})
	for range 40 {
		s.produce()
	}
	s.p.Flush()
	if _, err := s.p.Compact(Compaction{NowMs: s.now(), TableBytes: 1 << 16}); err == nil {
		t.Fatal("compacted, although after a power cut nobody would know where recovery may begin")
	}
	heal()
	s.p.Flush() // which a flusher does by itself
	c, err := s.p.Compact(Compaction{NowMs: s.now(), TableBytes: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	if c.Counts == (Compacted{}).Counts {
		t.Fatal("nothing was compacted")
	}
	s.check("compacted")
	s.close()
	s.open()
	s.check("reopened")
	s.close()
}
