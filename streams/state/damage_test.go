package state_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/millrace/millrace/core/seedtest"
	"github.com/millrace/millrace/streams/state"
)

// A store whose files were damaged in any way, one at a time, either still has
// what it had at some commit, position and rows together, or says that it is
// corrupt and comes back empty. It never has anything else, and no damage keeps
// the application from starting.
//
// One thing is left out, as the engine does not notice it: of two journals, which
// there are while a table is being made of the older one, the older one shortened
// at the end of a batch, or gone altogether. Crashes do not do that, as every
// batch is synced; losing a file takes an outside hand.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	seed := seedtest.New(t)
	rnd := rand.New(rand.NewPCG(seed, 4))
	d := damaged{t: t, from: t.TempDir(), ends: map[int64]map[string]string{0: {}}}
	d.fill(rnd)
	outcomes := map[string]int{}
	for _, name := range d.files() {
		for kind, harm := range harms {
			if filepath.Ext(name) == ".log" && (kind == "gone" || kind == "empty" || kind == "cut") && d.journals() > 1 {
				continue // the engine cannot tell; see TestDamagedFiles
			}
			for range 2 {
				outcomes[d.try(name, kind, harm, rnd)]++
			}
		}
	}
	t.Logf("%d files: %v", len(d.files()), outcomes)
	for _, o := range []string{"as it was", "rebuilt at open"} {
		if outcomes[o] == 0 {
			t.Errorf("no store was %q, so the test shows little", o)
		}
	}
}

// damaged is a store and what it had after each commit.
type damaged struct {
	t    *testing.T
	from string // the sound folder
	ends map[int64]map[string]string
}

const damagedStore = "stores/counts/0"

// fill writes enough for several tables, compactions and a journal.
func (d *damaged) fill(rnd *rand.Rand) {
	d.t.Helper()
	img, err := state.OpenLevelDB(filepath.Join(d.from, damagedStore))
	if err != nil {
		d.t.Fatal(err)
	}
	last := map[string]string{}
	var next int64
	for range 50 {
		var rows []state.Row
		for range 100 {
			k := fmt.Sprintf("key-%04d", rnd.IntN(2000))
			if rnd.IntN(10) == 0 {
				rows = append(rows, state.Row{Key: []byte(k)})
				delete(last, k)
				continue
			}
			v := make([]byte, 1000)
			for i := range v {
				v[i] = byte(rnd.Uint32())
			}
			rows = append(rows, state.Row{Key: []byte(k), Value: v})
			last[k] = string(v)
		}
		next += int64(len(rows))
		if err := img.Apply(rows, state.Position{TopicID: [16]byte{1}, Next: next}); err != nil {
			d.t.Fatal(err)
		}
		end := make(map[string]string, len(last))
		for k, v := range last {
			end[k] = v
		}
		d.ends[next] = end
	}
	if err := img.Close(); err != nil {
		d.t.Fatal(err)
	}
}

func (d *damaged) files() []string {
	d.t.Helper()
	entries, err := os.ReadDir(filepath.Join(d.from, damagedStore))
	if err != nil {
		d.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func (d *damaged) journals() (n int) {
	d.t.Helper()
	for _, name := range d.files() {
		if filepath.Ext(name) == ".log" {
			n++
		}
	}
	return n
}

// harms change the bytes of one file; nil removes it.
var harms = map[string]func(b []byte, rnd *rand.Rand) []byte{
	"gone":  func([]byte, *rand.Rand) []byte { return nil },
	"empty": func([]byte, *rand.Rand) []byte { return []byte{} },
	"cut": func(b []byte, rnd *rand.Rand) []byte {
		return b[:rnd.IntN(len(b)+1)]
	},
	"bit": func(b []byte, rnd *rand.Rand) []byte {
		if len(b) > 0 {
			b[rnd.IntN(len(b))] ^= 1 << rnd.IntN(8)
		}
		return b
	},
	"hole": func(b []byte, rnd *rand.Rand) []byte {
		at := rnd.IntN(len(b) + 1)
		clear(b[at:min(len(b), at+512)])
		return b
	},
	"tail": func(b []byte, rnd *rand.Rand) []byte {
		return append(b, bytes.Repeat([]byte{byte(rnd.Uint32())}, 1+rnd.IntN(100))...)
	},
	"noise": func(b []byte, rnd *rand.Rand) []byte {
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		return b
	},
}

func (d *damaged) try(name, kind string, harm func([]byte, *rand.Rand) []byte, rnd *rand.Rand) (outcome string) {
	d.t.Helper()
	dir := d.t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(d.from)); err != nil {
		d.t.Fatal(err)
	}
	path := filepath.Join(dir, damagedStore, name)
	b, err := os.ReadFile(path)
	if err == nil {
		if b = harm(b, rnd); b == nil {
			err = os.Remove(path)
		} else {
			err = os.WriteFile(path, b, fs.FileMode(0o644))
		}
	}
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			d.t.Error(err)
		}
	}()
	outcome, err = d.look(dir)
	if err != nil {
		d.t.Errorf("%s of %s: %v", kind, name, err)
	}
	return outcome
}

// look opens the store as an application does and reads it all.
func (d *damaged) look(dir string) (outcome string, err error) {
	f, err := state.OpenFolder(dir, "")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	img, release, err := f.OpenStore(context.Background(), "counts", 0)
	if err != nil {
		return "", fmt.Errorf("the store does not open: %w", err)
	}
	defer release()
	defer func() { err = errors.Join(err, img.Close()) }()
	p := img.Position()
	want, ok := d.ends[p.Next]
	if !ok || p.Known() && p.TopicID != [16]byte{1} {
		return "", fmt.Errorf("position %v is that of no commit", p)
	}
	n := 0
	for r, err := range img.Range(nil, nil) {
		if errors.Is(err, state.ErrCorrupt) {
			return "corrupt when read", nil
		}
		if err != nil {
			return "", err
		}
		if v, ok := want[string(r.Key)]; !ok || v != string(r.Value) {
			return "", fmt.Errorf("at %d, %s is wrong", p.Next, r.Key)
		}
		n++
	}
	switch {
	case n != len(want):
		return "", fmt.Errorf("at %d there are %d rows, want %d", p.Next, n, len(want))
	case !p.Known():
		return "rebuilt at open", nil
	case p.Next < 5000:
		return "an earlier commit", nil
	}
	return "as it was", nil
}
