package partition

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/vfs"
	"github.com/millrace/millrace/txn/producer"
)

// stamped makes a batch of records with the given timestamps.
func stamped(t testing.TB, codec record.Codec, ts ...int64) []byte {
	t.Helper()
	var b record.Builder
	b.Reset(record.BuilderOptions{Codec: codec})
	for i, ts := range ts {
		b.Append(ts, nil, fmt.Append(nil, i), nil)
	}
	out, err := b.Batch()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte(nil), out...)
}

type place struct{ offset, ts int64 }

func firstAt(t *testing.T, p *Partition, ts int64, committed bool) place {
	t.Helper()
	offset, found, _, ok, err := p.OffsetForTime(ts, committed)
	if err != nil {
		t.Fatal(err)
	}
	if ok != (offset >= 0) {
		t.Fatalf("%d, %v", offset, ok)
	}
	return place{offset, found}
}

func greatest(t *testing.T, p *Partition, committed bool) place {
	t.Helper()
	offset, found, _, _, err := p.MaxTimestamp(committed)
	if err != nil {
		t.Fatal(err)
	}
	return place{offset, found}
}

var none = place{-1, -1}

// TestTimes: look-ups by time inside batches, in old segments, of compressed records, with ties, beyond the end; F13, F16.
func TestTimes(t *testing.T) {
	t.Parallel()
	r := newRig(t, vfs.NewMem(), tiny)
	p := r.open()
	if got := firstAt(t, p, 0, false); got != none {
		t.Fatalf("empty: %v", got)
	}
	if got := greatest(t, p, false); got != none {
		t.Fatalf("empty: %v", got)
	}
	r.append(stamped(t, record.None, 10, 20, 30))     // 0 1 2
	r.append(stamped(t, record.Zstd, 15, 90, 25, 90)) // 3 4 5 6: the greatest, twice, in the middle of a compressed batch
	r.append(stamped(t, record.None, 40))             // 7
	for i := range int64(40) {
		r.append(plain.batch(t, 50+i%7, strings.Repeat("x", 300))) // 8 on: other segments
	}
	if n := len(p.log.Segments()); n < 3 {
		t.Fatalf("%d segments", n)
	}
	check := func(p *Partition) {
		t.Helper()
		for _, c := range []struct {
			ts   int64
			want place
		}{
			{-5, place{0, 10}}, {10, place{0, 10}}, {11, place{1, 20}}, {21, place{2, 30}}, {31, place{4, 90}},
			{90, place{4, 90}}, {91, none}, {math.MaxInt64, none},
		} {
			if got := firstAt(t, p, c.ts, false); got != c.want {
				t.Errorf("first at %d is %v, want %v", c.ts, got, c.want)
			}
		}
		if got := greatest(t, p, false); got != (place{4, 90}) {
			t.Errorf("greatest is %v", got)
		}
	}
	check(p)
	r.close()
	check(r.open())
	r.close()
}

// TestTimesAndTheLogStart is F15: what DeleteRecords has hidden is not found, though its batch is still there; nor does a time
// index that knows it lead there.
func TestTimesAndTheLogStart(t *testing.T) {
	t.Parallel()
	r := newRig(t, vfs.NewMem(), commitlog.Config{})
	p := r.open()
	r.append(stamped(t, record.Gzip, 99, 20, 30, 25))
	r.append(stamped(t, record.None, 5))
	if low, err := p.DeleteRecords(1); low != 1 || err != nil {
		t.Fatal(low, err)
	}
	check := func(p *Partition) {
		t.Helper()
		for ts, want := range map[int64]place{0: {1, 20}, 21: {2, 30}, 31: none, 99: none} {
			if got := firstAt(t, p, ts, false); got != want {
				t.Errorf("first at %d is %v, want %v", ts, got, want)
			}
		}
		if got := greatest(t, p, false); got != (place{2, 30}) {
			t.Errorf("greatest is %v", got)
		}
	}
	check(p)
	r.close()
	check(r.open())
	r.close()
}

// TestTimesAndIsolation is the time half of F12: read_committed finds nothing at or behind the last stable offset.
func TestTimesAndIsolation(t *testing.T) {
	t.Parallel()
	r := newRig(t, vfs.NewMem(), commitlog.Config{})
	p := r.open()
	r.append(stamped(t, record.None, 10, 20))
	s := &sender{id: 1, txn: true}
	r.append(s.batch(t, 30, "open"))
	r.append(stamped(t, record.None, 40))
	for _, c := range []struct {
		ts                     int64
		uncommitted, committed place
	}{{15, place{1, 20}, place{1, 20}}, {25, place{2, 30}, none}, {35, place{3, 40}, none}} {
		if got := firstAt(t, p, c.ts, false); got != c.uncommitted {
			t.Errorf("at %d: %v", c.ts, got)
		}
		if got := firstAt(t, p, c.ts, true); got != c.committed {
			t.Errorf("at %d, read_committed: %v", c.ts, got)
		}
	}
	if a, b := greatest(t, p, false), greatest(t, p, true); a != (place{3, 40}) || b != (place{1, 20}) {
		t.Errorf("greatest %v, read_committed %v", a, b)
	}
	if _, err := p.AppendMarker(producer.Marker{ProducerID: 1, Epoch: 1, Commit: true, TxnVersion: 2}); err != nil {
		t.Fatal(err)
	}
	if err := await(p, 4); err != nil {
		t.Fatal(err)
	}
	if got := firstAt(t, p, 25, true); got != (place{2, 30}) {
		t.Errorf("after the commit: %v", got)
	}
	r.close()
}

// TestExtremeTimes is S18: no arithmetic on timestamps overflows; all are found again.
func TestExtremeTimes(t *testing.T) {
	t.Parallel()
	c := tiny
	c.TimestampAfterMaxMs = math.MaxInt64
	r := newRig(t, vfs.NewMem(), c)
	p := r.open()
	for i, ts := range []int64{-1, 0, math.MaxInt64, 1, math.MaxInt64 - 1, -1, 1_700_000_000_000} {
		if a := r.append(stamped(t, record.None, ts)); a.BaseOffset != int64(i) {
			t.Fatalf("%+v", a)
		}
	}
	check := func(p *Partition) {
		t.Helper()
		for ts, want := range map[int64]place{
			0: {1, 0}, 1: {2, math.MaxInt64}, math.MaxInt64: {2, math.MaxInt64}, math.MinInt64: {0, -1},
		} {
			if got := firstAt(t, p, ts, false); got != want {
				t.Errorf("first at %d is %v, want %v", ts, got, want)
			}
		}
		if got := greatest(t, p, false); got != (place{2, math.MaxInt64}) {
			t.Errorf("greatest is %v", got)
		}
		if n := len(records(t, p, 0, 1, false)); n != 7 {
			t.Errorf("%d records", n)
		}
	}
	check(p)
	r.close()
	check(r.open())
	r.close()
}

// TestReplayMeetsDeletion deletes the very segments that a replay comes to next: it goes on at the new log start.
func TestReplayMeetsDeletion(t *testing.T) {
	t.Parallel()
	r := newRig(t, vfs.NewMem(), tiny)
	p := r.open()
	for i := range int64(60) {
		r.append(plain.batch(t, i, strings.Repeat("x", 150)))
	}
	r.synced()
	var met []int64
	if err := p.Replay(func(b record.Batch) error {
		if met = append(met, b.BaseOffset()); b.BaseOffset() == 1 {
			_, err := p.DeleteRecords(41)
			return err
		}
		return nil
	}); err != nil {
		t.Fatalf("after %v: %v", met, err)
	}
	if i := slices.Index(met, 41); i < 0 || met[len(met)-1] != 59 || met[i-1] >= 40 {
		t.Fatalf("met %v", met)
	}
	r.close()
}

// TestDeleteRecords is S13 and F18: deleted records stay deleted, after a clean stop and after a kill; an emptied partition
// starts and ends where it did.
func TestDeleteRecords(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	r := newRig(t, mem, tiny)
	p := r.open()
	for i := range int64(60) {
		r.append(plain.batch(t, i, strings.Repeat("x", 150), "second"))
	}
	segments := len(p.log.Segments())
	held, err := p.Read(ReadOptions{Offset: 0, MaxBytes: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if low, err := p.DeleteRecords(75); low != 75 || err != nil {
		t.Fatal(low, err)
	}
	if low, err := p.DeleteRecords(10); low != 75 || err != nil {
		t.Fatal("moved back", low, err)
	}
	if n := len(p.log.Segments()); n >= segments || p.log.Segments()[0] > 75 {
		t.Fatalf("segments %v", p.log.Segments())
	}
	if n := len(bytesOf(t, held)); n != held.Bytes || n == 0 {
		t.Fatalf("a reader lost %d bytes", held.Bytes-n)
	}
	held.Release()
	if names, err := mem.List(dir); err != nil || strings.Contains(fmt.Sprint(names), "00000000000000000000.") {
		t.Fatalf("files left: %v, %v", names, err)
	}
	check := func(p *Partition, start int64) {
		t.Helper()
		if m := p.Marks(); m != (Marks{start, 120, 120, 120, 0}) {
			t.Fatalf("%+v", m)
		}
		if have := records(t, p, start, 300, false); int64(len(have)) != 120-start || start < 120 && have[0].offset != start {
			t.Fatalf("%d records from %d", len(have), start)
		}
		if _, err := p.Read(ReadOptions{Offset: start - 1, MaxBytes: 1}); code(err) != CodeOffsetOutOfRange {
			t.Fatalf("below the start: %v", err)
		}
	}
	check(p, 75)
	r.fs = mem.Clone() // killed
	check(r.open(), 75)
	r.close()
	p = r.open() // closed
	check(p, 75)
	if low, err := p.DeleteRecords(-1); low != 120 || err != nil {
		t.Fatal(low, err)
	}
	check(p, 120)
	r.close()
	p = r.open()
	check(p, 120)
	if a := r.append(plain.batch(t, 1, "next")); a.BaseOffset != 120 || a.LogStartOffset != 120 {
		t.Fatalf("%+v", a)
	}
	r.close()
}

// TestLargeBatch is the partition's half of F03: the first batch comes whole if one is asked for at least, nothing comes if not.
func TestLargeBatch(t *testing.T) {
	t.Parallel()
	r := newRig(t, vfs.NewMem(), commitlog.Config{MaxMessageBytes: 4 << 20})
	p := r.open()
	r.append(plain.batch(t, 1, strings.Repeat("x", 3<<20)))
	r.append(plain.batch(t, 1, "small"))
	for _, c := range []struct {
		offset int64
		max    int32
		must   bool
		want   int
	}{
		{0, 1024, true, 1}, {0, 1024, false, 0}, {0, 0, true, 1}, {0, -1, true, 1}, {1, 10, false, 0}, {1, 1024, false, 1}, {0, 4 << 20, false, 2},
	} {
		read, err := p.Read(ReadOptions{Offset: c.offset, MaxBytes: c.max, AtLeastOne: c.must})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for b, err := range record.Batches(bytesOf(t, read)) {
			if err != nil || b.BaseOffset() != c.offset+int64(n) {
				t.Fatalf("%+v: %v", c, err)
			}
			n++
		}
		if n != c.want {
			t.Errorf("%+v: %d batches", c, n)
		}
		read.Release()
	}
	r.close()
}

// TestDelete: the folder goes, also while a fetch holds files; those who wait are told; a new topic of the name starts anew.
func TestDelete(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	r := newRig(t, mem, tiny)
	r.alone = true
	p := r.open()
	for range 30 {
		r.append(plain.batch(t, 1, strings.Repeat("x", 300)))
	}
	held, err := p.Read(ReadOptions{Offset: 0, MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	waits := make(chan error, 1)
	p.Await(1000, func(err error) { waits <- err })
	if err := p.Delete(); err != nil {
		t.Fatal(err)
	}
	if err := <-waits; code(err) != CodeUnknownTopicOrPartition {
		t.Fatalf("await: %v", err)
	}
	if names, err := mem.List("data"); err != nil || len(names) != 1 {
		t.Fatalf("left: %v %v", names, err)
	}
	if n := len(bytesOf(t, held)); n != held.Bytes {
		t.Fatalf("a reader lost %d bytes", held.Bytes-n)
	}
	held.Release()
	if err := r.flusher.Close(); err != nil {
		t.Fatal(err)
	}
	p = r.open()
	if m := p.Marks(); m.LogEnd != 0 || m.LogStart != 0 {
		t.Fatalf("%+v", m)
	}
	r.close()
}
