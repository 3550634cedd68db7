package commitlog

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/vfs"
	"github.com/millrace/millrace/txn/isolation"
)

// stateless is a State of nothing.
type stateless struct{}

func (stateless) Load([]byte) error { return nil }

func (stateless) Replay(record.Batch) (a isolation.AbortedTxn, aborted bool, err error) {
	return a, false, nil
}

func (stateless) Snapshot(dst []byte) []byte { return dst }

// rollLog is a log that the test appends to, at times of its own.
type rollLog struct {
	*testing.T
	*Log
}

func newRollLog(t *testing.T, name string, c Config) *rollLog {
	t.Helper()
	l, err := Open(Options{FS: vfs.NewMem(), Dir: "d", Name: name, Config: c, NewState: func() State { return stateless{} }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return &rollLog{t, l}
}

// put appends a batch of so many records with that timestamp, and tells whether it went to a new segment.
func (l *rollLog) put(n int, ts, nowMs int64, value string) (rolled bool) {
	l.Helper()
	var b record.Builder
	for range n {
		b.Append(ts, nil, []byte(value), nil)
	}
	batch, err := b.Batch()
	if err != nil {
		l.Fatal(err)
	}
	record.Batch(batch).SetBaseOffset(l.next)
	before := len(l.list())
	if err := l.Append(batch, nowMs); err != nil {
		l.Fatal(err)
	}
	return len(l.list()) > before
}

// TestRolls: each of the bounds ends a segment, at the batch that would pass it and not before.
func TestRolls(t *testing.T) {
	t.Parallel()
	const day = 24 * 3600 * 1000
	large := strings.Repeat("x", 100)
	t.Run("bytes", func(t *testing.T) {
		l := newRollLog(t, "t-0", Config{SegmentBytes: 1000})
		for !l.put(1, 1, 1, large) {
		}
		list := l.list()
		if first := list[0].size.Load(); first > 1000 || first+list[1].size.Load() <= 1000 {
			t.Errorf("the first segment has %d bytes, the batch that was too much %d", first, list[1].size.Load())
		}
	})
	t.Run("time of the records", func(t *testing.T) {
		l := newRollLog(t, "t-0", Config{SegmentMs: 1000})
		for _, c := range []struct {
			ts   int64
			roll bool
		}{{5000, false}, {6000, false}, {4000, false}, {6001, true}, {7001, false}, {7002, true}} {
			if rolled := l.put(1, c.ts, 9*day, "v"); rolled != c.roll {
				t.Errorf("a record of %d: rolled %v", c.ts, rolled)
			}
		}
	})
	t.Run("time of the clock, where records have none", func(t *testing.T) {
		l := newRollLog(t, "t-0", Config{SegmentMs: 1000})
		for _, c := range []struct {
			now  int64
			roll bool
		}{{5000, false}, {6000, false}, {6001, true}, {7001, false}} {
			if rolled := l.put(1, -1, c.now, "v"); rolled != c.roll {
				t.Errorf("at %d: rolled %v", c.now, rolled)
			}
		}
	})
	t.Run("index of offsets", func(t *testing.T) {
		l := newRollLog(t, "t-0", Config{IndexIntervalBytes: 1, IndexBytes: 5 * offsetEntrySize})
		for !l.put(1, 1, 1, large) {
		}
		if n := len(l.list()[0].mem.Load().offsets.view()); n != 5 {
			t.Errorf("the full index has %d entries, want 5", n)
		}
	})
	t.Run("index of times", func(t *testing.T) { // fuller than that of offsets, as each entry takes more
		l := newRollLog(t, "t-0", Config{IndexIntervalBytes: 1, IndexBytes: 4 * timeEntrySize})
		for ts := int64(1); !l.put(1, ts, 1, large); ts++ {
		}
		if mem := l.list()[0].mem.Load(); len(mem.times.view()) > 4 || len(mem.offsets.view()) >= 6 {
			t.Errorf("%d entries of times, %d of offsets", len(mem.times.view()), len(mem.offsets.view()))
		}
	})
	t.Run("range of offsets", func(t *testing.T) { // an index entry has 31 bits for an offset
		l := newRollLog(t, "t-0", Config{})
		l.put(1, 1, 1, "v")
		l.next = math.MaxInt32 - 4 // as compaction leaves it
		if l.put(5, 1, 1, "v") || !l.put(1, 1, 1, "v") {
			t.Errorf("segments begin at %d and end at %d", l.list()[len(l.list())-1].base, l.next)
		}
		if last := l.list()[1]; last.base != math.MaxInt32+1 {
			t.Errorf("the second segment begins at %d", last.base)
		}
	})
}

// TestRollJitter: segment.jitter.ms takes off at most so much, another part for each segment and each log, and the same after a restart.
func TestRollJitter(t *testing.T) {
	t.Parallel()
	const age, jitter = 100_000, 40_000
	rollsAt := func(name string, base int64) int64 {
		l := newRollLog(t, name, Config{SegmentMs: age, SegmentJitterMs: jitter})
		s := &segment{base: base}
		low, high := int64(0), int64(age+1)
		for low < high { // the first age that is too old
			if mid := (low + high) / 2; l.tooOld(s, mid) {
				high = mid
			} else {
				low = mid + 1
			}
		}
		return low
	}
	seen := map[int64]bool{}
	for i := range int64(20) {
		for _, name := range []string{"a-0", "a-1"} {
			at := rollsAt(name, 1000*i)
			if at > age+1 || at <= age-jitter {
				t.Errorf("%s at %d rolls at %d, must be between %d and %d", name, 1000*i, at, age-jitter+1, age+1)
			}
			if again := rollsAt(name, 1000*i); again != at {
				t.Errorf("%s at %d rolls at %d, and at %d the next time", name, 1000*i, at, again)
			}
			seen[at] = true
		}
	}
	if len(seen) < 35 {
		t.Errorf("40 segments roll at only %d different ages", len(seen))
	}
	if l := newRollLog(t, "all", Config{SegmentMs: 10, SegmentJitterMs: 1 << 40}); l.tooOld(&segment{}, 0) || !l.tooOld(&segment{}, 11) {
		t.Error("a jitter beyond segment.ms counts as segment.ms")
	}
	if plain := fmt.Sprint(newRollLog(t, "n", Config{SegmentMs: age}).tooOld(&segment{}, age)); plain != "false" {
		t.Error("without a jitter the age itself is allowed")
	}
}
