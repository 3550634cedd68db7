package cleaner

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/broker/internal/flush"
	"github.com/millrace/millrace/broker/internal/partition"
	"github.com/millrace/millrace/core/clock"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/vfs"
)

// rig is two partitions, one compacted and one with retention, under a cleaner and a clock of the test's.
type rig struct {
	*testing.T
	clock              *stepped
	faults             *vfs.Faults
	compacted, expires *partition.Partition
	cleaner            *Cleaner
	log                syncBuffer
}

// stepped is a clock that somebody sets: what it shows is the time that passes and what it was set by.
type stepped struct {
	*clock.Manual
	by atomic.Int64
}

func (c *stepped) Now() time.Time { return c.Manual.Now().Add(time.Duration(c.by.Load())) }

// syncBuffer collects log lines of any goroutine.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) count(text string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.buf.String(), text)
}

func newRig(t *testing.T, change func(*Options)) *rig {
	t.Helper()
	r := &rig{T: t, clock: &stepped{Manual: clock.NewManual(time.UnixMilli(1_800_000_000_000))}, faults: vfs.WithFaults(vfs.NewMem())}
	if err := r.faults.MkdirAll("data"); err != nil {
		t.Fatal(err)
	}
	f, err := flush.New(flush.Options{FS: r.faults, Dir: "data", Clock: r.clock})
	if err != nil {
		t.Fatal(err)
	}
	open := func(name string, c commitlog.Config) *partition.Partition {
		p, err := partition.Open(partition.Options{
			FS: r.faults, Dir: "data/" + name, Topic: name, TopicID: [16]byte{name[0]}, Log: c, Flusher: f, Clock: r.clock, Durable: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
		return p
	}
	r.compacted = open("c", commitlog.Config{SegmentBytes: 300, Compacted: true})
	r.expires = open("e", commitlog.Config{SegmentBytes: 300, TimestampAfterMaxMs: 1 << 60,
		Cleaning: commitlog.Cleaning{Deletes: true, RetentionMs: 60_000, RetentionBytes: -1}})
	o := Options{
		Partitions: slices.Values([]*partition.Partition{r.compacted, r.expires}), Clock: r.clock,
		Logger: slog.New(slog.NewTextHandler(&r.log, nil)),
	}
	if change != nil {
		change(&o)
	}
	if r.cleaner, err = Start(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.cleaner.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *rig) produce(p *partition.Partition, ts int64, n int) {
	r.Helper()
	for i := range n {
		var b record.Builder
		b.Append(ts, []byte("k"), fmt.Appendf(nil, "%0100d", i), nil)
		batch, err := b.Batch()
		if err != nil {
			r.Fatal(err)
		}
		a, err := p.Append(batch, partition.AppendOptions{RequestVersion: 12})
		if err != nil {
			r.Fatal(err)
		}
		done := make(chan error, 1)
		p.Await(a.LastOffset, func(err error) { done <- err })
		if err := <-done; err != nil {
			r.Fatal(err)
		}
	}
	p.Flush()
}

// until lets time pass until the status is as wanted.
func (r *rig) until(what string, step time.Duration, ok func(Status) bool) Status {
	r.Helper()
	tick := time.NewTicker(time.Millisecond) // the cleaner is a goroutine of its own, under a manual clock
	defer tick.Stop()
	for range 5000 {
		if s := r.cleaner.Status(); ok(s) {
			return s
		}
		r.clock.Advance(step)
		<-tick.C
	}
	r.Fatalf("%s: %+v", what, r.cleaner.Status())
	return Status{}
}

// TestRounds sees both jobs done, and an idle broker come to rest: no file is touched any more (C13).
func TestRounds(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	now := r.clock.Now().UnixMilli()
	r.produce(r.compacted, now, 10)
	r.produce(r.expires, now, 10)
	s := r.until("compaction", 15*time.Second, func(s Status) bool { return s.Compactions > 0 && s.RetentionRounds > 1 })
	if s.Compacted.RecordsOut >= s.Compacted.RecordsIn || s.RetainedBytes == 0 || s.Failures != 0 || len(s.Failing) != 0 {
		t.Fatalf("%+v", s)
	}
	if m := r.expires.Marks(); m.LogStart != 10 {
		t.Fatalf("%+v", m)
	}
	if m := r.compacted.Marks(); m.LogStart != 0 {
		t.Fatalf("%+v", m)
	}
	r.until("rest", time.Minute, func(now Status) bool { return now.RetentionRounds > s.RetentionRounds+3 })
	ops := r.faults.Ops()
	s = r.cleaner.Status()
	after := r.until("rounds", 15*time.Second, func(now Status) bool {
		return now.CompactionRounds > s.CompactionRounds+10 && now.RetentionRounds > s.RetentionRounds
	})
	if n := r.faults.Ops(); n != ops || after.Compactions != s.Compactions {
		t.Fatalf("%d file operations on an idle broker, %+v", n-ops, after)
	}
}

// TestFailuresAreNamed: a partition that can't be compacted is listed and logged once, the other goes on, and the next round heals it.
func TestFailuresAreNamed(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	heal := r.faults.Add(vfs.Rule{Kinds: vfs.OpCreate, Path: "*.cleaned", Err: syscall.ENOSPC})
	r.produce(r.compacted, 1, 10)
	s := r.until("failures", 15*time.Second, func(s Status) bool { return s.Failures > 3 })
	if len(s.Failing) != 1 || s.Failing[0].Partition != "c-0" || !strings.Contains(s.Failing[0].Reason, "no space left") {
		t.Fatalf("%+v", s)
	}
	if n := r.log.count("can't be cleaned"); n != 1 {
		t.Fatalf("%d log lines about one reason", n)
	}
	heal()
	r.until("healed", 15*time.Second, func(s Status) bool { return len(s.Failing) == 0 && s.Compacted.RecordsOut > 0 })
}

// TestPinned is C18: a record dated in the future is named as what keeps a partition from expiring.
func TestPinned(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	future := r.clock.Now().AddDate(10, 0, 0)
	r.produce(r.expires, future.UnixMilli(), 1)
	s := r.until("pinned", 5*time.Minute, func(s Status) bool { return len(s.Pinned) > 0 })
	if s.Pinned[0].Partition != "e-0" || !s.Pinned[0].Until.Equal(future) || r.log.count("dated in the future") != 1 {
		t.Fatalf("%+v", s)
	}
}

// TestPace: compaction takes as long as its bytes at the given rate, and Close does not wait for that.
func TestPace(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.BytesPerSecond, o.CompactEvery = 100, time.Second })
	r.produce(r.compacted, 1, 20)
	start := r.clock.Now()
	s := r.until("paced", time.Second, func(s Status) bool { return s.Compactions > 0 })
	bytes := s.Compacted.BytesIn + s.Compacted.BytesOut
	if took := r.clock.Now().Sub(start); took.Seconds() < float64(bytes)/100*0.8 {
		t.Fatalf("%d bytes took %v at 100 a second", bytes, took)
	}
	r.produce(r.compacted, 1, 20)
	r.clock.Advance(time.Second)
}

// TestClockSteps: a clock that is set ten years ahead, or back, under a running broker removes nothing that real time would have kept,
// and what real time lets go goes when the clock is right again.
func TestClockSteps(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) {
		o.RetentionEvery = time.Second
		real := o.Clock.(*stepped).Manual
		start := real.Now()
		o.passed = func() time.Duration { return real.Now().Sub(start) }
	})
	const years = 10 * 365 * 24 * time.Hour
	r.produce(r.expires, r.clock.Now().UnixMilli(), 10) // kept for a minute
	for _, set := range []time.Duration{years, 0, -years, 0, years, 0} {
		r.clock.by.Store(int64(set))
		before := r.cleaner.Status().RetentionRounds
		r.until("rounds", time.Second, func(s Status) bool { return s.RetentionRounds >= before+3 })
		if m := r.expires.Marks(); m.LogStart != 0 {
			t.Fatalf("the clock is set by %v, and the log starts at %d", set, m.LogStart)
		}
	}
	if warned, well := r.log.count("the clock was set ahead"), r.log.count("follows the clock again"); warned != 2 || well != 2 {
		t.Errorf("%d warnings and %d times well again, want 2 of each", warned, well)
	}
	r.until("expiry", time.Second, func(Status) bool { return r.expires.Marks().LogStart == 10 })
	if real := r.clock.Manual.Now().Sub(time.UnixMilli(1_800_000_000_000)); real < time.Minute {
		t.Errorf("records that are kept for a minute are gone after %v", real)
	}
}
