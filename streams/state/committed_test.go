package state_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/millrace/millrace/core/seedtest"
	"github.com/millrace/millrace/streams/state"
)

// Whatever is written, committed, aborted and flushed in whatever order: the committed
// contents are those of the last commit.
func TestCommittedShowsNothingElse(t *testing.T) {
	t.Parallel()
	seed := seedtest.New(t)
	rnd := rand.New(rand.NewPCG(seed, 1))
	o := state.NewOverlay(state.NewMemory(), state.OverlayOptions{FlushCommits: 3, CacheBytes: 500})
	committed, open := map[string]string{}, map[string]string{}
	for step := range 3000 {
		key := fmt.Sprint(rnd.IntN(40))
		var err error
		switch n := rnd.IntN(20); {
		case n < 9:
			open[key] = fmt.Sprint(step)
			err = o.Put([]byte(key), []byte(open[key]))
		case n < 12:
			delete(open, key)
			err = o.Delete([]byte(key))
		case n < 13:
			for k := range open {
				if k >= "2" && k < "3" {
					delete(open, k)
				}
			}
			err = o.Expire([]byte("2"), []byte("3"))
		case n < 16:
			var v []byte
			var ok bool
			if v, ok, err = o.Get([]byte(key)); string(v) != open[key] || ok != (open[key] != "") {
				t.Fatalf("seed %d step %d: %s is %q, want %q", seed, step, key, v, open[key])
			}
		case n < 18:
			committed = maps.Clone(open)
			err = o.Commit(state.Position{TopicID: [16]byte{1}, Next: int64(step)})
		case n < 19:
			open = maps.Clone(committed)
			o.Abort()
		default:
			err = o.Flush()
		}
		if err != nil {
			t.Fatal(err)
		}
		c := o.Committed()
		if v, ok, err := c.Get([]byte(key)); err != nil || string(v) != committed[key] || ok != (committed[key] != "") {
			t.Fatalf("seed %d step %d: %s is committed as %q, want %q (%v)", seed, step, key, v, committed[key], err)
		}
		got := map[string]string{}
		for row, err := range c.Range(nil, nil) {
			if err != nil {
				t.Fatal(err)
			}
			got[string(row.Key)] = string(row.Value)
		}
		if !maps.Equal(got, committed) {
			t.Fatalf("seed %d step %d: committed rows %v, want %v", seed, step, got, committed)
		}
	}
}
