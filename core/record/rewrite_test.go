package record

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/millrace/millrace/core/seedtest"
)

// TestRewriter removes random records from batches of all codecs and kinds, with and without a delete horizon, twice in a row.
func TestRewriter(t *testing.T) {
	seed := seedtest.New(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	var w Rewriter
	for round := range 300 {
		codec := Codec(round % 5)
		var b Builder
		b.Reset(BuilderOptions{
			Codec: codec, BaseOffset: rng.Int64N(1 << 40), LeaderEpoch: 7, Transactional: round%3 == 0,
			Producer: &Producer{ID: 4, Epoch: 2, Sequence: 1<<31 - 3},
		})
		n := 1 + rng.IntN(20)
		for i := range n {
			var headers []Header
			for range rng.IntN(3) {
				headers = append(headers, Header{Key: []byte("h"), Value: bytes.Repeat([]byte{1}, rng.IntN(200))})
			}
			value := bytes.Repeat([]byte{byte(i)}, rng.IntN(300))
			if i%4 == 0 {
				value = nil
			}
			b.Append(1_700_000_000_000+rng.Int64N(1000)-500, fmt.Appendf(nil, "k%d", i), value, headers)
		}
		batch, err := b.Batch()
		if err != nil {
			t.Fatal(err)
		}
		if round%7 == 0 {
			batch.SetLogAppendTime(1_700_000_001_234)
		}
		want := all(t, batch)
		for range 2 { // what was rewritten is rewritten again
			horizon := int64(NoTimestamp)
			if rng.IntN(2) == 0 {
				horizon = 1_800_000_000_000
			}
			batch, want = rewriteSome(t, &w, rng, batch, want, horizon)
		}
		empty := w.Empty(batch)
		if err := empty.CheckCRC(); err != nil || len(empty) != HeaderSize || empty.Count() != 0 || empty.LastOffset() != batch.LastOffset() ||
			empty.LastSequence() != batch.LastSequence() || empty.Attributes().Transactional() != batch.Attributes().Transactional() {
			t.Fatalf("emptied %x of %x: %v", empty, batch[:HeaderSize], err)
		}
		w.Release()
	}
}

// rewriteSome keeps some of the records and compares what a reader finds.
func rewriteSome(t *testing.T, w *Rewriter, rng *rand.Rand, b Batch, records []string, horizon int64) (Batch, []string) {
	t.Helper()
	var want []string
	i, stays := 0, rng.IntN(len(records)) // one at least
	n, err := w.Keep(b, func(*Record) bool {
		keep := i == stays || rng.IntN(2) == 0
		if keep {
			want = append(want, records[i])
		}
		i++
		return keep
	})
	if err != nil || n != len(want) || i != len(records) {
		t.Fatalf("%d kept of %d, want %d: %v", n, i, len(want), err)
	}
	out, err := w.Batch(b, horizon)
	if err != nil {
		t.Fatal(err)
	}
	out = bytes.Clone(out)
	if err := out.CheckCRC(); err != nil {
		t.Fatal(err)
	}
	if out.BaseOffset() != b.BaseOffset() || out.LastOffset() != b.LastOffset() || out.LastSequence() != b.LastSequence() || out.LeaderEpoch() != 7 ||
		out.Attributes().DeleteHorizon() != (horizon != NoTimestamp) || horizon != NoTimestamp && out.BaseTimestamp() != horizon ||
		out.Attributes().Codec() != b.Attributes().Codec() {
		t.Fatalf("header %x of %x", out[:HeaderSize], b[:HeaderSize])
	}
	if got := all(t, out); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("records\n%v, want\n%v", got, want)
	}
	return out, want
}

func all(t *testing.T, b Batch) (out []string) {
	t.Helper()
	for r, err := range b.Records(nil) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%d %d %s %v %x %v", r.Offset, r.Timestamp, r.Key, r.Value == nil, r.Value, r.Headers))
	}
	return out
}

// TestRewriterRefuses a batch that lies about its records.
func TestRewriterRefuses(t *testing.T) {
	var b Builder
	b.Append(1, []byte("k"), []byte("v"), nil)
	batch, err := b.Batch()
	if err != nil {
		t.Fatal(err)
	}
	var w Rewriter
	if _, err := w.Batch(batch, NoTimestamp); err == nil {
		t.Error("a batch of no records is made")
	}
	batch[HeaderSize] = 0x7e // longer than the batch
	if _, err := w.Keep(batch, func(*Record) bool { return true }); err == nil {
		t.Error("a record that reaches beyond its batch is read")
	}
}
