package partition

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/vfs"
)

// TestCompactionConcurrency compacts, deletes and retains without a pause under writers and readers. Readers meet only whole batches,
// in rising order, whatever is replaced under them; under the race detector it is the proof that they need no lock.
func TestCompactionConcurrency(t *testing.T) {
	t.Parallel()
	c := compacting(0)
	c.Deletes, c.RetentionMs, c.RetentionBytes = true, -1, 200_000
	r := newRig(t, vfs.NewMem(), c)
	p := r.open()
	each := 400
	if testing.Short() {
		each = 150
	}
	const writers = 3
	var writing, others sync.WaitGroup
	var done atomic.Bool
	for w := range writers {
		writing.Go(func() {
			s := &sender{id: int64(w)}
			for i := range each {
				b := keyedBatch(t, s, fmt.Sprintf("k%d", i%7), fmt.Sprintf("%d-%d", w, i))
				a, err := p.Append(b, AppendOptions{RequestVersion: 12})
				if err != nil {
					t.Error(err)
					return
				}
				if i%10 == 0 {
					if err := await(p, a.LastOffset); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	for seed := range uint64(3) {
		others.Go(func() { wander(t, p, seed, &done) })
	}
	var rounds, swaps int64
	others.Go(func() {
		for i := 0; !done.Load(); i++ {
			if _, err := p.Compact(Compaction{NowMs: r.now(), TableBytes: 1 << 15}); err != nil {
				t.Error(err)
			}
			if m := p.Marks(); i%20 == 19 {
				if _, err := p.DeleteRecords(m.LogStart + (m.HighWatermark-m.LogStart)/2); err != nil {
					t.Error(err)
				}
			}
			if _, err := p.Retain(r.now()); err != nil {
				t.Error(err)
			}
			rounds++
		}
		swaps = p.log.Swaps()
	})
	writing.Wait()
	if err := await(p, p.Marks().LogEnd-1); err != nil {
		t.Error(err)
	}
	done.Store(true)
	others.Wait()
	if t.Logf("%d rounds, %d segments replaced", rounds, swaps); swaps == 0 {
		t.Error("nothing was compacted")
	}
	r.close()
}

// keyedBatch is a batch of one record.
func keyedBatch(t testing.TB, s *sender, key, value string) []byte {
	t.Helper()
	var b record.Builder
	b.Reset(record.BuilderOptions{Producer: &record.Producer{ID: s.id, Epoch: s.epoch, Sequence: s.sequence}})
	s.sequence++
	b.Append(1_700_000_000_000, []byte(key), []byte(value), nil)
	out, err := b.Batch()
	if err != nil {
		t.Error(err)
	}
	return append([]byte(nil), out...)
}

// wander reads from all over the log until done, by offset and by time.
func wander(t *testing.T, p *Partition, seed uint64, done *atomic.Bool) {
	rng := rand.New(rand.NewPCG(seed, 2))
	for from := int64(0); !done.Load(); {
		read, err := p.Read(ReadOptions{Offset: from, MaxBytes: int32(rng.IntN(5000)), Committed: seed == 0, AtLeastOne: true})
		if code(err) == CodeOffsetOutOfRange {
			from = p.Marks().LogStart
			continue
		}
		if err != nil {
			t.Error(err)
			return
		}
		at := from
		for b, err := range record.Batches(bytesOf(t, read)) {
			if err == nil {
				err = b.CheckCRC()
			}
			if err != nil || b.LastOffset() < at {
				t.Errorf("at %d: batch %d to %d, %v", at, b.BaseOffset(), b.LastOffset(), err)
				return
			}
			at = b.LastOffset() + 1
		}
		empty := read.Bytes == 0
		read.Release()
		if from = at; empty || rng.IntN(10) == 0 {
			m := p.Marks()
			from = m.LogStart + rng.Int64N(m.LogEnd-m.LogStart+1)
		}
		if _, _, _, _, err := p.OffsetForTime(rng.Int64N(1_700_000_000_001), seed == 0); err != nil {
			t.Error(err)
		}
		if seed == 1 && rng.IntN(50) == 0 {
			if err := p.Replay(func(b record.Batch) error { return b.CheckCRC() }); err != nil {
				t.Error(err)
			}
		}
	}
}

// BenchmarkCompact is how fast a round goes: bytes read from the log per second.
func BenchmarkCompact(b *testing.B) {
	for _, codec := range []record.Codec{record.None, record.LZ4, record.Zstd} {
		b.Run(codec.String(), func(b *testing.B) { benchmarkCompact(b, codec) })
	}
}

func benchmarkCompact(b *testing.B, codec record.Codec) {
	b.ReportAllocs()
	var bytes int64
	for b.Loop() {
		b.StopTimer()
		r := newRig(b, vfs.NewMem(), commitlog.Config{SegmentBytes: 4 << 20, Compacted: true})
		p := r.open()
		rng := rand.New(rand.NewPCG(1, 1))
		var builder record.Builder
		for p.log.Size() < 32<<20 {
			builder.Reset(record.BuilderOptions{Codec: codec})
			for range 100 {
				n := rng.IntN(100_000)
				builder.Append(1_700_000_000_000, fmt.Appendf(nil, "key-%d", n), fmt.Appendf(nil, "%0100d", n), nil)
			}
			batch, err := builder.Batch()
			if err != nil {
				b.Fatal(err)
			}
			if _, err := p.Append(append([]byte(nil), batch...), AppendOptions{RequestVersion: 12}); err != nil {
				b.Fatal(err)
			}
		}
		p.Flush()
		p.Flush()
		b.StartTimer()
		c, err := p.Compact(Compaction{NowMs: r.now(), TableBytes: 64 << 20})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if bytes += c.Counts.BytesIn; c.Counts.RecordsOut >= c.Counts.RecordsIn {
			b.Fatalf("%+v", c)
		}
		r.close()
		b.StartTimer()
	}
	b.SetBytes(bytes / int64(b.N))
}
