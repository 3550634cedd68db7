package partition

import (
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/broker/internal/flush"
	"github.com/millrace/millrace/core/seedtest"
	"github.com/millrace/millrace/core/vfs"
)

// stopper stops one operation of a disk, of those that cleaning does itself, until it is opened.
type stopper struct {
	mu      sync.Mutex
	left    int // operations until the one that is stopped; below 0 stops none
	stopped chan vfs.Op
	open    chan struct{}
}

func (g *stopper) hook(op vfs.Op) {
	if stack := string(debug.Stack()); !strings.Contains(stack, ".(*Partition).Compact(") && !strings.Contains(stack, ".(*Partition).Retain(") {
		return // a flush
	}
	g.mu.Lock()
	g.left--
	stop := g.left == -1
	g.mu.Unlock()
	if stop {
		g.stopped <- op
		<-g.open
	}
}

// TestNobodyWaitsForCleaning stops each file operation of a round of compaction and of retention in turn, and meanwhile appends and
// fetches: both come to their end. Only the one file that a roll creates keeps an append waiting, and only a sync, or a write to the
// journal, an acknowledgement.
func TestNobodyWaitsForCleaning(t *testing.T) {
	t.Parallel()
	for name, clean := range map[string]func(*rig) error{
		"compaction": func(r *rig) error {
			_, err := r.p.Compact(Compaction{NowMs: r.now(), TableBytes: 1 << 20})
			return err
		},
		"retention": func(r *rig) error {
			_, err := r.p.Retain(r.now())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen vfs.Kind
			n, stride, stopped := 0, 4, 0
			if seedtest.Soak() {
				stride = 1
			}
			for more := true; more; n += stride {
				var op vfs.Op
				if op, more = stoppedRound(t, name, clean, n); more {
					seen |= op.Kind
					stopped++
				}
			}
			if stopped < 10 || seen&vfs.OpRemove == 0 {
				t.Errorf("only %d operations were stopped, of the kinds %v", stopped, seen)
			}
			t.Logf("%d operations were stopped", stopped)
		})
	}
}

// stoppedRound is one round, stopped at its n-th operation; more is false when it has fewer.
func stoppedRound(t *testing.T, name string, clean func(*rig) error, n int) (op vfs.Op, more bool) {
	t.Helper()
	faults := vfs.WithFaults(vfs.NewMem())
	c := compacting(0)
	if name == "retention" {
		c = keeping(commitlog.Cleaning{RetentionMs: 1000, RetentionBytes: -1})
	}
	r := newRig(t, faults, c)
	p := r.open()
	s := &sender{id: 1}
	for i := range 12 {
		r.append(keyedBatch(t, s, fmt.Sprint("k", i%3), strings.Repeat("x", 150)))
	}
	p.Flush()
	r.clock.Advance(time.Hour)
	g := &stopper{left: n, stopped: make(chan vfs.Op, 1), open: make(chan struct{})}
	faults.OnOp(g.hook)
	done := make(chan error, 1)
	go func() { done <- clean(r) }()
	select {
	case op = <-g.stopped:
		more = true
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
		faults.OnOp(nil)
		r.close()
		return op, false
	}
	isRoll := op.Kind == vfs.OpCreate && strings.HasSuffix(op.Path, ".log")
	// The journal is one file for all, and every sync is noted there before it is told.
	isSync := op.Kind&(vfs.OpSync|vfs.OpSyncDir) != 0 || strings.HasSuffix(op.Path, flush.JournalName)
	if !isRoll {
		within(t, fmt.Sprintf("%s stopped at %v of %s", name, op.Kind, op.Path), func() {
			a, err := p.Append(keyedBatch(t, s, "k", "meanwhile"), AppendOptions{RequestVersion: 12})
			if err != nil {
				t.Error(err)
				return
			}
			if !isSync {
				if err := await(p, a.LastOffset); err != nil {
					t.Error(err)
				}
			}
			read, err := p.Read(ReadOptions{Offset: max(p.Marks().LogStart, 11), MaxBytes: 1 << 20, AtLeastOne: true})
			if err != nil || read.Bytes == 0 && !isSync {
				t.Error(read, err)
				return
			}
			bytesOf(t, read)
			read.Release()
		})
	}
	close(g.open)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	faults.OnOp(nil)
	r.close()
	return op, true
}

// within runs f, which must come to its end while something else is stopped.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s: an append or a fetch waits for it", what)
	}
}
