package inspect

import (
	"math/rand/v2"
	"path"
	"strings"
	"testing"

	"github.com/millrace/millrace/core/vfs"
)

// Whatever stands in the files, a walk and a verification come to their end, and a repair leaves nothing without a word.
func TestGarbage(t *testing.T) {
	const seed = 4711
	rng := rand.New(rand.NewPCG(seed, 0))
	var small []string
	for _, name := range cases(t) {
		if !strings.HasPrefix(name, "6-") && !strings.HasPrefix(name, "3-roll") {
			small = append(small, name)
		}
	}
	rounds := 150
	if testing.Short() {
		rounds = 30
	}
	for round := range rounds {
		name := small[rng.IntN(len(small))]
		fsys, dir := vfs.NewMem(), "/"+path.Base(name)
		lay(t, fsys, name, dir)
		for range 1 + rng.IntN(4) {
			garble(t, fsys, everyFile(t, fsys, dir), rng)
		}
		d, err := Open(fsys, dir)
		if err != nil {
			t.Fatalf("seed %d round %d, %s: %v", seed, round, name, err)
		}
		for _, p := range d.Partitions {
			if err := p.Walk(WalkOptions{Records: true}, func(i Item) error { _ = i.String(); return nil }); err != nil {
				t.Fatalf("seed %d round %d, %s: walk: %v", seed, round, name, err)
			}
		}
		_, left := repairAt(t, fsys, dir)
		damage, said := false, map[string]bool{}
		for _, f := range left {
			damage = damage || f.Severity == Damage
			said[f.File] = true
		}
		for _, f := range faults(verifyAt(t, fsys, dir)) {
			if f.Severity == Rebuildable && !damage && !said[f.File] {
				t.Errorf("seed %d round %d, %s: after a repair: %v", seed, round, name, f)
			}
		}
	}
}

// garble spoils a file: bytes overwritten, cut, or added.
func garble(t *testing.T, fsys vfs.FS, files []string, rng *rand.Rand) {
	t.Helper()
	name := files[rng.IntN(len(files))]
	data, err := vfs.ReadFile(fsys, name)
	if err != nil {
		t.Fatal(err)
	}
	at := rng.IntN(len(data) + 1)
	noise := make([]byte, rng.IntN(40))
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	switch rng.IntN(3) {
	case 0:
		copy(data[at:], noise)
	case 1:
		data = data[:at]
	default:
		data = append(data[:at:at], append(noise, data[at:]...)...)
	}
	put(t, fsys, name, data)
}
