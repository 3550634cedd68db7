package flush

import (
	"crypto/rand"
	"testing"

	"github.com/millrace/millrace/core/vfs"
)

// TestForgedEntries: what lies behind the entries of a generation may be bytes that a client chose, an entry made up for the
// generation to come among them. None is believed. The client here knows the format, counts generations, and has its records end
// where its made-up entries begin.
func TestForgedEntries(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	c := newCarryLog(mem, "/", carryBytesMin, rand.Reader, 0)
	forged := Piece{File: "of-others-0/00000000000000000000.log", Data: []byte("planted"), Next: 1}
	ours := Piece{File: "t-0/00000000000000000000.log", Next: 1}
	head, size := carrySize(ours), carrySize(forged)
	if head > size {
		t.Fatal("the grid of made-up entries is too narrow")
	}
	put := func(data []byte) {
		t.Helper()
		p := ours
		p.Data = data
		if ok, err := c.ready(carrySize(p)); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if err := c.put(appendPiece(nil, c.salt, p), []filer{new(asked)}); err != nil {
			t.Fatal(err)
		}
		c.mu.Lock()
		clear(c.current.live) // synced in its own file
		c.mu.Unlock()
	}
	for generation := uint64(1); generation <= 12; generation++ {
		if ok, err := c.ready(int(c.limit) - carryHead); !ok || err != nil || c.generation != generation {
			t.Fatal(ok, err, c.generation)
		}
		put(make([]byte, int(generation)*size)) // ends where the entry for this generation was planted when the file was last used
		pieces, _, _, err := carried(mem, "/")
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pieces {
			if p.File != ours.File {
				t.Fatalf("%s is taken for one of ours in generation %d", p.File, generation)
			}
		}
		plant := make([]byte, size-head)
		for g := generation + 1; g < generation+10; g++ {
			plant = appendPiece(plant, g, forged)
		}
		put(plant)
	}
}
