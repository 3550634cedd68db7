package session

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/core/record"
)

// batch builds a batch of records "v<offset>"; pid < 0 is no producer.
func batch(t *testing.T, base int64, n int, pid int64, codec record.Codec) []byte {
	t.Helper()
	var b record.Builder
	o := record.BuilderOptions{BaseOffset: base, LeaderEpoch: 7, Codec: codec}
	if pid >= 0 {
		o.Producer, o.Transactional = &record.Producer{ID: pid}, true
	}
	b.Reset(o)
	for i := range n {
		b.Append(1000+base, nil, fmt.Appendf(nil, "v%d", base+int64(i)), []record.Header{{Key: []byte("h"), Value: []byte("x")}})
	}
	out, err := b.Batch()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(out)
}

func marker(base, pid int64, commit bool) []byte {
	b := record.BuildControl(nil, record.Marker{ProducerID: pid, Commit: commit})
	b.SetBaseOffset(base)
	return b
}

func testReader() *Reader {
	return &Reader{options: ReaderOptions{}.withDefaults(), hold: hold{limit: 64 << 20}, arrived: make(chan struct{}, 1), feeds: map[TopicPartition]*Feed{}}
}

// answer makes the partition of a fetch answer.
func answer(stable int64, aborted [][2]int64, batches ...[]byte) *kmsg.FetchResponseTopicPartition {
	rp := kmsg.NewFetchResponseTopicPartition()
	rp.LastStableOffset, rp.HighWatermark = stable, stable
	rp.RecordBatches = slices.Concat(batches...)
	for _, a := range aborted {
		rp.AbortedTransactions = append(rp.AbortedTransactions, kmsg.FetchResponseTopicPartitionAbortedTransaction{ProducerID: a[0], FirstOffset: a[1]})
	}
	return &rp
}

func newFeed(r *Reader, at int64) *Feed {
	f := &Feed{part: TopicPartition{Topic: "t"}, take: r.takeChunk, fetchAt: at, position: at, epoch: -1, discard: map[int64]struct{}{}}
	f.end.Store(-1)
	return f
}

func drain(f *Feed) string {
	var got []string
	for {
		r, ok := f.Head()
		if !ok {
			return strings.Join(got, " ")
		}
		got = append(got, string(r.Value))
		f.Pop()
	}
}

func TestFeedShowsWhatIsCommitted(t *testing.T) {
	t.Parallel()
	const noProducer = -1
	for _, c := range []struct {
		name     string
		at       int64
		stable   int64
		aborted  [][2]int64
		batches  [][]byte
		want     string
		position int64
	}{
		{"plain", 0, 3, nil, [][]byte{batch(t, 0, 3, noProducer, record.None)}, "v0 v1 v2", 3},
		{"from the middle of a batch", 1, 3, nil, [][]byte{batch(t, 0, 3, noProducer, record.Zstd)}, "v1 v2", 3},
		{
			"aborted between others", 0, 6,
			[][2]int64{{9, 1}},
			[][]byte{batch(t, 0, 1, 8, record.None), batch(t, 1, 2, 9, record.Snappy), marker(3, 9, false), marker(4, 8, true), batch(t, 5, 1, noProducer, record.None)},
			"v0 v5", 6,
		},
		{
			"the same producer commits after it aborted", 0, 4,
			[][2]int64{{9, 0}},
			[][]byte{batch(t, 0, 1, 9, record.None), marker(1, 9, false), batch(t, 2, 1, 9, record.None), marker(3, 9, true)},
			"v2", 4,
		},
		{
			"aborts listed out of order", 0, 6,
			[][2]int64{{8, 2}, {9, 0}},
			[][]byte{batch(t, 0, 1, 9, record.None), marker(1, 9, false), batch(t, 2, 1, 8, record.None), marker(3, 8, false), batch(t, 4, 2, noProducer, record.LZ4)},
			"v4 v5", 6,
		},
		{"an abort marker at the end", 5, 7, [][2]int64{{9, 5}}, [][]byte{batch(t, 5, 1, 9, record.None), marker(6, 9, false)}, "", 7},
		{"cut within a batch", 0, 4, nil, [][]byte{batch(t, 0, 2, noProducer, record.None), batch(t, 2, 2, noProducer, record.None)[:70]}, "v0 v1", 2},
	} {
		r := testReader()
		f := newFeed(r, c.at)
		r.deliver(f, answer(c.stable, c.aborted, c.batches...), 1, false)
		if got := drain(f); got != c.want || f.Position() != c.position || f.Err() != nil {
			t.Errorf("%s: %q up to %d, %v; want %q up to %d", c.name, got, f.Position(), f.Err(), c.want, c.position)
		}
		if f.Position() == c.stable && !f.DryAfter(0) {
			t.Errorf("%s: at the end and not known to be dry", c.name)
		}
	}
}

func TestFeedGivesHeadersAndEpoch(t *testing.T) {
	t.Parallel()
	r := testReader()
	f := newFeed(r, 0)
	r.deliver(f, answer(1, nil, batch(t, 0, 1, -1, record.None)), 1, false)
	rec, ok := f.Head()
	if !ok || rec.LeaderEpoch != 7 || rec.Time.UnixMilli() != 1000 || len(rec.Headers) != 1 || rec.Headers[0].Key != "h" {
		t.Errorf("record %+v", rec)
	}
	f.Pop()
	if f.LeaderEpoch() != 7 {
		t.Errorf("epoch %d, want 7", f.LeaderEpoch())
	}
}

// Compaction may empty the tail of a log: the answers have room and bring
// nothing although the end is beyond. One such answer may be a race with the
// end, two are a hole.
func TestFeedSkipsAnEmptiedTail(t *testing.T) {
	t.Parallel()
	r := testReader()
	f := newFeed(r, 4)
	for range 5 {
		r.deliver(f, answer(9, nil), 1, false) // others filled the answer
	}
	r.deliver(f, answer(9, nil), 2, true)
	if drain(f); f.Position() != 4 || f.DryAfter(0) {
		t.Fatalf("position %d after one empty answer, dry %v", f.Position(), f.DryAfter(0))
	}
	r.deliver(f, answer(9, nil), 3, true)
	if drain(f); f.Position() != 9 || !f.DryAfter(2) {
		t.Errorf("position %d after two empty answers, dry %v; want 9", f.Position(), f.DryAfter(2))
	}
}

// A feed is dry only with respect to what was fetched after the stamp.
func TestFeedIsDryAfterAStamp(t *testing.T) {
	t.Parallel()
	r := testReader()
	f := newFeed(r, 0)
	r.deliver(f, answer(0, nil), 5, false)
	if !f.DryAfter(4) || f.DryAfter(5) {
		t.Errorf("a fetch sent at 5: dry after 4 %v, after 5 %v", f.DryAfter(4), f.DryAfter(5))
	}
	r.deliver(f, answer(2, nil), 6, false)
	if f.DryAfter(5) {
		t.Error("dry although the end is beyond")
	}
}

func TestFeedReportsDamage(t *testing.T) {
	t.Parallel()
	b := batch(t, 0, 2, -1, record.None)
	b[len(b)-1] ^= 1
	r := testReader()
	f := newFeed(r, 0)
	r.deliver(f, answer(2, nil, b), 1, false)
	if got := drain(f); got != "" || f.Err() == nil || !strings.Contains(f.Err().Error(), "t/0 at offset 0") {
		t.Errorf("%q, %v", got, f.Err())
	}
	if f.Err() != nil && errors.Is(f.Err(), ErrOutOfRange) {
		t.Error("damage is reported as a wrong offset")
	}
}

// Reading allocates per answer, not per record.
func TestFeedDoesNotAllocatePerRecord(t *testing.T) {
	var b record.Builder
	b.Reset(record.BuilderOptions{})
	for range 1000 {
		b.Append(1000, []byte("key"), []byte("value"), nil)
	}
	raw, err := b.Batch()
	if err != nil {
		t.Fatal(err)
	}
	r := testReader()
	rp := answer(1000, nil, raw)
	n := testing.AllocsPerRun(20, func() {
		f := newFeed(r, 0)
		r.deliver(f, rp, 1, false)
		count := 0
		for {
			if _, ok := f.Head(); !ok {
				break
			}
			f.Pop()
			count++
		}
		if count != 1000 {
			t.Fatalf("%d records", count)
		}
	})
	if n > 20 {
		t.Errorf("%v allocations for 1000 records", n)
	}
}
