package partition

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/broker/internal/flush"
	"github.com/millrace/millrace/core/vfs"
	"github.com/millrace/millrace/txn/producer"
)

// ops counts the file operations on a disk by kind and kind of file.
type ops struct {
	mu sync.Mutex
	n  map[string]int
}

func countOps(f *vfs.Faults) *ops {
	o := &ops{n: map[string]int{}}
	f.OnOp(func(op vfs.Op) {
		name := filepath.Base(op.Path)
		switch {
		case strings.HasPrefix(name, flush.CarryName):
			name = "journal"
		case filepath.Ext(name) == ".log":
			name = "log"
		}
		o.mu.Lock()
		o.n[op.Kind.String()+" "+name]++
		o.mu.Unlock()
	})
	return o
}

// take gives the counts since the last call.
func (o *ops) take() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := o.n
	o.n = map[string]int{}
	return n
}

// TestFileOperations: what an append, a marker, an acknowledgement and a fetch ask of the disk, on a log of one segment and on one of
// hundreds, the same.
func TestFileOperations(t *testing.T) {
	t.Parallel()
	const nowMs = 1_700_000_000_000 // the rig's: a segment ends where times are far apart
	for _, segments := range []int{1, 300} {
		faults := vfs.WithFaults(vfs.NewMem())
		r := newRig(t, faults, commitlog.Config{SegmentBytes: 6000})
		r.alone = segments == 1 // for the opening; what is measured is carried
		p := r.open()
		for range segments - 1 {
			if _, err := p.Append(plain.batch(t, nowMs, strings.Repeat("x", 3500)), AppendOptions{RequestVersion: 12}); err != nil {
				t.Fatal(err)
			}
		}
		r.append(plain.batch(t, nowMs, "x"))
		r.close()
		r.alone = false
		p = r.open()
		r.append(plain.batch(t, nowMs, "the first makes names durable"))
		r.append(plain.batch(t, nowMs, "the next begins a journal"))
		s := &sender{id: 7, txn: true}
		guard := func() AppendOptions {
			return AppendOptions{RequestVersion: 12, Guard: p.BeginVerify(7, 0, 0)}
		}
		if a, err := p.Append(s.batch(t, nowMs, "opens a transaction"), guard()); err != nil || await(p, a.LastOffset) != nil {
			t.Fatal(err)
		}
		o := countOps(faults)
		for range 10 {
			r.append(s.batch(t, nowMs, "small"))
		}
		n := o.take()
		// A round may carry what an earlier one did not wait for, so there are at most as many as appends.
		if n["write log"] != 10 || n["sync log"] != 0 || n["sync journal"] > 10 || n["write journal"] > 10+2 || len(n) > 4 {
			t.Errorf("%d segments: 10 acknowledged appends take %v", segments, n)
		}
		before := p.Marks().LogEnd
		if _, err := p.AppendMarker(producer.Marker{ProducerID: 7, Epoch: 1, Commit: true, TxnVersion: 2}); err != nil || await(p, before) != nil {
			t.Fatal(err)
		}
		if n := o.take(); n["write log"] != 1 || n["sync journal"] > 1 || n["sync log"] != 0 {
			t.Errorf("%d segments: a marker takes %v", segments, n)
		}
		for _, offset := range []int64{0, before / 2, before} {
			for range 2 { // the first time it may open a file and check what it has not seen
				o.take()
				read, err := p.Read(ReadOptions{Offset: offset, MaxBytes: 1000, Committed: true, AtLeastOne: true})
				if err != nil {
					t.Fatal(err)
				}
				read.Release()
			}
			total := 0
			for _, k := range o.take() {
				total += k
			}
			if total > 3 { // look-ups in the index files of a finished segment
				t.Errorf("%d segments: a fetch at %d takes %d file operations", segments, offset, total)
			}
		}
		r.close()
	}
}

// TestIdlePartitions: a partition that is open and idle has no goroutine, no timer and little memory.
func TestIdlePartitions(t *testing.T) {
	const n = 400
	dir := t.TempDir()
	f, err := flush.New(flush.Options{FS: vfs.OS(), Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc + m.StackInuse)
	}
	open := func(i int) *Partition {
		p, err := Open(Options{FS: vfs.OS(), Dir: filepath.Join(dir, fmt.Sprintf("t-%d", i)), Topic: "t", TopicID: topicID, Index: int32(i), Flusher: f, Durable: true})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	all := []*Partition{open(0)} // what the first one costs all others share
	goroutines, before := runtime.NumGoroutine(), heap()
	for i := 1; i <= n; i++ {
		all = append(all, open(i))
	}
	each := (heap() - before) / n
	if g := runtime.NumGoroutine(); g > goroutines+2 {
		t.Errorf("%d goroutines for %d partitions more", g-goroutines, n)
	}
	if each > 4096 {
		t.Errorf("an idle partition takes %d bytes, want at most 4096", each)
	}
	t.Logf("%d bytes each", each)
	for _, p := range all {
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
