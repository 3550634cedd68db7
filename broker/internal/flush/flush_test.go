package flush

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/core/clock"
	"github.com/millrace/millrace/core/vfs"
)

func start(t *testing.T, o Options) *Flusher {
	t.Helper()
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func stop(t *testing.T, f *Flusher) {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// counter is a target: a number that is appended to, and how much of it is flushed.
type counter struct {
	appended, flushed, flushes atomic.Int64
	running                    atomic.Int32
	overlap                    atomic.Bool
	block                      chan struct{}
}

func (c *counter) Flush() {
	if c.running.Add(1) > 1 {
		c.overlap.Store(true)
	}
	n := c.appended.Load()
	if c.block != nil {
		<-c.block
	}
	c.flushed.Store(n)
	c.flushes.Add(1)
	c.running.Add(-1)
}

// TestEverythingDirtyIsFlushed: whatever is appended before Dirty is flushed after it, by one flush at a time for each target.
func TestEverythingDirtyIsFlushed(t *testing.T) {
	t.Parallel()
	f := start(t, Options{Parallel: 3})
	targets := make([]*counter, 20)
	var all sync.WaitGroup
	for i := range targets {
		c := new(counter)
		targets[i] = c
		h := f.Register(ID{Partition: int32(i)}, c)
		for range 2 {
			all.Go(func() {
				for range 500 {
					c.appended.Add(1)
					h.Dirty()
				}
			})
		}
	}
	all.Wait()
	stop(t, f)
	for i, c := range targets {
		if c.flushed.Load() != 1000 || c.overlap.Load() {
			t.Errorf("target %d: %d of 1000 flushed, overlap %v", i, c.flushed.Load(), c.overlap.Load())
		}
	}
}

// TestGroupCommit: what is appended while a flush runs shares the next one.
func TestGroupCommit(t *testing.T) {
	t.Parallel()
	f := start(t, Options{})
	c := &counter{block: make(chan struct{})}
	h := f.Register(ID{}, c)
	h.Dirty()
	c.block <- struct{}{} // the first flush is through, or about to
	for range 1000 {
		c.appended.Add(1)
		h.Dirty()
	}
	close(c.block)
	stop(t, f)
	if n := c.flushes.Load(); n > 3 || c.flushed.Load() != 1000 {
		t.Fatalf("%d flushes, %d flushed", n, c.flushed.Load())
	}
}

func TestJournalRemembers(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	o := Options{FS: mem, Dir: "/", Clock: clock.NewManual(time.Unix(0, 0))}
	f := start(t, o)
	a, b := ID{Topic: [16]byte{1}}, ID{Topic: [16]byte{1}, Partition: 7}
	h := f.Register(a, new(counter))
	if p := h.Point(); p != (Point{}) {
		t.Fatalf("a new partition: %+v", p)
	}
	h.NoteSynced(10)
	h.NoteSynced(30)
	h.NoteSynced(20) // a late word does not take anything back
	c := Checkpoint{Offset: 25, Segment: 20, Position: 500, Index: 8, TimeIndex: 12, TxnIndex: 34}
	h.NoteCheckpoint(c)
	if err := h.SetLogStart(3); err != nil {
		t.Fatal(err)
	}
	other := f.Register(b, new(counter))
	other.NoteSynced(99)
	other.Forget()
	want := Point{Synced: 30, LogStart: 3, Checkpoint: c}
	for range 3 {
		if p := f.Register(a, new(counter)).Point(); p != want {
			t.Fatalf("%+v, want %+v", p, want)
		}
		if p := f.Register(b, new(counter)).Point(); p != (Point{}) {
			t.Fatalf("a forgotten partition: %+v", p)
		}
		stop(t, f)
		f = start(t, o)
	}
	stop(t, f)
}

// TestJournalIsALowerBound cuts the power anywhere: the journal never says more than was noted, and never less of a log start
// than SetLogStart has confirmed.
func TestJournalIsALowerBound(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		mem := vfs.NewMem()
		faults := vfs.WithFaults(mem)
		rng := rand.New(rand.NewPCG(seed, 2))
		timer := clock.NewManual(time.Unix(0, 0))
		f := start(t, Options{FS: faults, Dir: "/", Clock: timer})
		h := f.Register(ID{Partition: 1}, new(counter))
		type cut struct {
			fs                  *vfs.Mem
			noted, asked, start int64
		}
		var mu sync.Mutex
		var cuts []cut
		var noted, asked, confirmed int64
		faults.OnOp(func(op vfs.Op) {
			mu.Lock()
			defer mu.Unlock()
			if rng.IntN(10) == 0 {
				cuts = append(cuts, cut{mem.CrashClone(rng.Uint64()), noted, asked, confirmed})
			}
		})
		for i := range int64(60) {
			mu.Lock()
			noted = i
			if i%9 == 0 {
				asked = i
			}
			mu.Unlock()
			h.NoteSynced(i)
			if i%9 == 0 {
				if err := h.SetLogStart(i); err != nil {
					t.Fatal(err)
				}
				mu.Lock()
				confirmed = i
				mu.Unlock()
			}
			if i%20 == 0 {
				timer.Advance(2 * time.Second)
			}
		}
		stop(t, f)
		for _, c := range cuts {
			f := start(t, Options{FS: c.fs, Dir: "/"})
			p := f.Register(ID{Partition: 1}, new(counter)).Point()
			if p.Synced > c.noted || p.LogStart > c.asked || p.LogStart < c.start {
				t.Fatalf("seed %d: %+v, noted %d, log start asked %d, confirmed %d", seed, p, c.noted, c.asked, c.start)
			}
			stop(t, f)
		}
	}
}

// TestDamagedJournal flips bytes: what is left of it is still true.
func TestDamagedJournal(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	o := Options{FS: mem, Dir: "/"}
	f := start(t, o)
	for i := range int32(20) {
		h := f.Register(ID{Partition: i}, new(counter))
		h.NoteSynced(int64(100 + i))
	}
	stop(t, f)
	whole, err := vfs.ReadFile(mem, JournalName)
	if err != nil {
		t.Fatal(err)
	}
	for at := range whole {
		disk := vfs.NewMem()
		spoiled := append([]byte(nil), whole...)
		spoiled[at] ^= 0x10
		if err := vfs.WriteFile(disk, JournalName, spoiled, true); err != nil {
			t.Fatal(err)
		}
		f, err := New(Options{FS: disk, Dir: "/"})
		if at >= 8 && at < 12 {
			if !errors.Is(err, ErrNewerJournal) {
				t.Fatalf("version byte %d: %v", at, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("byte %d: %v", at, err)
		}
		lost := 0
		for i := range int32(20) {
			switch p := f.Register(ID{Partition: i}, new(counter)).Point(); p.Synced {
			case int64(100 + i):
			case 0:
				lost++
			default:
				t.Fatalf("byte %d: partition %d has %+v", at, i, p)
			}
		}
		if lost > 1 {
			t.Fatalf("byte %d: %d partitions are lost", at, lost)
		}
		stop(t, f)
	}
}

// TestJournalFailures: a note that can't be written is only a note; a log start that can't be made durable is an error; after a
// failed fsync a new file takes over.
func TestJournalFailures(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	faults := vfs.WithFaults(mem)
	f := start(t, Options{FS: faults, Dir: "/"})
	h := f.Register(ID{}, new(counter))
	h.NoteSynced(5)
	heal := faults.Add(vfs.Rule{Kinds: vfs.OpWrite, Err: syscall.ENOSPC, Short: 7})
	h.NoteSynced(6)
	if err := h.SetLogStart(2); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("%v", err)
	}
	if p := h.Point(); p.Synced != 5 || p.LogStart != 0 {
		t.Fatalf("%+v", p)
	}
	heal()
	h.NoteSynced(7)
	heal = faults.Add(vfs.Rule{Kinds: vfs.OpSync, Path: JournalName, Err: syscall.EIO})
	if err := h.SetLogStart(3); err != nil {
		t.Fatalf("a new file takes over: %v", err)
	}
	heal()
	for seed := range uint64(20) {
		g := start(t, Options{FS: mem.CrashClone(seed), Dir: "/"})
		if p := g.Register(ID{}, new(counter)).Point(); p.Synced != 7 || p.LogStart != 3 {
			t.Fatalf("seed %d: %+v", seed, p)
		}
		stop(t, g)
	}
	heal = faults.Add(vfs.Rule{Kinds: vfs.OpSync, Err: syscall.EIO})
	if err := h.SetLogStart(4); !errors.Is(err, syscall.EIO) {
		t.Fatalf("neither file can be synced: %v", err)
	}
	heal()
	if err := h.SetLogStart(4); err != nil {
		t.Fatal(err)
	}
	stop(t, f)
}

// TestJournalStaysSmall: it is written anew when most of it is history.
func TestJournalStaysSmall(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	timer := clock.NewManual(time.Unix(0, 0))
	f := start(t, Options{FS: mem, Dir: "/", Clock: timer})
	h := f.Register(ID{}, new(counter))
	for i := range int64(400_000) {
		h.NoteSynced(i)
		if i%10_000 == 0 {
			timer.Advance(time.Minute)
			if err := h.SetLogStart(i); err != nil {
				t.Fatal(err)
			}
		}
	}
	info, err := mem.Stat(JournalName)
	if err != nil || info.Size > rewriteAt+400_000*int64(entryHead+8)/10 {
		t.Fatalf("%d bytes, %v", info.Size, err)
	}
	stop(t, f)
	if p := start(t, Options{FS: mem, Dir: "/"}).Register(ID{}, new(counter)).Point(); p.Synced != 399_999 || p.LogStart != 390_000 {
		t.Fatalf("%+v", p)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{Parallel: -1}, {Parallel: 5000}, {JournalSync: -1}, {Dir: "x"}} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
	if _, err := New(Options{FS: vfs.OS(), Dir: filepath.Join(t.TempDir(), "missing")}); err == nil {
		t.Error("a missing folder is taken")
	}
}

func FuzzJournal(f *testing.F) {
	img := appendEntry(append([]byte(nil), journalHead...), kindSynced, ID{Partition: 3}, 77)
	img = appendCheckpoint(img, ID{Partition: 4}, Checkpoint{Offset: 5})
	f.Add(img)
	f.Add(img[:len(img)-3])
	f.Fuzz(func(t *testing.T, data []byte) {
		mem := vfs.NewMem()
		if err := vfs.WriteFile(mem, JournalName, data, true); err != nil {
			t.Fatal(err)
		}
		fl, err := New(Options{FS: mem, Dir: "/"})
		if err != nil {
			if !errors.Is(err, ErrNewerJournal) {
				t.Fatal(err)
			}
			return
		}
		before := fmt.Sprint(fl.journal.state)
		stop(t, fl)
		again := start(t, Options{FS: mem, Dir: "/"})
		if after := fmt.Sprint(again.journal.state); after != before {
			t.Fatalf("read again it says %s, before %s", after, before)
		}
		stop(t, again)
	})
}
