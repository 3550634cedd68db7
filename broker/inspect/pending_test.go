package inspect

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker/internal/flush"
)

// A folder whose broker lost its power has append journals. To look at it changes nothing and says so; whatever writes puts their bytes
// in place first, as the broker would; and without the recovery journal nobody can.
func TestAppendJournalsOfAPowerCut(t *testing.T) {
	fsys := ownFolder(t, 1)
	b := node(t, fsys)
	cl := client(t, b)
	for i := range 20 {
		send(t, cl, "events", int32(i%2), 1)
		send(t, cl, "table", 0, 1)
	}
	cl.Close()
	cut := fsys.CrashClone(5)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	want := contents(t, cut.Clone(), kgo.ReadUncommitted(), kgo.ReadCommitted())

	lost := cut.Clone()
	if err := lost.Remove(filepath.Join(ownDir, flush.JournalName)); err != nil {
		t.Fatal(err)
	}
	d, err := Open(lost, ownDir)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.NewJournal(VerifyOptions{}); !errors.Is(err, ErrLostMore) {
		t.Errorf("a new journal beside append journals: %v", err)
	}

	said := func() bool {
		return slices.ContainsFunc(verifyAt(t, cut, ownDir), func(f Finding) bool {
			return f.Severity == Note && strings.HasPrefix(f.File, flush.CarryName)
		})
	}
	for range 2 { // looking takes nothing away
		if !said() {
			t.Fatal("verify does not name the append journals")
		}
	}
	repairAt(t, cut, ownDir)
	if n, err := flush.Pending(cut, ownDir); n != 0 || err != nil || said() {
		t.Fatalf("%d bytes are pending after a repair, %v", n, err)
	}
	if again := faults(verifyAt(t, cut, ownDir)); slices.ContainsFunc(again, func(f Finding) bool { return f.Severity > TornTail }) {
		t.Errorf("after the repair: %v", again)
	}
	if got := contents(t, cut, kgo.ReadUncommitted(), kgo.ReadCommitted()); !slices.Equal(got, want) {
		t.Errorf("%d lines after the repair, %d with the broker's own start", len(got), len(want))
	}
}
