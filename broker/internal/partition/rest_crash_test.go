package partition

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/core/vfs"
)

// TestFilesRestAfterPowerCut: what a recovery found durable is durable: the files of old segments that somebody reads are closed again,
// and nobody asks for syncs again and again that have nothing to do.
func TestFilesRestAfterPowerCut(t *testing.T) {
	t.Parallel()
	disk := vfs.NewMem()
	c := tiny
	c.Relaxed = true // only so that nothing syncs the last batch
	r := newRig(t, disk, c)
	r.open()
	const n = 60
	for i := range n {
		r.acked(plain.batch(t, int64(i), fmt.Sprint(i, strings.Repeat("x", 200))))
	}
	r.p.Flush() // with a checkpoint behind the last roll
	killed := disk.Clone()
	r.append(plain.batch(t, n, "not synced"))
	end := r.p.log.End()
	tail, err := vfs.ReadFile(disk, filepath.Join("data", "t-0", fmt.Sprintf("%020d.log", end.Segment)))
	if err == nil {
		err = vfs.WriteFile(killed, filepath.Join("data", "t-0", fmt.Sprintf("%020d.log", end.Segment)), tail, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.close()
	r.fs = killed
	r.open()
	if got := values(t, r.p); len(got) != n+1 {
		t.Fatalf("%d records", len(got))
	}
	for range 3 {
		if r.rest() {
			r.p.Flush()
		}
	}
	if r.rest() {
		t.Error("a sync is asked for where everything is synced")
	}
	if open := r.files.Open(); open != 0 {
		t.Errorf("%d files that nobody uses stay open", open)
	}
	r.close()
}
