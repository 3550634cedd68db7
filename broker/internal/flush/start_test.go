package flush

import (
	"testing"

	"github.com/millrace/millrace/core/vfs"
)

// TestLogStartSurvivesAWrongBit: whichever single bit of the journal is wrong, the log start that was confirmed is known.
func TestLogStartSurvivesAWrongBit(t *testing.T) {
	t.Parallel()
	id := ID{Topic: [16]byte{7}, Partition: 3}
	clean := appendEntry(append([]byte(nil), journalHead...), kindSynced, id, 90)
	clean = appendStart(clean, id, 41)
	clean = appendEntry(clean, kindSynced, id, 95)
	for at := len(journalHead); at < len(clean); at++ {
		for bit := range 8 {
			data := append([]byte(nil), clean...)
			data[at] ^= 1 << bit
			fsys := vfs.NewMem()
			if err := fsys.MkdirAll("d"); err != nil {
				t.Fatal(err)
			}
			if err := vfs.WriteFile(fsys, "d/"+JournalName, data, true); err != nil {
				t.Fatal(err)
			}
			f, err := New(Options{FS: fsys, Dir: "d"})
			if err != nil {
				t.Fatal(err)
			}
			p := f.journal.point(id)
			if p.LogStart != 41 {
				t.Fatalf("byte %d bit %d: log start %d, want 41", at, bit, p.LogStart)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
