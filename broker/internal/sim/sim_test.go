package sim

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"os"
	"testing"
)

// fresh is how many seeds a run of the tests goes through that nobody has run before, beside the fixed ones.
const fresh = 200

// seeds are the fixed ones and some fresh ones: many in a soak, none under the race detector, which has nothing to find where there is
// one goroutine, and makes it slow.
func seeds() []uint64 {
	count, more := uint64(500), uint64(fresh)
	switch {
	case raceEnabled:
		count, more = 10, 0
	case os.Getenv("MILLRACE_SOAK") != "":
		more = 5000
	}
	var all []uint64
	for s := range count {
		all = append(all, s+1)
	}
	first := rand.Uint64() >> 16
	for s := range more {
		all = append(all, first+s)
	}
	return all
}

func TestSeeds(t *testing.T) {
	t.Parallel()
	var records, committed int
	for _, seed := range seeds() {
		r, err := Run(Options{Seed: seed})
		if err != nil {
			t.Fatalf("%v\nagain with: go run ./broker/internal/sim/cmd -seed %d -trace", err, seed)
		}
		records, committed = records+r.Records, committed+r.Committed
	}
	if committed < records/4 {
		t.Errorf("of %d records only %d were committed: the clients get nothing done", records, committed)
	}
}

// TestSameSeedSameTrace is what makes a failure worth anything.
func TestSameSeedSameTrace(t *testing.T) {
	t.Parallel()
	count := uint64(10)
	if raceEnabled {
		count = 2
	}
	for seed := range count {
		var first, second bytes.Buffer
		for _, out := range []*bytes.Buffer{&first, &second} {
			if _, err := Run(Options{Seed: seed, Trace: out, Log: slog.NewTextHandler(out, logAll())}); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Fatalf("seed %d has two traces, of %d and %d bytes", seed, first.Len(), second.Len())
		}
		if first.Len() < 10_000 {
			t.Fatalf("seed %d: a trace of %d bytes", seed, first.Len())
		}
	}
}

// logAll logs everything but the time of the machine.
func logAll() *slog.HandlerOptions {
	return &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}
}
