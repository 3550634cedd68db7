package partition

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/core/vfs"
	"github.com/millrace/millrace/txn/producer"
)

// The relaxed modes as a topic's configuration makes them.
var (
	modeOS       = commitlog.Durability{Relaxed: true}
	modeInterval = commitlog.Durability{Relaxed: true, FlushMs: 100}
	modeBounded  = commitlog.Durability{Relaxed: true, FlushMs: 100, FlushMessages: 10}
	modeFsync    = commitlog.Durability{}
)

// durably waits for an offset to be synced.
func durably(p *Partition, offset int64) error {
	done := make(chan error, 1)
	p.AwaitDurable(offset, func(err error) { done <- err })
	return <-done
}

// countSyncs counts the syncs of files.
func countSyncs(f *vfs.Faults) *atomic.Int64 {
	var n atomic.Int64
	f.OnOp(func(op vfs.Op) {
		if op.Kind&vfs.OpSync != 0 {
			n.Add(1)
		}
	})
	return &n
}

// TestRelaxedAsksForNoSync: under os a record is acknowledged, and seen by readers, without a sync; rolling asks for one, so do
// whoever needs one, and the clean end.
func TestRelaxedAsksForNoSync(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	faults := vfs.WithFaults(mem)
	r := newRig(t, faults, commitlog.Config{SegmentBytes: 2000, Durability: modeOS})
	p := r.open()
	syncs := countSyncs(faults)
	for i := range 5 {
		a := r.append(plain.batch(t, 1000, fmt.Sprint(i)))
		if m := p.Marks(); m.HighWatermark != a.LastOffset+1 || m.LastStable != m.HighWatermark {
			t.Fatalf("%+v after the record at %d", m, a.LastOffset)
		}
	}
	r.clock.Advance(24 * time.Hour)
	if n := syncs.Load(); n != 0 || p.synced.Load() != 0 {
		t.Fatalf("%d syncs, durable up to %d", n, p.synced.Load())
	}
	if have := records(t, p, 0, 1<<20, true); len(have) != 5 {
		t.Fatalf("a reader sees %v", have)
	}
	if err := durably(p, 2); err != nil || p.synced.Load() < 5 || syncs.Load() == 0 {
		t.Fatalf("%v, durable up to %d after %d syncs", err, p.synced.Load(), syncs.Load())
	}
	rolled := make(chan error, 1)
	p.strict.add(10, p.strictly, func(err error) { rolled <- err }) // in the first segment; asks for nothing
	for range 40 {                                                  // past its size
		r.append(plain.batch(t, 1000, "something longer, so that it rolls soon"))
	}
	if err := <-rolled; err != nil {
		t.Fatal(err)
	}
	end := p.Marks().LogEnd
	r.close()
	after := newRig(t, mem.CrashClone(1), r.config) // the power goes right after a clean end
	if m := after.open().Marks(); m.LogEnd != end {
		t.Fatalf("%+v, want an end of %d", m, end)
	}
	after.close()
}

// TestFlushMs: a sync is asked for when the oldest record that is not synced is flush.ms old, once, and not for one that is.
func TestFlushMs(t *testing.T) {
	t.Parallel()
	r := newRig(t, vfs.NewMem(), commitlog.Config{Durability: modeInterval})
	p := r.open()
	r.append(plain.batch(t, 1000, "a"))
	r.clock.Advance(60 * time.Millisecond)
	r.append(plain.batch(t, 1000, "b"))
	r.clock.Advance(39 * time.Millisecond)
	if n := p.synced.Load(); n != 0 {
		t.Fatalf("synced up to %d after 99 ms", n)
	}
	done := make(chan error, 1)
	p.strict.add(1, p.strictly, func(err error) { done <- err }) // asks for nothing
	r.clock.Advance(time.Millisecond)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if at, due := r.clock.NextTimer(); due && at.Sub(r.clock.Now()) <= 100*time.Millisecond {
		t.Fatalf("a timer is due at %v, and nothing is unsynced", at)
	}
	r.close()
}

// TestFlushMessages: at most flush.messages less one records are acknowledged and not synced; with 1 the mode is fsync.
func TestFlushMessages(t *testing.T) {
	t.Parallel()
	for _, bound := range []int64{1, 2, 10} {
		mem := vfs.NewMem()
		faults := vfs.WithFaults(mem)
		r := newRig(t, faults, commitlog.Config{Durability: commitlog.Durability{Relaxed: true, FlushMessages: bound}})
		p := r.open()
		var worst int64
		faults.OnOp(func(op vfs.Op) { // the durable offset moves up only after a sync, so this reads it late, never early
			if high, synced := p.Marks().HighWatermark, p.synced.Load(); op.Kind == vfs.OpWrite {
				worst = max(worst, high-synced)
			}
		})
		rng := rand.New(rand.NewPCG(uint64(bound), 3))
		for range 200 {
			r.append(plain.batch(t, 1000, make([]string, 1+rng.IntN(4))...))
			if high, synced := p.Marks().HighWatermark, p.synced.Load(); high-synced >= bound {
				t.Fatalf("flush.messages %d: acknowledged up to %d, synced up to %d", bound, high, synced)
			}
		}
		faults.OnOp(nil)
		r.close()
		t.Logf("flush.messages %d: up to %d records unsynced", bound, worst)
	}
}

// TestDurabilityChanges: a change while the partition runs holds from then on; to a stricter mode it brings the sync of what was
// acknowledged before.
func TestDurabilityChanges(t *testing.T) {
	t.Parallel()
	r := newRig(t, vfs.NewMem(), commitlog.Config{Durability: modeOS})
	p := r.open()
	r.append(plain.batch(t, 1000, "a", "b"))
	done := make(chan error, 1)
	p.strict.add(1, p.strictly, func(err error) { done <- err })
	r.config.Durability = modeFsync
	p.Reconfigure(r.config)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	a := r.append(plain.batch(t, 1000, "c"))
	if n := p.synced.Load(); n != a.LastOffset+1 {
		t.Fatalf("acknowledged at %d under fsync, synced up to %d", a.LastOffset, n)
	}
	r.config.Durability = commitlog.Durability{Relaxed: true, FlushMs: 1 << 60}
	p.Reconfigure(r.config)
	r.append(plain.batch(t, 1000, "d"))
	if n := p.synced.Load(); n != a.LastOffset+1 {
		t.Fatalf("synced up to %d although nobody asked", n)
	}
	r.config.Durability.FlushMs = 5 // the alarm for a time far away must not stand in its way
	p.Reconfigure(r.config)
	if err := durably(p, 3); err != nil {
		t.Fatal(err)
	}
	r.append(plain.batch(t, 1000, "e"))
	p.strict.add(4, p.strictly, func(err error) { done <- err })
	r.clock.Advance(5 * time.Millisecond)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	r.close()
}

// TestRelaxedStable: in a relaxed mode too, an open transaction holds the last stable offset, and its marker lets it go.
func TestRelaxedStable(t *testing.T) {
	t.Parallel()
	r := newRig(t, vfs.NewMem(), commitlog.Config{Durability: modeOS})
	p := r.open()
	s := &sender{id: 7, txn: true}
	r.append(s.batch(t, 1000, "a"))
	r.append(plain.batch(t, 1000, "b"))
	if m := p.Marks(); m.HighWatermark != 2 || m.LastStable != 0 {
		t.Fatalf("%+v with a transaction open at 0", m)
	}
	if _, err := p.AppendMarker(producer.Marker{ProducerID: 7, Epoch: 1, Commit: true, TxnVersion: 2}); err != nil {
		t.Fatal(err)
	}
	if m := p.Marks(); m.HighWatermark != 3 || m.LastStable != 3 {
		t.Fatalf("%+v after the marker", m)
	}
	r.close()
}

// TestRelaxedDeleteRecords: the log start never gets durable before what lies below it, so no power cut leaves a log that starts
// behind its end.
func TestRelaxedDeleteRecords(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		mem := vfs.NewMem()
		r := newRig(t, mem, commitlog.Config{Durability: modeOS})
		p := r.open()
		for range 5 {
			r.append(plain.batch(t, 1000, "a"))
		}
		low, err := p.DeleteRecords(-1)
		if err != nil || low != 5 {
			t.Fatal(low, err)
		}
		after := newRig(t, mem.CrashClone(seed), r.config)
		if m := after.open().Marks(); m.LogStart != 5 || m.LogEnd != 5 {
			t.Fatalf("seed %d: %+v", seed, m)
		}
		after.close()
		r.close()
	}
}

// TestRelaxedSyncFails: a sync that fails takes the partition offline in a relaxed mode too, and who waits for it is told.
func TestRelaxedSyncFails(t *testing.T) {
	t.Parallel()
	faults := vfs.WithFaults(vfs.NewMem())
	r := newRig(t, faults, commitlog.Config{Durability: modeOS})
	p := r.open()
	a := r.append(plain.batch(t, 1000, "a"))
	faults.Add(vfs.Rule{Kinds: vfs.OpSync, Err: syscall.EIO, Nth: 1})
	if err := durably(p, a.LastOffset); code(err) != CodeKafkaStorageError {
		t.Fatal(err)
	}
	if _, err := p.Append(plain.batch(t, 1000, "b"), AppendOptions{RequestVersion: 12}); code(err) != CodeKafkaStorageError {
		t.Fatal(err)
	}
	if err := p.Close(); err == nil {
		t.Fatal("a partition whose sync failed closes without a word")
	}
	if err := r.flusher.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.tryOpen(); err != nil {
		t.Fatal(err)
	}
	if r.flusher.Clean() {
		t.Fatal("that was no clean stop")
	}
	r.close()
	r.open()
	if !r.flusher.Clean() {
		t.Fatal("this was a clean stop")
	}
	r.close()
}

// relaxedCrash is a disk at a power cut, and one at the process's death at the same moment.
type relaxedCrash struct {
	crash
	killed *vfs.Mem
	soft   int64 // acknowledged by then, synced or not
	ending bool  // all partitions were closed: it may count as a clean stop
}

// TestPowerLossRelaxed cuts the power, and kills the process, at random file operations of a random workload in each mode. After a
// power cut the log is a beginning of what was written, with everything below the durable promises and all but flush.messages
// less one of what was acknowledged; the producers' state agrees with it. After a kill nothing acknowledged is missing.
func TestPowerLossRelaxed(t *testing.T) {
	t.Parallel()
	lost, points := 0, 0
	for name, mode := range map[string]commitlog.Durability{"interval": modeInterval, "os": modeOS, "bounded": modeBounded, "fsync": modeFsync} {
		for seed := range uint64(2) {
			l, n := relaxedPowerLoss(t, fmt.Sprint(name, " ", seed), mode, seed)
			points += n
			if mode == modeFsync && l > 0 {
				t.Errorf("fsync, workload %d: something acknowledged was lost", seed)
			}
			lost += l
		}
	}
	t.Logf("%d power cuts and as many kills; %d of the cuts took something that was acknowledged", points, lost)
	if points < 40 || lost == 0 {
		t.Fatalf("%d points, %d with a loss: the test has not seen what it is for", points, lost)
	}
}

func relaxedPowerLoss(t *testing.T, name string, mode commitlog.Durability, seed uint64) (lost, points int) {
	t.Helper()
	config := tiny
	config.Durability = mode
	mem := vfs.NewMem()
	faults := vfs.WithFaults(mem)
	r := newRig(t, faults, config)
	l := newLoad(t, faults, r, seed)
	soft := new(model) // only its acknowledgements
	var mu sync.Mutex
	var crashes []relaxedCrash
	ending := false
	rng := rand.New(rand.NewPCG(seed, 6))
	faults.OnOp(func(op vfs.Op) {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind&vfs.OpChanges != 0 && rng.IntN(10) == 0 {
			s, model := rng.Uint64(), l.m.clone() // before the disk
			c := relaxedCrash{crash: crash{op.Seq, s, nil, model}, soft: soft.clone().acked, ending: ending}
			c.fs, c.killed = mem.CrashClone(s), mem.Clone()
			crashes = append(crashes, c)
		}
	})
	r.open()
	l.ack = func(last int64, wait bool) {
		l.p.Await(last, func(err error) {
			if err == nil {
				soft.ack(last)
			}
		})
		if wait && l.rng.IntN(4) == 0 { // a promise that holds in every mode
			l.acknowledgeDurably(last)
		}
		if l.rng.IntN(3) == 0 {
			l.clock.Advance(40 * time.Millisecond)
		}
	}
	for range 60 {
		l.step()
	}
	if err := r.p.Close(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	ending = true
	mu.Unlock()
	if err := r.flusher.Close(); err != nil {
		t.Fatal(err)
	}
	faults.OnOp(nil)
	for _, c := range crashes {
		what := fmt.Sprintf("%s, at operation %d, seed %d", name, c.op, c.seed)
		end := reopened(t, what+": power cut", c.fs, config, c.m.clone(), c.ending, rng)
		if end < c.soft {
			lost++
		}
		if bound := mode.FlushMessages; bound > 0 && c.soft-end >= bound {
			t.Errorf("%s: %d acknowledged records lost, flush.messages is %d", what, c.soft-end, bound)
		}
		whole := c.m.clone()
		whole.acked = max(whole.acked, c.soft)
		reopened(t, what+": kill", c.killed, config, whole, c.ending, rng)
	}
	return lost, len(crashes)
}

// reopened opens what is left, checks it against the model, writes a little more, and returns where the log ended.
// ending says that all partitions were closed: it may have been a clean stop.
func reopened(t *testing.T, what string, fsys vfs.FS, config commitlog.Config, m *model, ending bool, rng *rand.Rand) int64 {
	t.Helper()
	r := newRig(t, fsys, config)
	r.epoch = 1
	if err := r.tryOpen(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	end := r.p.Marks().LogEnd
	if r.flusher.Clean() && !ending {
		t.Errorf("%s: that was no clean stop", what)
	}
	if err := m.check(t, r.p, rng); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	l := newLoad(t, fsys, r, 1)
	l.m = m
	l.resume() // the producers go on from what the log says
	for range 3 {
		l.produce(true)
	}
	if err := m.check(t, r.p, rng); err != nil {
		t.Fatalf("%s, and after three more batches: %v", what, err)
	}
	r.close()
	return end
}
