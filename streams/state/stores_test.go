package state_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/streams/state"
	"github.com/millrace/millrace/streams/state/pebble"
	"github.com/millrace/millrace/streams/state/statetest"
)

func openStore(t *testing.T, f *state.Folder, name string, task int32) (img state.Image, done func()) {
	t.Helper()
	img, release, err := f.OpenStore(t.Context(), name, task)
	if err != nil {
		t.Fatal(err)
	}
	return img, func() {
		t.Helper()
		if err := img.Close(); err != nil {
			t.Fatal(err)
		}
		release()
	}
}

func fill(t *testing.T, img state.Image, rows ...state.Row) {
	t.Helper()
	if err := img.Apply(rows, state.Position{TopicID: [16]byte{1}, Next: 7}); err != nil {
		t.Fatal(err)
	}
}

// A store changes its engine: what the other left is not read, not kept, and said in
// the log; and it does so once.
func TestEngineFindsTheStoreOfAnother(t *testing.T) {
	t.Parallel()
	engines := map[string]state.Engine{"goleveldb": state.GoLevelDB(), "pebble": pebble.New(pebble.Options{})}
	for from, first := range engines {
		for to, second := range engines {
			t.Run(from+" to "+to, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				use := func(e state.Engine) (rows map[string]string, pos state.Position, log string) {
					var said bytes.Buffer
					f := openFolder(t, dir, "")
					defer closeFolder(t, f)
					f.Configure(state.StoreOptions{Engines: map[string]state.Engine{"counts": e}, Logger: slog.New(slog.NewTextHandler(&said, nil))})
					img, done := openStore(t, f, "counts", 3)
					defer done()
					rows, pos = statetest.Dump(t, img), img.Position()
					fill(t, img, state.Row{Key: []byte("k"), Value: []byte("v")})
					return rows, pos, said.String()
				}
				if rows, _, log := use(first); len(rows) > 0 || log != "" {
					t.Fatalf("a new store has rows %v, log %q", rows, log)
				}
				rows, pos, log := use(second)
				switch {
				case from == to && (len(rows) != 1 || log != ""):
					t.Errorf("rows %v, log %q", rows, log)
				case from != to && (len(rows) > 0 || pos.Known()):
					t.Errorf("rows %v at %v come from another engine", rows, pos)
				case from != to && (!strings.Contains(log, "found=["+from+"]") || !strings.Contains(log, "store=counts") || !strings.Contains(log, "task=3")):
					t.Errorf("log %q does not say what was found where", log)
				}
				if rows, _, log := use(second); len(rows) != 1 || log != "" {
					t.Errorf("the third time: rows %v, log %q", rows, log)
				}
			})
		}
	}
}

func TestStoresInMemoryLeaveNoFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := openFolder(t, dir, "")
	f.Configure(state.StoreOptions{Engine: state.InMemory()})
	img, done := openStore(t, f, "counts", 0)
	fill(t, img, state.Row{Key: []byte("k"), Value: []byte("v")})
	done()
	closeFolder(t, f)
	if entries, err := os.ReadDir(filepath.Join(dir, "stores")); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestDamageIsSaidInTheLog(t *testing.T) {
	t.Parallel()
	for name, engine := range map[string]state.Engine{"goleveldb": state.GoLevelDB(), "pebble": pebble.New(pebble.Options{})} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var said bytes.Buffer
			dir := t.TempDir()
			f := openFolder(t, dir, "")
			defer closeFolder(t, f)
			f.Configure(state.StoreOptions{Engine: engine, Logger: slog.New(slog.NewTextHandler(&said, nil))})
			img, done := openStore(t, f, "counts", 0)
			fill(t, img, state.Row{Key: []byte("k"), Value: []byte("v")})
			done()
			for _, pattern := range []string{"MANIFEST-*", "*/MANIFEST-*"} {
				files, err := filepath.Glob(filepath.Join(dir, "stores", "counts", "0", pattern))
				if err != nil {
					t.Fatal(err)
				}
				for _, path := range files {
					if err := os.WriteFile(path, bytes.Repeat([]byte("nonsense"), 100), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			img, done = openStore(t, f, "counts", 0)
			defer done()
			if rows := statetest.Dump(t, img); len(rows) > 0 || img.Position().Known() {
				t.Errorf("damaged, it has %v at %v", rows, img.Position())
			}
			if !strings.Contains(said.String(), "damaged") || !strings.Contains(said.String(), "store=counts") {
				t.Errorf("log %q", said.String())
			}
		})
	}
}

// What is open stays, what is free goes, after its time and not before.
func TestCleanUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := openFolder(t, dir, "")
	defer closeFolder(t, f)
	for _, name := range []string{"counts", "a/b.."} {
		for task := range int32(3) {
			_, done := openStore(t, f, name, task)
			done()
		}
	}
	_, done := openStore(t, f, "counts", 1)
	if removed, err := f.CleanUp(time.Hour); err != nil || len(removed) > 0 {
		t.Errorf("before its time: %v, %v", removed, err)
	}
	removed, err := f.CleanUp(0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range removed {
		got = append(got, fmt.Sprint(r.Store, " ", r.Task))
	}
	if want := []string{"a/b.. 0", "a/b.. 1", "a/b.. 2", "counts 0", "counts 2"}; !slices.Equal(got, want) {
		t.Errorf("removed %q, want %q", got, want)
	}
	done()
	if left, err := f.Stores("counts"); err != nil || !slices.Equal(left, []int32{1}) {
		t.Errorf("left are %v, %v", left, err)
	}
}
