package crash

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/brokertest"
)

// recorded is one request of a transaction as it went over the wire.
type recorded struct {
	txn   int
	frame []byte
}

func (r recorded) String() string {
	key, version := int16(binary.BigEndian.Uint16(r.frame[4:])), int16(binary.BigEndian.Uint16(r.frame[6:]))
	return fmt.Sprintf("%s v%d of transaction %d", kmsg.NameForKey(key), version, r.txn)
}

// world is what a late packet must not change.
func world(w *wire, partitions int32) string {
	out := ""
	for p := range partitions {
		end, c1 := w.offset("t", p, -1, false)
		lso, c2 := w.offset("t", p, -1, true)
		out += fmt.Sprintf("t-%d ends %d, stable %d, codes %d %d; ", p, end, lso, c1, c2)
	}
	return out
}

// TestLatePacketsHaveNoEffect sends every request of earlier transactions of version 2 again, on another connection, in
// every state of the next one: nothing is open, partitions are in it, an offset is in it. Nothing may change (KIP-890).
// Requests for a producer id are left out: a late one fences, by the protocol.
func TestLatePacketsHaveNoEffect(t *testing.T) {
	rng := rand.New(rand.NewPCG(newSeed(t), 2))
	const partitions = 3
	b := brokertest.Start(t, small, quiet)
	w, late := dial(t, b), dial(t, b)
	w.must("create", func() int16 { return w.createTopic("t", partitions) })
	var old, now []recorded
	p := newProducer(w, "x", 2)
	var want [partitions][]string
	offset := int64(-1)
	k := &check{story: &story{t: t}, w: w}
	rounds := 8
	if soak() {
		rounds = 60
	}
	for txn := range rounds {
		p.frames = func(f []byte) { now = append(now, recorded{txn, slices.Clone(f)}) }
		commit := rng.IntN(3) > 0
		for at := range int32(partitions) { // the markers' fsync ends after the answer to EndTxn
			if _, err := k.stable("t", at); err != nil {
				t.Fatal(err)
			}
		}
		replayAll(t, late, old, partitions, "nothing open")
		written := map[int32][]string{}
		for n := range 1 + rng.IntN(4) {
			at, v := rng.Int32N(partitions), fmt.Sprintf("%d/%d", txn, n)
			if _, c := p.send("t", at, v); c != 0 {
				t.Fatalf("transaction %d: produce: %s", txn, code(c))
			}
			written[at] = append(written[at], v)
			replayAll(t, late, old, partitions, "records in it")
		}
		if c := p.commitOffset("t", 0, int64(txn)); c != 0 {
			t.Fatalf("transaction %d: offset: %s", txn, code(c))
		}
		replayAll(t, late, old, partitions, "offset in it")
		if c := p.end(commit); c != 0 {
			t.Fatalf("transaction %d: end: %s", txn, code(c))
		}
		if commit {
			offset = int64(txn)
			for at, vs := range written {
				want[at] = append(want[at], vs...)
			}
		}
		old, now = append(old, now...), nil
	}
	for at := range int32(partitions) {
		if _, got, err := k.read("t", at); err != nil || !slices.Equal(got, want[at]) {
			t.Errorf("t-%d holds %q, want %q, %v", at, got, want[at], err)
		}
	}
	if got, err := w.committedOffset("t", 0); err != nil || got != offset {
		t.Errorf("the group's offset is %d, want %d, %v", got, offset, err)
	}
}

// replayAll sends recorded frames and compares the world before and after each; answers are only read.
func replayAll(t *testing.T, w *wire, frames []recorded, partitions int32, state string) {
	t.Helper()
	before := world(w, partitions)
	for _, r := range frames {
		if err := w.send(r.frame); err != nil {
			t.Fatalf("%s: %v", r, err)
		}
		if _, err := answer(w); err != nil {
			t.Fatalf("%s again, with %s: %v", r, state, err)
		}
		if after := world(w, partitions); after != before {
			t.Fatalf("%s again, with %s, changed\n  %s to\n  %s", r, state, before, after)
		}
	}
}

// answer reads one answer without decoding it.
func answer(w *wire) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(w.conn, head[:]); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[:]))
	_, err := io.ReadFull(w.conn, body)
	return body, err
}
