package inspect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/internal/flush"
	"github.com/millrace/millrace/broker/internal/seam"
	"github.com/millrace/millrace/core/vfs"
)

// contents is what clients see of a folder when a broker runs on it: every record, committed and not, and the groups' offsets.
func contents(t *testing.T, fsys vfs.FS, levels ...kgo.IsolationLevel) []string {
	t.Helper()
	b := node(t, fsys)
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()
	var out []string
	ctx := context.Background()
	adm := kadm.NewClient(client(t, b))
	defer adm.Close()
	for _, level := range levels {
		ends, err := adm.ListEndOffsets(ctx, "events", "table")
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, consume(t, client(t, b, kgo.FetchIsolationLevel(level), kgo.ConsumeTopics("events", "table"), kgo.KeepControlRecords(),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())), ends)...)
	}
	for _, group := range []string{"group-0", "group-1"} {
		offsets, err := adm.FetchOffsets(ctx, group)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range offsets.Sorted() {
			out = append(out, fmt.Sprint(group, " ", o.Topic, " ", o.Partition, " ", o.At))
		}
	}
	return out
}

// consume reads every partition up to its end.
func consume(t *testing.T, cl *kgo.Client, ends kadm.ListedOffsets) []string {
	t.Helper()
	defer cl.Close()
	left := map[string]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[fmt.Sprint(o.Topic, "-", o.Partition)] = o.Offset
		}
	})
	var out []string
	for len(left) > 0 {
		f := cl.PollFetches(context.Background())
		if err := f.Err(); err != nil {
			t.Fatal(err)
		}
		f.EachRecord(func(r *kgo.Record) {
			name := fmt.Sprint(r.Topic, "-", r.Partition)
			if !r.Attrs.IsControl() {
				out = append(out, fmt.Sprintf("%s %d %s %s", name, r.Offset, r.Key, r.Value))
			}
			if r.Offset+1 >= left[name] {
				delete(left, name)
			}
		})
	}
	slices.Sort(out)
	return out
}

func repairAt(t *testing.T, fsys vfs.FS, dir string) (changes []Change, left []Finding) {
	t.Helper()
	d, err := Open(fsys, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Repair(VerifyOptions{}, func(c Change) { changes = append(changes, c) }, func(f Finding) { left = append(left, f) }); err != nil {
		t.Fatal(err)
	}
	return changes, left
}

// spoilt are ways to spoil what is derived.
var spoilt = []struct {
	name string
	do   func(t *testing.T, fsys vfs.FS, path string)
}{
	{"removed", func(t *testing.T, fsys vfs.FS, path string) {
		if err := fsys.Remove(path); err != nil {
			t.Fatal(err)
		}
	}},
	{"flipped", func(t *testing.T, fsys vfs.FS, path string) {
		info, err := fsys.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size > 0 {
			flip(t, fsys, path, info.Size/2, 2)
		}
	}},
	{"text", func(t *testing.T, fsys vfs.FS, path string) {
		put(t, fsys, path, []byte("this is nothing that belongs here\n"))
	}},
}

// Everything that is derived is spoilt, all of it at once; a repair makes the folder clean, and clients see what they saw.
func TestRepairOwnFolder(t *testing.T) {
	fsys := ownFolder(t, 3)
	levels := []kgo.IsolationLevel{kgo.ReadUncommitted(), kgo.ReadCommitted()}
	want := contents(t, fsys.Clone(), levels...)
	for _, s := range spoilt {
		t.Run(s.name, func(t *testing.T) {
			c := fsys.Clone()
			n := 0
			for _, path := range everyFile(t, c, ownDir) {
				switch name := filepath.Base(path); {
				case name == epochsName, name == metadataName && !strings.Contains(path, metadataTopic):
				case slices.Contains([]string{indexSuffix, timeSuffix, txnSuffix, sumSuffix, snapshotSuffix}, filepath.Ext(name)):
				default:
					continue
				}
				s.do(t, c, path)
				n++
			}
			found := len(faults(verifyAt(t, c, ownDir)))
			changes, left := repairAt(t, c, ownDir)
			if len(left) > 0 {
				t.Errorf("left over: %v", left)
			}
			if again := faults(verifyAt(t, c, ownDir)); len(again) > 0 {
				t.Errorf("after the repair: %v", again)
			}
			t.Logf("%d files spoilt, %d findings, %d files made anew", n, found, len(changes))
			if got := contents(t, c, levels...); !slices.Equal(got, want) {
				t.Errorf("clients see something else: %d lines, had been %d", len(got), len(want))
			}
			if again := faults(verifyAt(t, c, ownDir)); len(again) > 0 {
				t.Errorf("after a broker ran: %v", again)
			}
		})
	}
}

// A repair of what Kafka left, where no journal is.
func TestRepairGolden(t *testing.T) {
	for name, want := range damaged {
		if !slices.ContainsFunc(want, func(s string) bool { return strings.HasPrefix(s, "rebuildable") }) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			fsys := vfs.NewMem()
			dir := "/" + filepath.Base(name)
			lay(t, fsys, name, dir)
			layUnchanged(t, fsys, name)
			if changes, left := repairAt(t, fsys, dir); len(changes) == 0 || len(left) > 0 {
				t.Errorf("changed %v, left %v", changes, left)
			}
			if again := faults(verifyAt(t, fsys, dir)); len(again) > 0 {
				t.Errorf("after the repair: %v", again)
			}
		})
	}
}

func TestRepairRefusesFolderInUse(t *testing.T) {
	fsys := vfs.NewMem()
	b := node(t, fsys)
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, dir := range []string{ownDir, filepath.Join(ownDir, metadataTopic+"-0")} {
		d, err := Open(fsys, dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Repair(VerifyOptions{}, nil, nil); !errors.Is(err, ErrInUse) {
			t.Errorf("repair of %s: %v", dir, err)
		}
		if _, err := d.Truncate(0, nil); dir != ownDir && !errors.Is(err, ErrInUse) {
			t.Errorf("truncation of %s: %v", dir, err)
		}
	}
}

// Damaged records are cut off where it was asked for, and only there; what is cut is kept, and the broker goes on.
func TestTruncate(t *testing.T) {
	fsys := ownFolder(t, 3)
	dir := filepath.Join(ownDir, "events-0")
	p, err := openPartition(fsys, dir)
	if err != nil {
		t.Fatal(err)
	}
	middle := p.logs[len(p.logs)/2]
	flip(t, fsys, p.path(fileName(middle, logSuffix)), 70, 1) // in the first batch of the segment
	if _, left := repairAt(t, fsys, ownDir); len(left) != 1 || left[0].Offset != middle {
		t.Fatalf("a repair leaves %v", left)
	}
	d, err := Open(fsys, dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, offset := range []int64{middle + 1, 1 << 40, -1} {
		if _, err := d.Truncate(offset, nil); !errors.Is(err, ErrNoCut) {
			t.Errorf("cut at %d: %v", offset, err)
		}
	}
	saved, err := d.Truncate(middle, func(Change) {})
	if err != nil {
		t.Fatal(err)
	}
	if again := faults(verifyAt(t, fsys, ownDir)); len(again) > 0 {
		t.Errorf("after the cut: %v", again)
	}
	old := verifyAt(t, fsys, saved)
	if !slices.ContainsFunc(old, func(f Finding) bool { return f.Severity == Damage && f.Offset == middle }) {
		t.Errorf("the copy has not got the damage: %v", old)
	}
	// A transaction whose marker was cut off stays open until its coordinator's answer to that, so committed readers wait.
	for _, line := range contents(t, fsys, kgo.ReadUncommitted()) {
		var name, key, value string
		var offset int64
		if n, _ := fmt.Sscan(line, &name, &offset, &key, &value); n == 4 && name == "events-0" && offset >= middle {
			t.Errorf("record %q is still there", line)
		}
	}
	b := node(t, fsys)
	cl := client(t, b)
	send(t, cl, "events", 0, 3)
	cl.Close()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if again := faults(verifyAt(t, fsys, ownDir)); len(again) > 0 {
		t.Errorf("after going on: %v", again)
	}
}

// A folder that was copied without its journal is refused by the broker, which names the way out; and that leads back to the same
// contents.
func TestNewJournal(t *testing.T) {
	fsys := ownFolder(t, 2)
	levels := []kgo.IsolationLevel{kgo.ReadUncommitted(), kgo.ReadCommitted()}
	want := contents(t, fsys.Clone(), levels...)
	d, err := Open(fsys, ownDir)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.NewJournal(VerifyOptions{}); !errors.Is(err, ErrHasJournal) {
		t.Errorf("beside the old one: %v", err)
	}
	if err := fsys.Remove(filepath.Join(ownDir, flush.JournalName)); err != nil {
		t.Fatal(err)
	}
	ctx := seam.With(context.Background(), seam.Options{FS: fsys})
	if b, err := broker.Start(ctx, broker.Config{Dir: ownDir, Logger: slog.New(slog.DiscardHandler)}); err == nil {
		t.Fatal("a broker starts without the journal", b.Close())
	} else if !strings.Contains(err.Error(), "--new-journal "+ownDir) {
		t.Errorf("the refusal does not name the way out: %v", err)
	}
	if d, err = Open(fsys, ownDir); err != nil {
		t.Fatal(err)
	}
	if err := d.NewJournal(VerifyOptions{}); err != nil {
		t.Fatal(err)
	}
	if again := faults(verifyAt(t, fsys, ownDir)); len(again) > 0 {
		t.Errorf("with the new journal: %v", again)
	}
	// What DeleteRecords hid is there again, and nothing else.
	got := contents(t, fsys, levels...)
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("%q is gone", line)
		}
	}
}
