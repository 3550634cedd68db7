package sim

import (
	"bytes"
	"log/slog"
	"testing"
)

// fixed are the seeds that every run of the tests goes through: the first ones, and those that have found something.
func fixed(t *testing.T, count uint64) []uint64 {
	t.Helper()
	var seeds []uint64
	for s := range count {
		seeds = append(seeds, s+1)
	}
	return seeds
}

func TestSeeds(t *testing.T) {
	t.Parallel()
	count := uint64(500)
	if raceEnabled { // there is one goroutine: the detector has nothing to find, and makes it slow
		count = 20
	}
	var records, committed int
	for _, seed := range fixed(t, count) {
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
	for seed := range uint64(10) {
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
