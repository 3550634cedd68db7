package conntest

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// limit bounds one case.
const limit = 60 * time.Second

// cases lists everything, in a fixed order.
func (k Kit) cases() []testCase {
	var all []testCase
	all = append(all, contractCases()...)
	all = append(all, crashCases()...)
	all = append(all, zombieCases()...)
	all = append(all, runCases()...)
	var out []testCase
	for _, c := range all {
		if c.cluster && k.Cluster == nil || !strings.Contains(c.name, k.Only) {
			continue
		}
		out = append(out, c)
	}
	return out
}

// RunSink runs every case as a subtest.
func RunSink(t *testing.T, k Kit) {
	if k.Open == nil {
		t.Fatal("conntest: Kit.Open is required")
	}
	if k.Seed == 0 {
		k.Seed = rand.Uint64()
	}
	t.Logf("conntest: seed %d", k.Seed)
	for _, c := range k.cases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if err := k.run(t, c); err != nil {
				t.Errorf("seed %d: %v", k.Seed, err)
			}
		})
	}
}

// Finding is the result of one case; Err is nil when it passed.
type Finding struct {
	Case string
	Err  error
}

// Verify runs every case one after the other and returns what it found, for
// callers that want to look at the findings. tb is used for clean-up only.
func Verify(tb testing.TB, k Kit) []Finding {
	var out []Finding
	for _, c := range k.cases() {
		out = append(out, Finding{Case: c.name, Err: k.run(tb, c)})
	}
	return out
}

// run runs one case on a store of its own.
func (k Kit) run(tb testing.TB, c testCase) (err error) {
	ctx, cancel := context.WithTimeout(tb.Context(), limit)
	defer cancel()
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(c.name)) // never fails, see package hash
	e := &env{
		tb: tb, kit: k, ctx: ctx, name: safe(c.name),
		rng: rand.New(rand.NewPCG(k.Seed, sum.Sum64())),
	}
	e.store = k.Open(tb, e.name)
	defer e.close()
	if err := c.run(e); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	return nil
}

// safe makes a name of letters, digits and dashes.
func safe(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
}
