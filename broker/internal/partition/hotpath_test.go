package partition

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/broker/internal/flush"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/vfs"
)

// TestAllocations: what a batch costs does not depend on its records, and neither append nor fetch allocates for each of them.
func TestAllocations(t *testing.T) {
	r := newRig(t, vfs.NewMem(), commitlog.Config{})
	p := r.open()
	values := slices.Repeat([]string{strings.Repeat("v", 100)}, 100)
	s := &sender{id: 1}
	batches := make([][]byte, 300)
	for i := range batches {
		batches[i] = s.batch(t, 1, values...)
	}
	next := 0
	perAppend := testing.AllocsPerRun(len(batches)-1, func() {
		if _, err := p.Append(batches[next], AppendOptions{RequestVersion: 12}); err != nil {
			t.Fatal(err)
		}
		next++
	})
	if err := await(p, p.Marks().LogEnd-1); err != nil {
		t.Fatal(err)
	}
	// The flush on another goroutine and the memory file's growth are counted too.
	if perAppend > 10 {
		t.Errorf("%.1f allocations for an append of 100 records", perAppend)
	}
	offset := int64(0)
	perRead := testing.AllocsPerRun(len(batches)-1, func() {
		read, err := p.Read(ReadOptions{Offset: offset, MaxBytes: 1 << 20, Committed: true, AtLeastOne: true})
		if err != nil || read.Bytes == 0 {
			t.Fatal(read, err)
		}
		offset += 50
		read.Release()
	})
	if perRead > 1 {
		t.Errorf("%.1f allocations for a fetch", perRead)
	}
	r.close()
}

// TestConcurrency lets appenders, readers, deletion and reconfiguration run at once, on segments that roll all the time: each
// reader sees every record that is not deleted, once and in order; under the race detector it is the proof that readers share
// no lock and no unguarded state with appends.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	const writers, each = 4, 400
	r := newRig(t, vfs.NewMem(), tiny)
	p := r.open()
	var writing, reading sync.WaitGroup
	var done atomic.Bool
	for w := range int64(writers) {
		writing.Go(func() {
			s := &sender{id: w}
			for i := range each {
				a, err := p.Append(s.batch(t, 1, fmt.Sprintf("%d-%d", w, i)), AppendOptions{RequestVersion: 12})
				if err != nil {
					t.Error(err)
					return
				}
				if i%50 == 0 {
					if err := await(p, a.LastOffset); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	for seed := range uint64(3) {
		reading.Go(func() { follow(t, p, seed, &done) })
	}
	reading.Go(func() {
		for i := 0; !done.Load(); i++ {
			if m := p.Marks(); m.HighWatermark > 100 {
				if _, err := p.DeleteRecords(m.HighWatermark - 100); err != nil {
					t.Error(err)
				}
			}
			p.Reconfigure(tiny)
			cancel := p.OnAdvance(func() {})
			cancel()
		}
	})
	writing.Wait()
	if err := await(p, p.Marks().LogEnd-1); err != nil {
		t.Error(err)
	}
	done.Store(true)
	reading.Wait()
	if m := p.Marks(); m.LogEnd != writers*each {
		t.Errorf("%+v", m)
	}
	r.close()
}

// follow reads all the time, until a fetch that began after done was set finds nothing more.
func follow(t *testing.T, p *Partition, seed uint64, done *atomic.Bool) {
	rng := rand.New(rand.NewPCG(seed, 1))
	next := map[string]int{} // by writer
	for from := int64(0); ; {
		last := done.Load()
		read, err := p.Read(ReadOptions{Offset: from, MaxBytes: int32(rng.IntN(5000)), Committed: seed == 0, AtLeastOne: true})
		if code(err) == CodeOffsetOutOfRange {
			from = p.Marks().LogStart // deleted under our feet
			clear(next)
			continue
		}
		if err != nil {
			t.Error(err)
			return
		}
		empty := read.Bytes == 0
		for b, err := range record.Batches(bytesOf(t, read)) {
			if err == nil {
				err = b.CheckCRC()
			}
			if err != nil || b.BaseOffset() != from {
				t.Errorf("at %d: batch at %d, %v", from, b.BaseOffset(), err)
				return
			}
			for rec := range b.Records(nil) {
				if err := inOrder(next, string(rec.Value)); err != nil {
					t.Error(err)
					return
				}
			}
			from = b.LastOffset() + 1
		}
		read.Release()
		if empty && last {
			return
		}
		if _, _, _, _, err := p.OffsetForTime(0, false); err != nil {
			t.Error(err)
		}
		if m := p.Marks(); m.LogStart > m.LastStable || m.LastStable > m.HighWatermark || m.HighWatermark > m.LogEnd {
			t.Errorf("%+v", m)
		}
	}
}

// inOrder takes a value "writer-number" and checks it against the writer's last one.
func inOrder(next map[string]int, value string) error {
	w, text, _ := strings.Cut(value, "-")
	n, err := strconv.Atoi(text)
	if want, seen := next[w]; err != nil || seen && n != want {
		return fmt.Errorf("writer %s: record %s, want %d", w, text, want)
	}
	next[w] = n + 1
	return nil
}

// benchRig is a partition on the real disk.
func benchRig(b *testing.B) (*Partition, func()) {
	b.Helper()
	dir := b.TempDir()
	f, err := flush.New(flush.Options{FS: vfs.OS(), Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	p, err := Open(Options{FS: vfs.OS(), Dir: filepath.Join(dir, "t-0"), Topic: "t", TopicID: topicID, Flusher: f, Durable: true})
	if err != nil {
		b.Fatal(err)
	}
	return p, func() {
		if err := p.Close(); err != nil {
			b.Fatal(err)
		}
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSynced is one record of 100 bytes at a time, acknowledged after fsync, by so many at once.
func BenchmarkSynced(b *testing.B) {
	for _, n := range []int{1, 32, 128} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p, end := benchRig(b)
			defer end()
			batch := plain.batch(b, 1, strings.Repeat("v", 100))
			var left atomic.Int64
			left.Store(int64(b.N))
			var all sync.WaitGroup
			b.ResetTimer()
			for range n {
				all.Go(func() {
					mine := slices.Clone(batch)
					for left.Add(-1) >= 0 {
						record.Batch(mine).SetBaseOffset(0)
						a, err := p.Append(mine, AppendOptions{RequestVersion: 12})
						if err == nil {
							err = await(p, a.LastOffset)
						}
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "acks/s")
		})
	}
}

// BenchmarkAppend is a stream of batches of a hundred 100-byte records, the disk syncing beside it.
func BenchmarkAppend(b *testing.B) {
	p, end := benchRig(b)
	defer end()
	batch := plain.batch(b, 1, slices.Repeat([]string{strings.Repeat("v", 100)}, 100)...)
	b.SetBytes(int64(len(batch)))
	b.ReportAllocs()
	for b.Loop() {
		record.Batch(batch).SetBaseOffset(0)
		if _, err := p.Append(batch, AppendOptions{RequestVersion: 12}); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	if err := await(p, p.Marks().LogEnd-1); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkRead finds the batches of a fetch of 1 MiB; the bytes themselves are the socket's work.
func BenchmarkRead(b *testing.B) {
	p, end := benchRig(b)
	defer end()
	batch := plain.batch(b, 1, slices.Repeat([]string{strings.Repeat("v", 100)}, 100)...)
	for range 5000 {
		record.Batch(batch).SetBaseOffset(0)
		if _, err := p.Append(batch, AppendOptions{RequestVersion: 12}); err != nil {
			b.Fatal(err)
		}
	}
	if err := await(p, p.Marks().LogEnd-1); err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	b.ReportAllocs()
	for b.Loop() {
		read, err := p.Read(ReadOptions{Offset: rng.Int64N(400_000), MaxBytes: 1 << 20, AtLeastOne: true})
		if err != nil {
			b.Fatal(err)
		}
		read.Release()
	}
}

// BenchmarkRelaxed is one record of 100 bytes at a time, acknowledged when the kernel has it, by so many at once.
func BenchmarkRelaxed(b *testing.B) {
	for _, n := range []int{1, 32} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p, end := benchRig(b)
			defer end()
			p.Reconfigure(commitlog.Config{Durability: commitlog.Durability{Relaxed: true}})
			batch := plain.batch(b, 1, strings.Repeat("v", 100))
			var left atomic.Int64
			left.Store(int64(b.N))
			var all sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			for range n {
				all.Go(func() {
					mine := slices.Clone(batch)
					for left.Add(-1) >= 0 {
						record.Batch(mine).SetBaseOffset(0)
						a, err := p.Append(mine, AppendOptions{RequestVersion: 12})
						if err == nil {
							err = await(p, a.LastOffset)
						}
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "acks/s")
		})
	}
}
