package compact

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/millrace/millrace/core/seedtest"
)

// TestTable compares a table with a map, up to where it is full, and its size with the limit.
func TestTable(t *testing.T) {
	seed := seedtest.New(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	const limit = 100_000
	table, model := NewTable(limit), map[string]int64{}
	full := false
	for offset := range int64(20_000) {
		key := fmt.Sprint(rng.IntN(5000))
		_, known := model[key]
		ok := table.Put([]byte(key), offset)
		if !ok && known {
			t.Fatalf("a full table refuses the key %s that it has", key)
		}
		if ok {
			model[key] = offset
		}
		full = full || !ok
	}
	if !full || table.Len() != len(model) || len(table.slots)*slotBytes > limit {
		t.Fatalf("full %v, %d keys, want %d, %d bytes", full, table.Len(), len(model), len(table.slots)*slotBytes)
	}
	for i := range 6000 {
		key := fmt.Sprint(i)
		want, ok := model[key]
		if !ok {
			want = -1
		}
		if got := table.Get([]byte(key)); got != want {
			t.Fatalf("key %s is at %d, want %d", key, got, want)
		}
	}
	if got := new(Table).Get(nil); got != -1 {
		t.Fatal(got)
	}
}

func TestTableAllocations(t *testing.T) {
	table := NewTable(1 << 20)
	var key [8]byte
	i := int64(0)
	put := func() {
		i++
		binary.BigEndian.PutUint64(key[:], uint64(i%500))
		table.Put(key[:], i)
		table.Get(key[:])
	}
	for range 1000 {
		put()
	}
	if n := testing.AllocsPerRun(1000, put); n > 0 {
		t.Errorf("%v allocations a record", n)
	}
}

func TestChoose(t *testing.T) {
	segments := []Segment{{0, 10, 100}, {10, 20, 100}, {20, 30, 200}, {30, 40, 100}}
	times := func(ms ...int64) func(int) (int64, error) { return func(i int) (int64, error) { return ms[i], nil } }
	never := int64(math.MaxInt64)
	for name, c := range map[string]struct {
		terms Terms
		want  Plan
	}{
		"all is dirty":                    {Terms{HorizonMs: never, DirtyRatio: 0.5}, Plan{true, 4, 0, 40, 1, 500}},
		"half is not more":                {Terms{HorizonMs: never, DirtyRatio: 0.6, Cleaned: 20}, Plan{false, 4, 20, 40, 0.6, 300}},
		"more than the ratio":             {Terms{HorizonMs: never, DirtyRatio: 0.59, Cleaned: 20}, Plan{true, 4, 20, 40, 0.6, 300}},
		"a part counts whole":             {Terms{HorizonMs: never, Cleaned: 25}, Plan{true, 4, 25, 40, 0.6, 300}},
		"all clean":                       {Terms{HorizonMs: never, Cleaned: 40}, Plan{false, 4, 40, 40, 0, 0}},
		"a horizon not reached":           {Terms{HorizonMs: 7, NowMs: 6, Cleaned: 40}, Plan{false, 4, 40, 40, 0, 0}},
		"a horizon":                       {Terms{HorizonMs: 7, NowMs: 7, Cleaned: 40}, Plan{true, 4, 40, 40, 0, 0}},
		"cleaned beyond what is finished": {Terms{HorizonMs: never, Cleaned: 45}, Plan{false, 4, 40, 40, 0, 0}},
		"cleaned beyond the log":          {Terms{HorizonMs: never, Cleaned: 99}, Plan{true, 4, 0, 40, 1, 500}},
		"deleted up to behind it":         {Terms{HorizonMs: never, Cleaned: 5, LogStart: 40}, Plan{false, 4, 40, 40, 0, 0}},
		"deleted records are not dirty":   {Terms{HorizonMs: never, Cleaned: 5, LogStart: 35}, Plan{true, 4, 35, 40, 0.2, 100}},
		"too young from the third on": {Terms{HorizonMs: never, NowMs: 100, MinLagMs: 10, Greatest: times(1, 90, 91, 3)},
			Plan{true, 2, 0, 20, 1, 200}},
		"all too young": {Terms{HorizonMs: never, NowMs: 100, MinLagMs: 10, Greatest: times(99, 1, 1, 1)}, Plan{}},
		"clean ones are not asked for their age": {Terms{HorizonMs: never, Cleaned: 30, NowMs: 100, MinLagMs: 10, Greatest: times(99, 99, 99, 1)},
			Plan{true, 4, 30, 40, 0.2, 100}},
		"late": {Terms{HorizonMs: never, DirtyRatio: 0.9, Cleaned: 30, NowMs: 100, MaxLagMs: 10, First: times(1, 1, 1, 89)},
			Plan{true, 4, 30, 40, 0.2, 100}},
		"not late yet": {Terms{HorizonMs: never, DirtyRatio: 0.9, Cleaned: 30, NowMs: 100, MaxLagMs: 10, First: times(1, 1, 1, 90)},
			Plan{false, 4, 30, 40, 0.2, 100}},
	} {
		c.terms.LogEnd = 50
		got, err := Choose(segments, c.terms)
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, c.want)
		}
	}
	if got, err := Choose(nil, Terms{HorizonMs: 1, NowMs: 2}); err != nil || got.Due {
		t.Errorf("no segments: %+v, %v", got, err)
	}
}

func TestGroup(t *testing.T) {
	segments := []Segment{{0, 10, 100}, {10, 20, 100}, {20, 1 << 40, 1}}
	for most, want := range map[int64]int{1: 1, 100: 1, 199: 1, 200: 2, 1000: 2} {
		if got := Group(segments, most); got != want {
			t.Errorf("up to %d bytes: %d segments, want %d", most, got, want)
		}
	}
}
