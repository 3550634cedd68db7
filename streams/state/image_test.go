package state_test

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/syndtr/goleveldb/leveldb"

	"github.com/millrace/millrace/streams/state"
	"github.com/millrace/millrace/streams/state/statetest"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	statetest.Image(t, statetest.Engine{
		Open: func(*testing.T, string) state.Image { return state.NewMemory() },
	})
}

func TestLevelDB(t *testing.T) {
	t.Parallel()
	statetest.Image(t, statetest.Engine{Open: openLevel, Durable: true})
}

func openLevel(t *testing.T, dir string) state.Image {
	t.Helper()
	img, err := state.OpenLevelDB(dir)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestLevelDBRefusesNewerFormat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	img := openLevel(t, dir)
	if err := img.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := leveldb.OpenFile(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Put([]byte("\x00format"), binary.BigEndian.AppendUint32(nil, state.LevelDBFormat+1), nil); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := state.OpenLevelDB(dir); !errors.Is(err, state.ErrNewerFormat) {
		t.Fatalf("a newer format opened: %v", err)
	}
}

// A flipped byte in the journal must not make one batch vanish and leave the
// next: the store is refused as a whole, or, when the damage is in the last
// batch alone and looks like a torn write, it shows an earlier whole state.
func TestLevelDBFindsDamagedJournal(t *testing.T) {
	t.Parallel()
	master := t.TempDir()
	img := openLevel(t, master)
	for i := range 20 {
		rows := []state.Row{{Key: []byte{byte(i)}, Value: []byte("value")}}
		if err := img.Apply(rows, state.Position{TopicID: [16]byte{1}, Next: int64(i + 1)}); err != nil {
			t.Fatal(err)
		}
	}
	// The copy is taken while the store is open, as a kill would leave it.
	files := readFolder(t, master)
	if err := img.Close(); err != nil {
		t.Fatal(err)
	}
	var journal string
	for name := range files {
		if filepath.Ext(name) == ".log" && len(files[name]) > len(files[journal]) {
			journal = name
		}
	}
	refused := 0
	for at := 0; at < len(files[journal]); at += 7 {
		dir := t.TempDir()
		for name, raw := range files {
			if name == journal {
				raw = append([]byte(nil), raw...)
				raw[at] ^= 0x40
			}
			if err := os.WriteFile(filepath.Join(dir, name), raw, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		img, err := state.OpenLevelDB(dir)
		if err != nil {
			if !errors.Is(err, state.ErrCorrupt) {
				t.Fatalf("byte %d: %v is not ErrCorrupt", at, err)
			}
			refused++
			continue
		}
		if n := int64(len(statetest.Dump(t, img))); n != img.Position().Next {
			t.Errorf("byte %d: %d rows at position %d", at, n, img.Position().Next)
		}
		if err := img.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if refused == 0 {
		t.Error("no damage was found")
	}
}

func readFolder(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = raw
	}
	return files
}
