package scrub

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
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

// stage is a few partitions and a scrubber under a clock that the test moves.
type stage struct {
	t     *testing.T
	mem   *vfs.Mem
	disk  *vfs.Faults
	clock *clock.Manual
	log   bytes.Buffer
	all   []*partition.Partition
	s     *Scrubber
}

func newStage(t *testing.T, partitions int, o Options) *stage {
	t.Helper()
	st := &stage{t: t, mem: vfs.NewMem(), clock: clock.NewManual(time.UnixMilli(1_700_000_000_000))}
	st.disk = vfs.WithFaults(st.mem)
	if err := st.mem.MkdirAll("data"); err != nil {
		t.Fatal(err)
	}
	f, err := flush.New(flush.Options{FS: st.disk, Dir: "data", Clock: st.clock})
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.NewTextHandler(&st.log, nil))
	for i := range partitions {
		p, err := partition.Open(partition.Options{
			FS: st.disk, Dir: fmt.Sprintf("data/t-%d", i), Topic: "t", TopicID: [16]byte{1}, Index: int32(i), Flusher: f, Clock: st.clock,
			Log: commitlog.Config{SegmentBytes: 10_000}, Logger: logger, Durable: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		st.fill(p)
		st.all = append(st.all, p)
	}
	o.Partitions, o.Clock, o.Logger = st.each(), st.clock, logger
	if st.s, err = Start(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.s.Close(); err != nil {
			t.Error(err)
		}
		for _, p := range st.all {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

func (st *stage) each() iter.Seq[*partition.Partition] {
	return func(yield func(*partition.Partition) bool) {
		for _, p := range st.all {
			if !yield(p) {
				return
			}
		}
	}
}

// fill writes a few finished segments.
func (st *stage) fill(p *partition.Partition) {
	st.t.Helper()
	for range 10 {
		var b record.Builder
		b.Reset(record.BuilderOptions{})
		b.Append(1_700_000_000_000, []byte("k"), bytes.Repeat([]byte("v"), 4000), nil)
		batch, err := b.Batch()
		if err != nil {
			st.t.Fatal(err)
		}
		a, err := p.Append(bytes.Clone(batch), partition.AppendOptions{RequestVersion: 9})
		if err != nil {
			st.t.Fatal(err)
		}
		done := make(chan error, 1)
		p.Await(a.LastOffset, func(err error) { done <- err })
		if err := <-done; err != nil {
			st.t.Fatal(err)
		}
	}
}

// TestRounds: nothing is read before the first round is due, a round reads all finished segments and takes the time that its bytes
// take, and the next begins an interval after it.
func TestRounds(t *testing.T) {
	const rate = 10_000
	st := newStage(t, 3, Options{BytesPerSecond: rate, Every: 1000 * time.Second})
	reads := 0
	st.disk.OnOp(func(op vfs.Op) {
		if op.Kind == vfs.OpRead {
			reads++
		}
	})
	st.clock.Advance(9 * time.Second)
	if reads > 0 {
		t.Fatalf("%d reads before the first round", reads)
	}
	st.clock.Advance(time.Second)
	took := time.Duration(0)
	for ; st.s.Status().Rounds == 0; took += time.Second {
		st.clock.Advance(time.Second)
	}
	got := st.s.Status()
	if got.Bytes < 3*30_000 || got.Segments < 9 || len(got.Damaged)+len(got.Failing)+int(got.Rebuilt) > 0 {
		t.Fatalf("a round over whole partitions: %+v", got)
	}
	if least := time.Duration(got.Bytes/rate)*time.Second - chunk/rate*time.Second; took < least {
		t.Errorf("%d bytes took %v at %d bytes a second, the least is %v", got.Bytes, took, rate, least)
	}
	reads = 0
	st.clock.Advance(1000*time.Second - took - 20*time.Second)
	if reads > 0 || st.s.Status().Rounds != 1 {
		t.Errorf("%d reads between two rounds", reads)
	}
	st.clock.Advance(1100 * time.Second)
	if n := st.s.Status().Rounds; n < 2 {
		t.Errorf("%d rounds", n)
	}
}

// TestFindings: damage and files that can not be read are in the log once, and in the status.
func TestFindings(t *testing.T) {
	st := newStage(t, 2, Options{Every: time.Hour})
	f, err := st.mem.Open("data/t-1/00000000000000000002.log")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("#"), 200); err != nil {
		t.Fatal(err)
	}
	heal := st.disk.Add(vfs.Rule{Kinds: vfs.OpRead, Path: "*.log", Err: syscall.EIO, When: func(op vfs.Op) bool { return strings.Contains(op.Path, "t-0") }})
	st.clock.Advance(3 * time.Hour)
	got := st.s.Status()
	if len(got.Damaged) != 1 || len(got.Damaged["t-1"]) != 1 || !strings.Contains(got.Damaged["t-1"][0], "00000000000000000002.log at byte 0, offset 2") {
		t.Errorf("damaged: %v", got.Damaged)
	}
	if got.Failures < 2 || !strings.Contains(got.Failing["t-0"], "input/output error") {
		t.Errorf("%d failures, %v", got.Failures, got.Failing)
	}
	for _, what := range []string{"the scrub has found damage", "the scrub can not read"} {
		if n := strings.Count(st.log.String(), what); n != 1 {
			t.Errorf("%q is in the log %d times:\n%s", what, n, st.log.String())
		}
	}
	heal()
	st.clock.Advance(2 * time.Hour)
	if got := st.s.Status(); len(got.Failing) > 0 || len(got.Damaged) != 1 {
		t.Errorf("after the disk works again: %+v", got)
	}
	if _, err := st.all[1].Read(partition.ReadOptions{Offset: 2, MaxBytes: 1, AtLeastOne: true}); !errors.Is(err, commitlog.ErrDamaged) {
		t.Errorf("the damaged batch is read with %v", err)
	}
	for _, offset := range []int64{1, 3, 9} {
		r, err := st.all[1].Read(partition.ReadOptions{Offset: offset, MaxBytes: 1, AtLeastOne: true})
		if err != nil {
			t.Fatalf("a whole batch is refused: %v", err)
		}
		r.Release()
	}
}

func TestOptions(t *testing.T) {
	for field, o := range map[string]Options{
		"Partitions": {}, "BytesPerSecond": {Partitions: (&stage{}).each(), BytesPerSecond: -1}, "Every": {Partitions: (&stage{}).each(), Every: -1},
	} {
		if _, err := Start(o); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
