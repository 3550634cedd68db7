package partition

import (
	"errors"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"

	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/core/vfs"
)

// tiny makes everything happen often: rolls, index entries, full indexes.
var tiny = commitlog.Config{SegmentBytes: 4000, IndexIntervalBytes: 300, IndexBytes: 96, SegmentMs: 1 << 40, TimestampAfterMaxMs: 1 << 50}

// TestModel runs random appends, reads, deletions, rolls and clean reopenings against the model.
func TestModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		r := newRig(t, vfs.NewMem(), tiny)
		l := newLoad(t, r.fs, r, seed)
		l.noMarkers = seed%3 == 0
		r.open()
		for i := range 400 {
			l.step()
			if i%20 == 19 {
				if l.rng.IntN(3) == 0 {
					r.close()
					r.epoch++
					r.open()
				}
				if err := await(r.p, l.m.next()-1); err != nil {
					t.Fatal(err)
				}
				if err := l.m.check(t, r.p, l.rng); err != nil {
					t.Fatalf("seed %d, step %d: %v", seed, i, err)
				}
			}
		}
		r.close()
	}
}

// crash is a disk at the moment of a power cut, and the model at that moment.
type crash struct {
	op   int64
	seed uint64
	fs   *vfs.Mem
	m    *model
}

// TestPowerLoss cuts the power at random file operations of a random workload, and goes on from there: reopen, check, work, and
// again.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	points, workloads := 0, uint64(10)
	if testing.Short() {
		workloads = 4
	}
	for seed := range workloads {
		points += powerLoss(t, vfs.NewMem(), new(model), seed, 60, 3)
	}
	t.Logf("%d power cuts", points)
	if points < 100 {
		t.Fatalf("only %d", points)
	}
}

// powerLoss runs a workload on a disk that may hold a log already, and returns the number of power cuts in it and below it.
func powerLoss(t *testing.T, mem *vfs.Mem, m *model, seed uint64, steps, depth int) int {
	t.Helper()
	faults := vfs.WithFaults(mem)
	r := newRig(t, faults, tiny)
	r.epoch = int32(4 - depth) // every start has a new one
	l := newLoad(t, faults, r, seed)
	l.m = m
	var mu sync.Mutex
	var crashes []crash
	rng := rand.New(rand.NewPCG(seed, 5))
	faults.OnOp(func(op vfs.Op) {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind&vfs.OpChanges != 0 && rng.IntN(12) == 0 {
			model := l.m.clone() // before the disk: what was acknowledged by now must be on it
			s := rng.Uint64()
			crashes = append(crashes, crash{op.Seq, s, mem.CrashClone(s), model})
		}
	})
	r.open()
	if err := l.m.check(t, r.p, rng); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	l.resume()
	for range steps {
		l.step()
	}
	r.close()
	faults.OnOp(nil)
	n := len(crashes)
	for _, c := range crashes {
		if depth > 0 && c.seed%4 == 0 {
			n += powerLoss(t, c.fs, c.m, c.seed, steps/4, depth-1)
			continue
		}
		after := newRig(t, c.fs, tiny)
		after.epoch = r.epoch + 1
		if err := after.tryOpen(); err != nil {
			t.Fatalf("workload %d, power cut at operation %d, seed %d: %v", seed, c.op, c.seed, err)
		}
		if err := c.m.check(t, after.p, rng); err != nil {
			t.Fatalf("workload %d, power cut at operation %d, seed %d: %v", seed, c.op, c.seed, err)
		}
		after.close()
	}
	return n
}

// TestFaultAtEveryCallSite lets one file operation fail in turn, each way that kind can fail. Nothing acknowledged is lost, what
// was refused is not in the log, and the log goes on: at once, or after reopening if a sync failed.
func TestFaultAtEveryCallSite(t *testing.T) {
	t.Parallel()
	const seed, steps = 3, 25
	run := func(rule *vfs.Rule, at int64) (ops int64) {
		mem := vfs.NewMem()
		faults := vfs.WithFaults(mem)
		r := newRig(t, faults, tiny)
		l := newLoad(t, faults, r, seed)
		if rule != nil {
			l.fail = func(err error) bool {
				var e interface{ ErrorCode() int16 }
				return errors.As(err, &e) && e.ErrorCode() == CodeKafkaStorageError
			}
			rule.Nth = int(at)
			defer faults.Add(*rule)()
		}
		if err := r.tryOpen(); err != nil {
			if rule == nil || !errors.Is(err, rule.Err) {
				t.Fatalf("%+v at %d: open: %v", rule, at, err)
			}
			r.open() // the fault was a single one
		}
		for i := range steps {
			l.step()
			if i == steps/2 {
				reopen(l, rule)
			}
		}
		before := faults.Ops()
		reopen(l, rule)
		if err := l.m.check(t, r.p, l.rng); err != nil {
			t.Fatalf("%+v at operation %d: %v", rule, at, err)
		}
		l.resume()
		l.produce(true)
		reopen(l, rule)
		return before
	}
	total := run(nil, 0)
	stride := int64(1)
	if testing.Short() {
		stride = 7
	}
	for _, rule := range []vfs.Rule{
		{Err: syscall.EIO},
		{Kinds: vfs.OpWrite, Err: syscall.ENOSPC, Short: 30},
	} {
		for at := int64(1); at <= total; at += stride {
			run(&rule, at)
		}
	}
	t.Logf("%d operations", total)
}

// reopen closes and opens, past whatever the fault does to that.
func reopen(l *load, rule *vfs.Rule) {
	l.t.Helper()
	err := errors.Join(l.p.Close(), l.flusher.Close())
	if err != nil && (rule == nil || !errors.Is(err, rule.Err)) {
		l.t.Fatalf("close: %v", err)
	}
	if err := l.tryOpen(); err != nil {
		if rule == nil || !errors.Is(err, rule.Err) {
			l.t.Fatalf("open: %v", err)
		}
		l.open()
	}
	for len(l.m.log) > 0 && l.m.log[len(l.m.log)-1].base >= l.p.Marks().LogEnd {
		l.m.pop()
	}
	l.resume()
}
