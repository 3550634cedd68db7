package sim

import (
	"testing"
)

// TestOccasions: what is never come to is never checked. Over a number of seeds each of these must have happened.
func TestOccasions(t *testing.T) {
	t.Parallel()
	if raceEnabled {
		t.Skip("takes many seeds")
	}
	seen := map[string]int{}
	for seed := range uint64(250) {
		r, err := Run(Options{Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		for what, n := range r.Seen {
			seen[what] += n
		}
	}
	for _, what := range []string{
		"broker gone: crash", "broker gone: power cut", "broker gone: stopped", "broker gone: while it started",
		"disk: no space left on device", "disk: input/output error", "disk: too many open files", "sync fails", "steps in a sync", "a request twice",
		"init NONE", "init COORDINATOR_NOT_AVAILABLE",
		"produce NONE", "produce NOT_ENOUGH_REPLICAS", "produce KAFKA_STORAGE_ERROR", "produce INVALID_PRODUCER_EPOCH",
		"produce UNKNOWN_PRODUCER_ID", "produce OUT_OF_ORDER_SEQUENCE_NUMBER",
		"end NONE", "end CONCURRENT_TRANSACTIONS", "end PRODUCER_FENCED", "end COORDINATOR_NOT_AVAILABLE",
		"offsets NONE", "offsets UNKNOWN_MEMBER_ID", "offsets ILLEGAL_GENERATION",
		"positions UNSTABLE_OFFSET_COMMIT", "member REBALANCE_IN_PROGRESS", "member UNKNOWN_MEMBER_ID",
		"a zombie copier gives up", "a static member comes back", "member FENCED_INSTANCE_ID",
		"level NONE", "a producer goes to version 1", "a producer goes to version 2",
		"produce without an answer", "acknowledged from the page cache and lost",
		"a power cut takes the end of a relaxed log", "a compacted log is looked at", "a table is read", "compaction has removed records",
	} {
		if seen[what] == 0 {
			t.Errorf("never: %s", what)
		}
	}
	if t.Failed() {
		t.Logf("seen: %v", seen)
	}
}
