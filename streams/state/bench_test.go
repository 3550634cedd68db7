//go:build unix

package state_test

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/streams/state"
	"github.com/millrace/millrace/streams/state/pebble"
)

// Benchmarks of the engines; docs/streams/state.md has figures and the commands.
var benchRows = flag.Int("state.rows", 200_000, "rows in the images of the benchmarks")

func benchEngines(b *testing.B, run func(b *testing.B, e state.Engine)) {
	for _, e := range []state.Engine{state.InMemory(), state.GoLevelDB(), pebble.New(pebble.Options{})} {
		b.Run(e.Name(), func(b *testing.B) { run(b, e) })
	}
}

// cpu is what the process has used so far, of all its threads. On a machine that is
// busy otherwise it says more than the clock.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// timed resets the timer and returns what reports the processor time per operation.
func timed(b *testing.B) (report func()) {
	b.ReportAllocs()
	b.ResetTimer()
	before := cpu(b)
	return func() {
		b.StopTimer()
		b.ReportMetric(float64(cpu(b)-before)/float64(b.N), "cpu-ns/op")
	}
}

// benchKey is key number i of 16 bytes, spread over the whole range of keys.
func benchKey(dst []byte, i uint64) []byte {
	x := i * 0x9e3779b97f4a7c15
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst[:0], x), i)
}

// benchBatch are n rows in order, with values of 64 bytes.
type benchBatch struct {
	rows []state.Row
	at   int64
}

func newBenchBatch(n int) *benchBatch {
	b := &benchBatch{rows: make([]state.Row, n)}
	for i := range b.rows {
		b.rows[i] = state.Row{Key: make([]byte, 0, 16), Value: make([]byte, 64)}
	}
	return b
}

func (x *benchBatch) apply(b testing.TB, img state.Image) {
	b.Helper()
	slices.SortFunc(x.rows, func(a, b state.Row) int { return bytes.Compare(a.Key, b.Key) })
	unique := 0
	for i := range x.rows { // each key once
		if i == 0 || !bytes.Equal(x.rows[i].Key, x.rows[unique-1].Key) {
			x.rows[unique], x.rows[i] = x.rows[i], x.rows[unique]
			unique++
		}
	}
	x.at += int64(len(x.rows))
	if err := img.Apply(x.rows[:unique], state.Position{TopicID: [16]byte{1}, Next: x.at}); err != nil {
		b.Fatal(err)
	}
}

// benchImage is an image of so many rows.
func benchImage(b testing.TB, e state.Engine, dir string, rows int) state.Image {
	b.Helper()
	img, err := e.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	const batch = 10_000
	x := newBenchBatch(batch)
	for from := 0; from < rows; from += batch {
		for i := range x.rows {
			x.rows[i].Key = benchKey(x.rows[i].Key, uint64(from+i))
			binary.BigEndian.PutUint64(x.rows[i].Value, uint64(from))
		}
		x.apply(b, img)
	}
	return img
}

func closeBench(b testing.TB, img state.Image) {
	b.Helper()
	if err := img.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkApply writes batches of 1,000 rows, each synced: of keys all over the
// store, which replace rows, and of keys that are new and follow each other, as
// windows do. One operation is one row.
func BenchmarkApply(b *testing.B) {
	for _, kind := range []string{"random", "ascending"} {
		b.Run(kind, func(b *testing.B) {
			benchEngines(b, func(b *testing.B, e state.Engine) {
				img := benchImage(b, e, b.TempDir(), *benchRows)
				defer closeBench(b, img)
				rnd, x := rand.New(rand.NewPCG(1, 1)), newBenchBatch(1000)
				next := uint64(0)
				defer timed(b)()
				for done := 0; done < b.N; done += len(x.rows) {
					for i := range x.rows {
						if kind == "random" {
							x.rows[i].Key = benchKey(x.rows[i].Key, rnd.Uint64N(uint64(*benchRows)))
						} else {
							next++
							x.rows[i].Key = append(x.rows[i].Key[:0], 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
							x.rows[i].Key = binary.BigEndian.AppendUint64(x.rows[i].Key, next)
						}
					}
					x.apply(b, img)
				}
			})
		})
	}
}

// BenchmarkGet reads rows: one of 1,000, again and again; any; any that is not
// there; and those through the read cache.
func BenchmarkGet(b *testing.B) {
	for _, kind := range []struct {
		name   string
		keys   int // read, 0 all
		from   int // the first of them
		cached bool
	}{{"hot", 1000, 0, false}, {"hot, cached", 1000, 0, true}, {"any", 0, 0, false}, {"none", 0, 1 << 40, false}, {"none, cached", 1000, 1 << 40, true}} {
		b.Run(kind.name, func(b *testing.B) {
			benchEngines(b, func(b *testing.B, e state.Engine) {
				img := benchImage(b, e, b.TempDir(), *benchRows)
				defer closeBench(b, img)
				if kind.cached {
					img = readCache(b, 32<<20).Over(img)
				}
				keys := kind.keys
				if keys == 0 {
					keys = *benchRows
				}
				rnd, key := rand.New(rand.NewPCG(1, 1)), make([]byte, 0, 16)
				defer timed(b)()
				for range b.N {
					key = benchKey(key, uint64(kind.from)+rnd.Uint64N(uint64(keys)))
					if _, ok, err := img.Get(key); err != nil || ok != (kind.from == 0) {
						b.Fatal(ok, err)
					}
				}
			})
		})
	}
}

// BenchmarkRange reads 100 rows that follow each other. One operation is one row.
func BenchmarkRange(b *testing.B) {
	benchEngines(b, func(b *testing.B, e state.Engine) {
		img := benchImage(b, e, b.TempDir(), *benchRows)
		defer closeBench(b, img)
		rnd, key := rand.New(rand.NewPCG(1, 1)), make([]byte, 0, 16)
		defer timed(b)()
		for done := 0; done < b.N; {
			key = benchKey(key, rnd.Uint64N(uint64(*benchRows)))
			n := 0
			for _, err := range img.Range(key, nil) {
				if err != nil {
					b.Fatal(err)
				}
				if n++; n == 100 {
					break
				}
			}
			done += max(n, 1)
		}
	})
}

// BenchmarkOpen opens a store of so many rows, which is what a restart waits for.
func BenchmarkOpen(b *testing.B) {
	for _, e := range []state.Engine{state.GoLevelDB(), pebble.New(pebble.Options{})} {
		b.Run(e.Name(), func(b *testing.B) {
			dir := b.TempDir()
			closeBench(b, benchImage(b, e, dir, *benchRows))
			for b.Loop() {
				img, err := e.Open(dir)
				if err != nil {
					b.Fatal(err)
				}
				if !img.Position().Known() {
					b.Fatal("no position")
				}
				closeBench(b, img)
			}
		})
	}
}

// BenchmarkCount counts per key as a task does, record by record, through overlay,
// read cache and image, with a commit for each 20,000 records, a flush for ten of
// those, and the log left out. Keys are even over 10,000 and over -state.rows.
func BenchmarkCount(b *testing.B) {
	for _, keys := range []int{10_000, *benchRows} {
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			benchEngines(b, func(b *testing.B, e state.Engine) {
				img := readCache(b, 32<<20).Over(benchImage(b, e, b.TempDir(), keys))
				o := state.NewOverlay(img, state.OverlayOptions{})
				rnd, key, value := rand.New(rand.NewPCG(1, 1)), make([]byte, 0, 16), make([]byte, 64)
				report := timed(b)
				for i := 1; i <= b.N; i++ {
					key = benchKey(key, rnd.Uint64N(uint64(keys)))
					old, ok, err := o.Get(key)
					if err != nil || !ok {
						b.Fatal(ok, err)
					}
					binary.BigEndian.PutUint64(value, binary.BigEndian.Uint64(old)+1)
					if err := o.Put(key, value); err != nil {
						b.Fatal(err)
					}
					if i%20_000 != 0 {
						continue
					}
					if err := o.Log(func(_, _ []byte) error { return nil }); err != nil {
						b.Fatal(err)
					}
					if err := o.Commit(state.Position{TopicID: [16]byte{1}, Next: int64(i)}); err != nil {
						b.Fatal(err)
					}
				}
				report()
				if err := o.Close(); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}
