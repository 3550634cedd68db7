package inspect

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/core/vfs"
)

// verifyAt collects the findings about a folder.
func verifyAt(t *testing.T, fsys vfs.FS, dir string) []Finding {
	t.Helper()
	d, err := Open(fsys, dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []Finding
	if err := d.Verify(VerifyOptions{}, func(f Finding) { out = append(out, f) }); err != nil {
		t.Fatal(err)
	}
	return out
}

// faults leaves out the notes.
func faults(fs []Finding) []Finding {
	var out []Finding
	for _, f := range fs {
		if f.Severity > Note {
			out = append(out, f)
		}
	}
	return out
}

// What Kafka wrote and nobody damaged is clean: the checks hold for the logs of another broker, with everything that compaction,
// retention, old clients and hostile ones leave behind.
func TestGoldenIsClean(t *testing.T) {
	for _, name := range cases(t) {
		if strings.HasPrefix(name, "6-") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			fsys := vfs.NewMem()
			lay(t, fsys, name, "/"+path.Base(name))
			for _, f := range faults(verifyAt(t, fsys, "/"+path.Base(name))) {
				t.Error(f)
			}
		})
	}
}

// damaged says what is wrong with the golden folders that were damaged by hand, or by a kill: severity, file, position.
var damaged = map[string][]string{
	// Killed, then damaged. Kafka's recovery would look at all of it.
	"6-damaged-before/dmg-crc-0":      {"damage 00000000000000000000.log 450"},
	"6-damaged-before/dmg-cut-0":      {"torn tail 00000000000000000000.log 992"},
	"6-damaged-before/dmg-epoch-0":    {"rebuildable leader-epoch-checkpoint -1"},
	"6-damaged-before/dmg-gap-0":      {"damage 00000000000000000008.log -1"},
	"6-damaged-before/dmg-garbage-0":  {"torn tail 00000000000000000000.log 1084"},
	"6-damaged-before/dmg-index-0":    {"rebuildable 00000000000000000000.index 0"},
	"6-damaged-before/dmg-magic-0":    {"damage 00000000000000000000.log 450"},
	"6-damaged-before/dmg-meta-0":     {"damage partition.metadata -1"},
	"6-damaged-before/dmg-noindex-0":  {"rebuildable 00000000000000000000.index -1", "rebuildable 00000000000000000000.timeindex -1"},
	"6-damaged-before/dmg-oldseg-0":   {"damage 00000000000000000000.log 90"},
	"6-damaged-before/dmg-snapshot-0": {"rebuildable 00000000000000000024.snapshot 0"},
	"6-damaged-before/dmg-txnindex-0": {"rebuildable 00000000000000000000.txnindex 102"},
	"6-damaged-before/dmg-zeros-0":    {"torn tail 00000000000000000000.log 1084"},
	// Stopped cleanly, then damaged. Kafka looks at nothing.
	"6-cleandamage-before/plain-decompressed-0": {"rebuildable leader-epoch-checkpoint -1"},
	"6-cleandamage-before/plain-gzip-0":         {"damage 00000000000000000000.log 1183"},
	"6-cleandamage-before/plain-lz4-0":          {"rebuildable 00000000000000000000.index 0"},
	"6-cleandamage-before/plain-none-0":         {"damage 00000000000000000000.log 1228"},
	"6-cleandamage-before/plain-recompressed-0": {"rebuildable 00000000000000000030.snapshot 0"},
	"6-cleandamage-before/plain-snappy-0":       {"torn tail 00000000000000000000.log 1937"},
	"6-cleandamage-before/plain-zstd-0":         {"rebuildable 00000000000000000000.index -1", "rebuildable 00000000000000000000.timeindex -1"},
	// Killed in the middle of a write, nothing damaged.
	"6-kill9-before/crash-big-0": {"torn tail 00000000000000000007.log 33554728"},
	// What Kafka served on after a clean stop with damage.
	"6-cleandamage-after/plain-gzip-0":   {"damage 00000000000000000000.log 1183"},
	"6-cleandamage-after/plain-none-0":   {"damage 00000000000000000000.log 1228"},
	"6-cleandamage-after/plain-lz4-0":    {"rebuildable 00000000000000000000.index 0"},
	"6-cleandamage-after/plain-snappy-0": {"torn tail 00000000000000000000.log 1937"},
	"6-damaged-after/dmg-gap-0":          {"damage 00000000000000000016.log 0"},
	// Kafka began the epochs anew at the end of the log, and forgot those of what stands before.
	"6-cleandamage-after/plain-decompressed-0": {"rebuildable leader-epoch-checkpoint -1"},
}

// layUnchanged adds the files that a case leaves out because they are those of the case before.
func layUnchanged(t *testing.T, fsys vfs.FS, name string) {
	t.Helper()
	var about struct {
		Partitions map[string]struct {
			Left []string `json:"unchanged_files_left_out"`
		}
	}
	if err := json.Unmarshal(goldenFiles(t)[path.Dir(name)+"/description.json"], &about); err != nil {
		t.Fatal(err)
	}
	for _, file := range about.Partitions[path.Base(name)].Left {
		from := path.Join(strings.Replace(name, "-after", "-before", 1), file)
		data, ok := goldenFiles(t)[from]
		if !ok {
			t.Fatalf("%s is not there", from)
		}
		put(t, fsys, path.Join("/", path.Base(name), file), data)
	}
}

func TestGoldenDamage(t *testing.T) {
	seen := 0
	for _, name := range cases(t) {
		if !strings.HasPrefix(name, "6-") || strings.HasSuffix(name, "-stray") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			fsys := vfs.NewMem()
			lay(t, fsys, name, "/"+path.Base(name))
			layUnchanged(t, fsys, name)
			if _, err := fsys.Stat("/" + path.Base(name)); err != nil {
				t.Skip("the case has no files: that broker did not start")
			}
			var got []string
			for _, f := range faults(verifyAt(t, fsys, "/"+path.Base(name))) {
				got = append(got, fmt.Sprintf("%s %s %d", f.Severity, f.File, f.Position))
			}
			if want := damaged[name]; !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
			seen++
		})
	}
	if seen < 30 {
		t.Errorf("only %d folders", seen)
	}
}
