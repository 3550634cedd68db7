package pebble_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/millrace/millrace/core/seedtest"
	"github.com/millrace/millrace/streams/state"
	"github.com/millrace/millrace/streams/state/pebble"
)

const dir = "stores/counts/0/pebble"

// small makes tables go to disk and compactions run all the time.
var small = pebble.Options{CacheBytes: 1 << 20, MemTableBytes: 256 << 10}

// writer applies batches and remembers what the store had after each.
type writer struct {
	rnd  *rand.Rand
	last map[string]string
	ends map[int64]map[string]string // by position
	next int64
}

func newWriter(seed uint64) *writer {
	return &writer{rnd: rand.New(rand.NewPCG(seed, 3)), last: map[string]string{}, ends: map[int64]map[string]string{0: {}}}
}

// batch is the next one. What it leads to is an end from now on, whether or not the
// store comes to have it.
func (w *writer) batch() ([]state.Row, state.Position) {
	var rows []state.Row
	at := w.rnd.IntN(10)
	for i := range 60 {
		k := fmt.Sprintf("key-%04d", at+i*10)
		if w.rnd.IntN(8) == 0 {
			rows = append(rows, state.Row{Key: []byte(k)})
			delete(w.last, k)
			continue
		}
		v := make([]byte, 900)
		for i := range v {
			v[i] = byte(w.rnd.Uint32())
		}
		rows = append(rows, state.Row{Key: []byte(k), Value: v})
		w.last[k] = string(v)
	}
	w.next += int64(len(rows))
	w.ends[w.next] = maps.Clone(w.last)
	return rows, state.Position{TopicID: [16]byte{1}, Next: w.next}
}

// is reports whether an image holds what it had at its position.
func (w *writer) is(t *testing.T, img state.Image) error {
	t.Helper()
	p := img.Position()
	want, ok := w.ends[p.Next]
	if !ok {
		return fmt.Errorf("position %d is that of no commit", p.Next)
	}
	got := map[string]string{}
	for r, err := range img.Range(nil, nil) {
		if err != nil {
			return err
		}
		got[string(r.Key)] = string(r.Value)
	}
	if !maps.Equal(got, want) {
		return fmt.Errorf("at %d it has %d rows, not the %d that it had", p.Next, len(got), len(want))
	}
	return nil
}

// A failure of any operation that changes the disk, of any kind: the image says so
// and neither ends the process nor hangs; opened again at once, it has what it had at
// its last commit or in the one that failed, or it is empty, after damage.
func TestFaultsAtEveryWrite(t *testing.T) {
	t.Parallel()
	seed := seedtest.New(t)
	kinds := map[string]error{"no room": syscall.ENOSPC, "broken": syscall.EIO}
	for name, cause := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outcomes := map[string]int{}
			step := 19 // every nineteenth operation in the short form
			if seedtest.Soak() {
				step = 1
			}
			for n := int64(1); ; n += int64(step) {
				outcome, hit := fault(t, seed, n, cause)
				outcomes[outcome]++
				if !hit {
					break
				}
			}
			t.Log(outcomes)
			if outcomes["kept"] == 0 || outcomes["removed"]+outcomes["damaged"] == 0 {
				t.Errorf("outcomes %v: the test shows little", outcomes)
			}
		})
	}
}

// fault fails the n-th changing operation, and all after it until the image is
// closed. hit is false when there were not so many.
func fault(t *testing.T, seed uint64, n int64, cause error) (outcome string, hit bool) {
	t.Helper()
	mem := vfs.NewMem()
	var count, on atomic.Int64
	broken := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpCreate, errorfs.OpReuseForWrite, errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpFileSync,
			errorfs.OpFileSyncData, errorfs.OpFileSyncTo, errorfs.OpRename, errorfs.OpLink, errorfs.OpFilePreallocate:
		default:
			return nil
		}
		if count.Add(1) < n || on.Load() < 0 {
			return nil
		}
		on.Store(1)
		what := "write"
		if op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData {
			what = "sync"
		}
		return &fs.PathError{Op: what, Path: op.Path, Err: cause}
	}))
	w := newWriter(seed)
	acked := int64(0)
	img, err := pebble.NewOn(broken, small).Open(dir)
	for range 25 {
		if err != nil {
			break
		}
		rows, pos := w.batch()
		if err = img.Apply(rows, pos); err == nil {
			acked = pos.Next
		}
	}
	outcome = "unnoticed"
	if err != nil {
		outcome = "refused"
		if !errors.Is(err, state.ErrNoRoom) && !errors.Is(err, state.ErrCorrupt) && !errors.Is(err, cause) {
			t.Errorf("operation %d: %v does not say what it is", n, err)
		}
	}
	corrupt := errors.Is(err, state.ErrCorrupt)
	if img != nil {
		_ = img.Close() // it may well fail: the disk is broken
	}
	hit = on.Load() > 0
	on.Store(-1)
	img, err = pebble.NewOn(mem, small).Open(dir)
	if errors.Is(err, state.ErrCorrupt) {
		return "damaged", hit
	}
	if err != nil {
		t.Fatalf("operation %d: opened again: %v", n, err)
	}
	defer func() {
		if err := img.Close(); err != nil {
			t.Errorf("operation %d: %v", n, err)
		}
	}()
	if err := w.is(t, img); err != nil {
		t.Errorf("operation %d: %v", n, err)
	}
	switch at := img.Position().Next; {
	case at == 0 && corrupt:
		return "removed", hit
	case at < acked:
		t.Errorf("operation %d: it is at %d, %d was acknowledged", n, at, acked)
	case outcome == "refused":
		return "kept", hit
	}
	return outcome, hit
}

// What Apply has acknowledged survives a power cut at any moment after it.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	seed := seedtest.New(t)
	mem := vfs.NewCrashableMem()
	img, err := pebble.NewOn(mem, small).Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	w, rnd := newWriter(seed), rand.New(rand.NewPCG(seed, 4))
	rounds := 25
	if seedtest.Soak() {
		rounds = 300
	}
	for range rounds {
		rows, pos := w.batch()
		if err := img.Apply(rows, pos); err != nil {
			t.Fatal(err)
		}
		disk := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rnd.IntN(101), RNG: rand.New(rand.NewPCG(rnd.Uint64(), 5))})
		after, err := pebble.NewOn(disk, small).Open(dir)
		if err != nil {
			t.Fatalf("seed %d, after %d: %v", seed, pos.Next, err)
		}
		if err := w.is(t, after); err != nil || after.Position() != pos {
			t.Errorf("seed %d, after %d: it is at %d, %v", seed, pos.Next, after.Position().Next, err)
		}
		if err := after.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := img.Close(); err != nil {
		t.Fatal(err)
	}
}

// Any file changed in any way while the store is closed: it is what it was at some
// commit, or says that it is corrupt.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	seed := seedtest.New(t)
	rnd := rand.New(rand.NewPCG(seed, 6))
	from := t.TempDir()
	img := openWith(t, small, from)
	w := newWriter(seed)
	for range 30 {
		rows, pos := w.batch()
		if err := img.Apply(rows, pos); err != nil {
			t.Fatal(err)
		}
	}
	sound := t.TempDir()
	if err := img.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(sound, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(sound)
	if err != nil {
		t.Fatal(err)
	}
	harms := map[string]func(b []byte) []byte{
		"gone":  nil,
		"empty": func([]byte) []byte { return nil },
		"cut":   func(b []byte) []byte { return b[:rnd.IntN(len(b)+1)] },
		"bit": func(b []byte) []byte {
			if len(b) > 0 {
				b[rnd.IntN(len(b))] ^= 1 << rnd.IntN(8)
			}
			return b
		},
		"noise": func(b []byte) []byte {
			for i := range b {
				b[i] = byte(rnd.Uint32())
			}
			return b
		},
	}
	outcomes := map[string]int{}
	for _, e := range entries {
		for kind, harm := range harms {
			if !seedtest.Soak() && rnd.IntN(5) > 1 {
				continue
			}
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(sound)); err != nil {
				t.Fatal(err)
			}
			if err := spoil(filepath.Join(dir, e.Name()), harm); err != nil {
				t.Fatal(err)
			}
			outcome := look(t, w, dir)
			if strings.Contains(outcome, ":") {
				t.Errorf("seed %d: %s of %s: %s", seed, kind, e.Name(), outcome)
			}
			outcomes[outcome]++
		}
	}
	t.Log(outcomes)
	if outcomes["sound"] == 0 || outcomes["corrupt"] == 0 {
		t.Errorf("outcomes %v: the test shows little", outcomes)
	}
}

func spoil(path string, harm func([]byte) []byte) error {
	if harm == nil {
		return os.Remove(path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, harm(b), 0o644)
}

func look(t *testing.T, w *writer, dir string) string {
	t.Helper()
	img, err := pebble.New(small).Open(dir)
	if errors.Is(err, state.ErrCorrupt) {
		return "corrupt"
	}
	if err != nil {
		return "it does not open: " + err.Error()
	}
	defer func() { _ = img.Close() }() // a damaged one may complain, and is removed
	switch err := w.is(t, img); {
	case errors.Is(err, state.ErrCorrupt):
		return "corrupt"
	case err != nil:
		return "it is wrong: " + err.Error()
	case img.Position().Next < w.next:
		return "an earlier commit"
	}
	return "sound"
}

func openWith(t *testing.T, o pebble.Options, dir string) state.Image {
	t.Helper()
	img, err := pebble.New(o).Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// Stores of one process share a cache, by equal options, and the last frees it.
// Nothing is said to the log of the process meanwhile.
func TestStoresShareACache(t *testing.T) {
	var out bytes.Buffer
	log.SetOutput(&out)
	defer log.SetOutput(os.Stderr)
	before := pebble.Shared()
	o := pebble.Options{CacheBytes: 3 << 20}
	a, b := openWith(t, o, t.TempDir()), openWith(t, o, t.TempDir())
	if n := pebble.Shared() - before; n != 2 {
		t.Errorf("%d stores share", n)
	}
	if err := errors.Join(a.Apply([]state.Row{{Key: []byte("k"), Value: []byte("v")}}, state.Position{}), a.Wipe(), a.Close(), b.Close()); err != nil {
		t.Fatal(err)
	}
	if n := pebble.Shared() - before; n != 0 {
		t.Errorf("%d stores share when all are closed", n)
	}
	if out.Len() > 0 {
		t.Errorf("the log has %s", out.String())
	}
}

func TestOptionsValidate(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]pebble.Options{
		"CacheBytes": {CacheBytes: 1}, "MemTableBytes": {MemTableBytes: 1}, "OpenFiles": {OpenFiles: 1},
	} {
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", o, err)
		}
		if _, err := pebble.New(o).Open(t.TempDir()); err == nil {
			t.Errorf("%+v: opened", o)
		}
	}
}

func TestRefusesNewerFormat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := openWith(t, small, dir).Close(); err != nil {
		t.Fatal(err)
	}
	pebble.SetFormat(t, dir, pebble.Format+1)
	if _, err := pebble.New(small).Open(dir); !errors.Is(err, state.ErrNewerFormat) {
		t.Errorf("a newer format: %v", err)
	}
}
