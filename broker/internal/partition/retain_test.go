package partition

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/core/vfs"
	"github.com/millrace/millrace/txn/producer"
)

// keeping is a log of tiny segments under a retention.
func keeping(c commitlog.Cleaning) commitlog.Config {
	c.Deletes = true
	return commitlog.Config{SegmentBytes: 400, IndexIntervalBytes: 1, Cleaning: c}
}

// now is the rig's time.
func (r *rig) now() int64 { return r.clock.Now().UnixMilli() }

// synced waits until all that a roll leaves to the flush is done.
func (r *rig) synced() {
	r.t.Helper()
	r.p.Flush()
}

func (r *rig) retain() Retained {
	r.t.Helper()
	got, err := r.p.Retain(r.now())
	if err != nil {
		r.t.Fatal(err)
	}
	r.synced()
	return got
}

// TestRetentionByTime is C16 and C15: whole segments go, the idle active one too, and a compacted topic keeps all.
func TestRetentionByTime(t *testing.T) {
	t.Parallel()
	for _, deletes := range []bool{true, false} {
		r := newRig(t, vfs.NewMem(), keeping(commitlog.Cleaning{RetentionMs: 60_000, RetentionBytes: -1}))
		r.config.Deletes, r.config.Compacted = deletes, !deletes
		p := r.open()
		for range 10 {
			r.append(plain.batch(t, r.now(), strings.Repeat("x", 150)))
			r.clock.Advance(10 * time.Second)
		}
		want := int64(0)
		if deletes {
			want = 4 // 0 to 3 are older than 60 s and lie in segments of their own
		}
		if got := r.retain(); got.Start != want || p.Marks().LogStart != want {
			t.Fatalf("deletes %v: log start %d, want %d", deletes, got.Start, want)
		}
		r.clock.Advance(time.Hour)
		if deletes {
			want = 10
		}
		if got := r.retain(); got.Start != want {
			t.Fatalf("deletes %v: log start %d, want %d", deletes, got.Start, want)
		}
		if n := len(p.log.Segments()); deletes && n != 1 {
			t.Fatalf("%d segments are left", n)
		}
		if got := r.append(plain.batch(t, r.now(), "next")); got.BaseOffset != 10 {
			t.Fatalf("%+v", got)
		}
		r.close()
		if m := r.open().Marks(); m.LogStart != want || m.LogEnd != 11 {
			t.Fatalf("after a restart: %+v", m)
		}
		r.close()
	}
}

// TestRetentionAsksBothClocks: what was loaded a minute ago with old dates stays, what is dated ahead is named.
func TestRetentionAsksBothClocks(t *testing.T) {
	t.Parallel()
	r := newRig(t, vfs.NewMem(), keeping(commitlog.Cleaning{RetentionMs: 60_000, RetentionBytes: -1}))
	r.config.TimestampAfterMaxMs = 1 << 60
	p := r.open()
	r.append(plain.batch(t, 1000, strings.Repeat("x", 300)))
	r.append(plain.batch(t, 1000, strings.Repeat("x", 300)))
	if got := r.retain(); got.Start != 0 {
		t.Fatalf("records of 1970 that were written just now are gone: %+v", got)
	}
	r.clock.Advance(2 * time.Minute)
	if got := r.retain(); got.Start != 2 || got.Bytes == 0 {
		t.Fatalf("%+v", got)
	}
	future := r.now() + 10*365*24*3600*1000
	r.append(plain.batch(t, future, strings.Repeat("x", 300)))
	r.append(plain.batch(t, r.now(), strings.Repeat("x", 300)))
	if got := r.retain(); got.PinnedBy != 0 {
		t.Fatalf("%+v: nothing is due yet", got)
	}
	r.clock.Advance(time.Hour)
	if got := r.retain(); got.Start != 2 || got.PinnedBy != future {
		t.Fatalf("%+v, want to be pinned by %d", got, future)
	}
	back, err := p.Retain(r.now() - 40*365*24*3600*1000)
	if err != nil || back.Start != 2 {
		t.Fatalf("a clock set back: %+v, %v", back, err)
	}
	r.close()
}

// TestRetentionBySize: the oldest segments go as long as enough is left; a segment is never cut.
func TestRetentionBySize(t *testing.T) {
	t.Parallel()
	r := newRig(t, vfs.NewMem(), keeping(commitlog.Cleaning{RetentionMs: -1, RetentionBytes: 1000}))
	p := r.open()
	for range 20 {
		r.append(plain.batch(t, r.now(), strings.Repeat("x", 150)))
	}
	before := p.log.Size()
	got := r.retain()
	size := p.log.Size()
	if size < 1000 || size >= 1000+400+230 || got.Bytes != before-size {
		t.Fatalf("%d bytes are left of %d, %+v", size, before, got)
	}
	if again := r.retain(); again.Start != got.Start || again.Bytes != 0 {
		t.Fatalf("%+v, then %+v", got, again)
	}
	r.close()
}

// TestRetentionStopsAtTheLastStableOffset: an open transaction keeps its records and all behind them, and a producer is known for
// longer than its records are kept (P04).
func TestRetentionStopsAtTheLastStableOffset(t *testing.T) {
	t.Parallel()
	r := newRig(t, vfs.NewMem(), keeping(commitlog.Cleaning{RetentionMs: 1000, RetentionBytes: 0}))
	p := r.open()
	known := &sender{id: 5}
	first := known.batch(t, r.now(), strings.Repeat("x", 300))
	r.append(first)
	open := &sender{id: 7, txn: true}
	r.append(open.batch(t, r.now(), strings.Repeat("x", 300)))
	r.append(plain.batch(t, r.now(), strings.Repeat("x", 300)))
	r.clock.Advance(time.Hour)
	if got := r.retain(); got.Start != 1 {
		t.Fatalf("log start %d, the transaction begins at 1", got.Start)
	}
	a, err := p.AppendMarker(producer.Marker{ProducerID: 7, Epoch: 1, Commit: true, TxnVersion: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := await(p, a.LastOffset); err != nil {
		t.Fatal(err)
	}
	r.clock.Advance(time.Hour)
	if got := r.retain(); got.Start != 4 {
		t.Fatalf("log start %d, want the end", got.Start)
	}
	r.close()
	p = r.open()
	dup, err := p.Append(first, AppendOptions{RequestVersion: 12})
	if err != nil || !dup.Duplicate || dup.BaseOffset != 0 {
		t.Fatalf("the last batch of a producer whose records expired: %+v, %v", dup, err)
	}
	r.append(known.batch(t, r.now(), "next"))
	r.close()
}

// TestDeletedFilesWait: files are renamed, readers go on, and the files go after the delay and the last reader.
func TestDeletedFilesWait(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	r := newRig(t, mem, keeping(commitlog.Cleaning{RetentionMs: 1000, RetentionBytes: -1, FileDeleteDelayMs: 60_000}))
	p := r.open()
	for range 6 {
		r.append(plain.batch(t, r.now(), strings.Repeat("x", 300)))
	}
	held, err := p.Read(ReadOptions{Offset: 0, MaxBytes: 100, AtLeastOne: true})
	if err != nil {
		t.Fatal(err)
	}
	r.clock.Advance(time.Hour)
	r.retain()
	deleted := func() (n int) {
		names, err := mem.List(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, ".log.deleted") {
				n++
			}
		}
		return n
	}
	if n := deleted(); n != 6 {
		t.Fatalf("%d log files are renamed", n)
	}
	r.clock.Advance(2 * time.Minute)
	r.retain()
	if n := deleted(); n != 1 {
		t.Fatalf("%d log files are left, one is being read", n)
	}
	if n := len(bytesOf(t, held)); n != held.Bytes {
		t.Fatalf("the reader got %d of %d bytes", n, held.Bytes)
	}
	held.Release()
	r.retain()
	if n := deleted(); n != 0 {
		t.Fatalf("%d log files are left", n)
	}
	r.close()
}

// TestIdleSegmentRolls: segment.ms ends a segment to which nothing is appended any more.
func TestIdleSegmentRolls(t *testing.T) {
	t.Parallel()
	c := keeping(commitlog.Cleaning{RetentionMs: -1, RetentionBytes: -1})
	c.SegmentMs = 60_000
	r := newRig(t, vfs.NewMem(), c)
	p := r.open()
	r.clock.Advance(time.Hour)
	r.retain()
	r.append(plain.batch(t, 5, "an old date"))
	if r.retain(); fmt.Sprint(p.log.Segments()) != "[0]" {
		t.Fatalf("%v: the age counts from the first append, by the broker's clock", p.log.Segments())
	}
	r.clock.Advance(2 * time.Minute)
	r.retain()
	r.retain()
	if fmt.Sprint(p.log.Segments()) != "[0 1]" {
		t.Fatalf("%v: an empty segment does not roll, one with a batch does, once", p.log.Segments())
	}
	r.close()
}
