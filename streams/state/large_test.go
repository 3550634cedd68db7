//go:build unix

package state_test

import (
	"encoding/binary"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/streams/state"
	"github.com/millrace/millrace/streams/state/pebble"
)

var (
	largeRows    = flag.Int("state.large", 0, "rows of TestLargeState, which is skipped without")
	largeRecords = flag.Int("state.records", 1_000_000, "records that TestLargeState counts")
	largeDir     = flag.String("state.dir", "", "folder on a real disk for TestLargeState; default one of the test's")
)

// TestLargeState measures: it fills a store on disk, opens it as a restart would, and
// counts records by keys all over it, once 10,000 and once all, as BenchmarkCount
// does. The rows have keys of 16 and values of 64 bytes.
func TestLargeState(t *testing.T) {
	if *largeRows == 0 {
		t.Skip("measures; give it -state.large")
	}
	engines := []state.Engine{pebble.New(pebble.Options{}), state.GoLevelDB()}
	if *largeRows > 20_000_000 {
		engines = engines[:1]
	}
	for _, e := range engines {
		t.Run(e.Name(), func(t *testing.T) {
			dir := *largeDir
			if dir == "" {
				dir = t.TempDir()
			}
			dir = filepath.Join(dir, e.Name())
			wall, used := time.Now(), measure(t)
			img := benchImage(t, e, dir, *largeRows)
			t.Logf("filled with %d rows in %v, %v of processor time", *largeRows, time.Since(wall).Round(time.Millisecond), used())
			small := countRecords(t, img, 10_000)
			large := countRecords(t, img, *largeRows)
			t.Logf("rate with %d keys against 10,000: %.2f by the clock, %.2f by processor time", *largeRows,
				float64(small.wall)/float64(large.wall), float64(small.cpu)/float64(large.cpu))
			closeImage(t, img)
			wall, used = time.Now(), measure(t)
			img, err := e.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			_, ok, err := img.Get(benchKey(nil, 1))
			t.Logf("opened in %v and %v of processor time to the first row (%v, %v), at %d; on disk %d MB", time.Since(wall).Round(100*time.Microsecond), used(), ok, err, img.Position().Next, onDisk(t, dir)>>20)
			closeImage(t, img)
		})
	}
}

type spent struct{ wall, cpu time.Duration }

func countRecords(t *testing.T, img state.Image, keys int) spent {
	t.Helper()
	o := state.NewOverlay(readCache(t, 32<<20).Over(unclosed{img}), state.OverlayOptions{})
	rnd, key, value := rand.New(rand.NewPCG(1, 1)), make([]byte, 0, 16), make([]byte, 64)
	at := img.Position().Next
	round := func(n int) {
		for i := 1; i <= n; i++ {
			key = benchKey(key, rnd.Uint64N(uint64(keys)))
			old, ok, err := o.Get(key)
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			binary.BigEndian.PutUint64(value, binary.BigEndian.Uint64(old)+1)
			if err := o.Put(key, value); err != nil {
				t.Fatal(err)
			}
			if i%20_000 == 0 {
				at += 20_000
				if err := o.Commit(state.Position{TopicID: [16]byte{1}, Next: at}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	round(100_000) // what is in memory anyway gets there
	wall, used := time.Now(), measure(t)
	round(*largeRecords)
	s := spent{time.Since(wall), used()}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("counted %d records of %d keys: %.0f per second, %.2f µs of processor time each; the process has %d MB of Go's, %d MB resident at most", *largeRecords, keys,
		float64(*largeRecords)/s.wall.Seconds(), float64(s.cpu.Nanoseconds())/1000/float64(*largeRecords), m.HeapInuse>>20, resident(t)>>20)
	return s
}

// unclosed stays open when an overlay over it is closed.
type unclosed struct{ state.Image }

func (unclosed) Close() error { return nil }

func closeImage(t *testing.T, img state.Image) {
	t.Helper()
	if err := img.Close(); err != nil {
		t.Fatal(err)
	}
}

// measure starts to measure processor time.
func measure(t *testing.T) func() time.Duration {
	before := usage(t)
	return func() time.Duration {
		u := usage(t)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()).Round(time.Millisecond)
	}
}

func usage(t *testing.T) (u syscall.Rusage) {
	t.Helper()
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return u
}

// resident is the most memory that the process has had, in bytes, on Linux.
func resident(t *testing.T) int64 { return usage(t).Maxrss << 10 }

func onDisk(t *testing.T, dir string) (n int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		i, err := d.Info()
		if err == nil {
			n += i.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
