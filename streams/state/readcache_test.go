package state_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/core/seedtest"
	"github.com/millrace/millrace/streams/state"
	"github.com/millrace/millrace/streams/state/statetest"
)

func readCache(t testing.TB, bytes int) *state.ReadCache {
	t.Helper()
	c, err := state.NewReadCache(bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// An image behind the cache is an image: one cache for all cases, so that images of
// before are in it too.
func TestReadCacheIsAnImage(t *testing.T) {
	t.Parallel()
	c := readCache(t, state.MinReadCache)
	statetest.Image(t, statetest.Engine{
		Open: func(t *testing.T, dir string) state.Image { return c.Over(openLevel(t, dir)) }, Durable: true,
	})
}

// counted tells how often an image was asked.
type counted struct {
	state.Image
	gets int
}

func (c *counted) Get(key []byte) ([]byte, bool, error) {
	c.gets++
	return c.Image.Get(key)
}

// Reads through the cache are those of the image, whatever was written in between,
// and what is read again and again is asked for once.
func TestReadCacheAgainstTheImage(t *testing.T) {
	t.Parallel()
	seed := seedtest.New(t)
	rnd := rand.New(rand.NewPCG(seed, 1))
	below := &counted{Image: state.NewMemory()}
	img := readCache(t, state.MinReadCache).Over(below)
	next := int64(0)
	for range 2000 {
		switch key := fmt.Appendf(nil, "key-%d", int(rnd.ExpFloat64()*500)); rnd.IntN(10) {
		case 0, 1:
			next++
			row := state.Row{Key: key}
			if rnd.IntN(4) > 0 {
				row.Value = []byte(strings.Repeat("v", rnd.IntN(400)))
			}
			if err := img.Apply([]state.Row{row}, state.Position{TopicID: [16]byte{1}, Next: next}); err != nil {
				t.Fatal(err)
			}
		default:
			for range 20 {
				want, wantOK, err := below.Image.Get(key)
				if err != nil {
					t.Fatal(err)
				}
				if v, ok, err := img.Get(key); err != nil || ok != wantOK || string(v) != string(want) {
					t.Fatalf("Get(%s) = %q %v %v, want %q %v", key, v, ok, err, want, wantOK)
				}
			}
		}
	}
	if reads := 1600 * 20; below.gets > reads/20 {
		t.Errorf("the image was asked %d times for about %d reads", below.gets, reads)
	}
}

func TestReadCacheSharedByTasks(t *testing.T) {
	t.Parallel()
	c := readCache(t, state.MinReadCache)
	var all sync.WaitGroup
	for task := range 4 {
		all.Go(func() {
			img := c.Over(state.NewMemory())
			for i := range 5000 {
				key, val := fmt.Appendf(nil, "key-%d", i%300), fmt.Appendf(nil, "%d of %d", i, task)
				if err := img.Apply([]state.Row{{Key: key, Value: val}}, state.Position{}); err != nil {
					t.Error(err)
				}
				if v, ok, err := img.Get(key); err != nil || !ok || string(v) != string(val) {
					t.Errorf("task %d: %s = %q %v %v, want %q", task, key, v, ok, err, val)
					return
				}
			}
		})
	}
	all.Wait()
}

// The bytes given are the bytes used, however many rows of however many stores.
func TestReadCacheIsBounded(t *testing.T) {
	const size = 4 << 20
	rows := state.NewMemory()
	before := heap()
	c := readCache(t, size)
	for store := range 3 {
		img := c.Over(rows)
		for i := range 100_000 {
			if _, _, err := img.Get(fmt.Appendf(nil, "store-%d-key-%d", store, i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if used := heap() - before; used > size*3/2 {
		t.Errorf("a cache of %d bytes takes %d", size, used)
	}
	runtime.KeepAlive(c)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestReadCacheHitDoesNotAllocate(t *testing.T) {
	below := &counted{Image: state.NewMemory()}
	img := readCache(t, state.MinReadCache).Over(below)
	if err := below.Apply([]state.Row{{Key: []byte("k"), Value: []byte("value")}}, state.Position{}); err != nil {
		t.Fatal(err)
	}
	key, none := []byte("k"), []byte("none")
	n := testing.AllocsPerRun(100, func() {
		if v, ok, err := img.Get(key); err != nil || !ok || string(v) != "value" {
			t.Fatalf("%q %v %v", v, ok, err)
		}
		if _, ok, err := img.Get(none); err != nil || ok {
			t.Fatal(ok, err)
		}
	})
	if n > 0 || below.gets != 2 {
		t.Errorf("%v allocations for two hits, want 0; the image was asked %d times, want 2", n, below.gets)
	}
}

func TestReadCacheLimits(t *testing.T) {
	t.Parallel()
	for _, bytes := range []int{-1, 0, state.MinReadCache - 1, 1<<36 + 1} {
		if _, err := state.NewReadCache(bytes); err == nil || !strings.Contains(err.Error(), fmt.Sprint(bytes)) {
			t.Errorf("%d bytes: %v", bytes, err)
		}
	}
}
