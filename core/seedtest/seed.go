// Package seedtest gives a random test its seed, by one rule for all rooms: MILLRACE_SEED when it is set, so that a
// failure can be repeated; a fresh one in the long forms, which look for what nobody has seen yet; and else one that
// follows from the test's name, so that a change is judged by the same choices before and after it.
package seedtest

import (
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Soak tells whether the long forms are asked for: MILLRACE_SOAK is set.
func Soak() bool { return os.Getenv("MILLRACE_SOAK") != "" }

// New is the seed of a test, which it logs. A MILLRACE_SEED that is no number fails the test.
func New(t testing.TB) uint64 {
	t.Helper()
	seed := choose(t)
	t.Logf("seed %d (MILLRACE_SEED repeats the choices)", seed)
	return seed
}

func choose(t testing.TB) uint64 {
	t.Helper()
	if s := os.Getenv("MILLRACE_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("MILLRACE_SEED: %v", err)
		}
		return seed
	}
	if Soak() {
		return rand.Uint64()
	}
	h := fnv.New64a()
	h.Write([]byte(t.Name())) // a hash takes everything
	return h.Sum64()
}
