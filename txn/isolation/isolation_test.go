package isolation_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/millrace/millrace/txn/isolation"
)

// history is a random log of transactions, kept whole, from which each answer is found by looking at everything.
type history struct {
	rng  *rand.Rand
	next int64
	open map[int64]int64 // producer to first offset
	done []ended         // in the order of the markers

	tracker  isolation.Tracker
	segments [][]isolation.AbortedTxn
	hw       int64
	stable   int64 // the last answer
}

type ended struct {
	producer, first, marker int64
	aborted                 bool
}

func (h *history) firstOpen() (int64, bool) {
	first, any := int64(0), false
	for _, f := range h.open {
		if !any || f < first {
			first, any = f, true
		}
	}
	return first, any
}

func (h *history) step() error {
	id := h.rng.Int64N(6)
	switch h.rng.IntN(10) {
	case 0, 1, 2:
		h.end(id)
	case 3:
		h.segments = append(h.segments, nil)
	case 4, 5:
		h.hw = min(h.next, h.hw+h.rng.Int64N(8))
	default:
		if _, ok := h.open[id]; !ok && h.rng.IntN(4) > 0 {
			h.open[id] = h.next
		}
		h.next += 1 + h.rng.Int64N(4)
	}
	if err := h.checkStable(); err != nil {
		return err
	}
	from := h.rng.Int64N(h.next + 1)
	return h.checkList(from, from+h.rng.Int64N(12))
}

// end writes the producer's marker, also if nothing is open.
func (h *history) end(id int64) {
	first, ok := h.open[id]
	delete(h.open, id)
	marker := h.next
	h.next++
	if !ok {
		return
	}
	e := ended{id, first, marker, h.rng.IntN(2) == 0}
	h.done = append(h.done, e)
	h.tracker.Decided(first, marker)
	if e.aborted {
		open, any := h.firstOpen()
		last := len(h.segments) - 1
		h.segments[last] = append(h.segments[last], isolation.EntryFor(id, first, marker, open, any))
	}
}

func (h *history) checkStable() error {
	open, any := h.firstOpen()
	got := h.tracker.Stable(h.hw, open, any)
	want := h.hw
	if any {
		want = min(want, open)
	}
	for _, e := range h.done {
		if e.marker >= h.hw {
			want = min(want, e.first)
		}
	}
	if got != want {
		return fmt.Errorf("last stable offset %d under high watermark %d, want %d", got, h.hw, want)
	}
	if got < h.stable {
		return fmt.Errorf("last stable offset fell from %d to %d", h.stable, got)
	}
	h.stable = got
	return nil
}

func (h *history) checkList(from, to int64) error {
	var want []string
	for _, e := range h.done {
		if e.aborted && e.marker >= from && e.first < to && from < to {
			want = append(want, fmt.Sprintf("%020d producer %d to %d", e.first, e.producer, e.marker))
		}
	}
	slices.Sort(want)
	var got []string
	keep := isolation.AbortedTxn{ProducerID: 99}
	list := isolation.Collect([]isolation.AbortedTxn{keep}, from, to, slices.Values(h.segments))
	if list[0] != keep {
		return errors.New("Collect touched what stood in the slice before")
	}
	for _, a := range list[1:] {
		got = append(got, fmt.Sprintf("%020d producer %d to %d", a.FirstOffset, a.ProducerID, a.LastOffset))
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("aborted between %d and %d: %q, want %q", from, to, got, want)
	}
	return nil
}

func TestAgainstBruteForce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(80) {
		h := history{rng: rand.New(rand.NewPCG(seed, 3)), open: map[int64]int64{}, segments: make([][]isolation.AbortedTxn, 1)}
		for step := range 300 {
			if err := h.step(); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
		}
		if len(h.done) < 20 {
			t.Errorf("seed %d: only %d transactions", seed, len(h.done))
		}
	}
}

// TestDecidedButUndurable: while a marker is not below the high watermark its transaction holds readers back, committed or
// not.
func TestDecidedButUndurable(t *testing.T) {
	t.Parallel()
	var tr isolation.Tracker
	if got := tr.Stable(3, 2, true); got != 2 {
		t.Errorf("open from 2: %d", got)
	}
	tr.Decided(2, 5)
	for _, c := range []struct{ hw, want int64 }{{3, 2}, {5, 2}, {6, 6}} {
		if got := tr.Stable(c.hw, 0, false); got != c.want {
			t.Errorf("high watermark %d: %d, want %d", c.hw, got, c.want)
		}
	}
	tr.Decided(7, 9)
	tr.Reset()
	if got := tr.Stable(8, 0, false); got != 8 {
		t.Errorf("after Reset: %d", got)
	}
}

// TestTrackerStaysSmall: a million transactions that are decided and made durable leave nothing behind.
func TestTrackerStaysSmall(t *testing.T) {
	var tr isolation.Tracker
	at := int64(0)
	round := func() {
		for range 10 {
			tr.Decided(at, at+1)
			at += 2
		}
		if got := tr.Stable(at-4, 0, false); got != at-4 {
			t.Fatalf("last stable offset %d, want %d", got, at-4)
		}
	}
	round()
	if n := testing.AllocsPerRun(10_000, round); n > 0 {
		t.Errorf("%v allocations for ten transactions", n)
	}
}

func TestParseIndexRefuses(t *testing.T) {
	t.Parallel()
	good := isolation.AppendEntry(nil, isolation.AbortedTxn{ProducerID: 1, FirstOffset: 2, LastOffset: 5, LastStableOffset: 6})
	entry := func(first, last int64) []byte {
		return isolation.AppendEntry(slices.Clone(good), isolation.AbortedTxn{FirstOffset: first, LastOffset: last})
	}
	version := slices.Clone(good)
	version[1] = 1
	for what, raw := range map[string][]byte{
		"cut":                    good[:33],
		"unknown version":        version,
		"marker before the last": entry(3, 5),
		"marker before its data": entry(8, 7),
		"negative":               entry(-1, 7),
	} {
		if _, err := isolation.ParseIndex(raw); !errors.Is(err, isolation.ErrCorruptIndex) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got, err := isolation.ParseIndex(nil); err != nil || len(got) != 0 {
		t.Errorf("empty: %v, %v", got, err)
	}
}

// FuzzTxnIndex parses any bytes: what parses is written again to the same bytes, and answers to any range are sorted,
// complete and no more.
func FuzzTxnIndex(f *testing.F) {
	for _, file := range kafkaIndexes(f) {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, int64(0), int64(20))
	}
	f.Fuzz(func(t *testing.T, raw []byte, from, to int64) {
		entries, err := isolation.ParseIndex(raw)
		if err != nil {
			if !errors.Is(err, isolation.ErrCorruptIndex) {
				t.Fatal(err)
			}
			return
		}
		var again []byte
		for _, e := range entries {
			again = isolation.AppendEntry(again, e)
		}
		if !slices.Equal(again, raw) {
			t.Fatalf("% x became % x", raw, again)
		}
		list := isolation.Collect(nil, from, to, slices.Values([][]isolation.AbortedTxn{entries}))
		for i, a := range list {
			if a.LastOffset < from || a.FirstOffset >= to || (i > 0 && list[i-1].FirstOffset > a.FirstOffset) {
				t.Fatalf("%+v at %d of the answer to %d until %d", a, i, from, to)
			}
		}
	})
}

func ExampleCollect() {
	segment := []isolation.AbortedTxn{
		{ProducerID: 7, FirstOffset: 20, LastOffset: 25, LastStableOffset: 10},
		{ProducerID: 8, FirstOffset: 10, LastOffset: 30, LastStableOffset: 31},
		{ProducerID: 7, FirstOffset: 40, LastOffset: 44, LastStableOffset: 45},
	}
	for _, a := range isolation.Collect(nil, 0, 40, slices.Values([][]isolation.AbortedTxn{segment})) {
		fmt.Println("producer", a.ProducerID, "from", a.FirstOffset)
	}
	// Output:
	// producer 8 from 10
	// producer 7 from 20
}
