package flush

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/core/clock"
	"github.com/millrace/millrace/core/vfs"
)

// TestLongJournalOnAFullDisk: a journal that is due to be written anew takes log starts also while there is no room for a second file,
// for without them retention could not make any. When a new file was begun and could not be put to use, nothing is said to be durable
// that only the old one has, which lost its name.
func TestLongJournalOnAFullDisk(t *testing.T) {
	t.Parallel()
	temp := JournalName + vfs.TempSuffix
	for _, c := range []struct {
		rule vfs.Rule
		goes bool
	}{
		{vfs.Rule{Kinds: vfs.OpCreate, Path: temp, Err: syscall.ENOSPC}, true},
		{vfs.Rule{Kinds: vfs.OpWrite, Path: temp, Err: syscall.ENOSPC, Short: 100}, true},
		{vfs.Rule{Kinds: vfs.OpSync, Path: temp, Err: syscall.EIO}, true},
		{vfs.Rule{Kinds: vfs.OpSyncDir, Err: syscall.EIO}, false},
		{vfs.Rule{Kinds: vfs.OpOpen, Path: JournalName, Err: syscall.EMFILE}, false},
	} {
		mem := vfs.NewMem()
		faults := vfs.WithFaults(mem)
		f := start(t, Options{FS: faults, Dir: "/", Clock: clock.NewManual(time.Unix(0, 0))})
		h := f.Register(ID{}, new(counter))
		for i := range int64(rewriteAt/(entryHead+8) + 10) {
			h.NoteSynced(i)
		}
		heal := faults.Add(c.rule)
		for n := range int64(3) {
			err := h.SetLogStart(100 + n)
			if c.goes && err != nil || !c.goes && !errors.Is(err, c.rule.Err) {
				t.Errorf("%v fails: log start %d: %v", c.rule.Kinds, 100+n, err)
			}
		}
		check := func(want int64) {
			t.Helper()
			g := start(t, Options{FS: mem.CrashClone(1), Dir: "/"})
			if p := g.Register(ID{}, new(counter)).Point(); p.LogStart < want {
				t.Errorf("%v fails: %+v after a power cut, want log start %d", c.rule.Kinds, p, want)
			}
			stop(t, g)
		}
		if c.goes {
			check(102)
		}
		heal()
		if err := h.SetLogStart(200); err != nil {
			t.Fatal(err)
		}
		check(200)
		if info, err := mem.Stat(JournalName); err != nil || info.Size > rewriteAt/2 {
			t.Errorf("%v failed: with room again it has %d bytes, %v", c.rule.Kinds, info.Size, err)
		}
		stop(t, f)
	}
}
