package flush

import (
	"bytes"
	crand "crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/core/clock"
	"github.com/millrace/millrace/core/vfs"
)

// fileTarget is a log of one file, appended to and flushed as a partition does it.
type fileTarget struct {
	t    testing.TB
	name string // of its folder
	file vfs.File
	h    *Handle

	flushing sync.Mutex
	mu       sync.Mutex
	written  []byte
	durable  int // bytes, in the file or an append journal
	waiters  map[int][]chan error
	ended    error
	planned  int
	flushes  int
}

func fileID(n int) ID { return ID{Topic: [16]byte{9, byte(n)}, Partition: int32(n)} }

// newFileTarget opens the log and its folder, which are durable then.
func newFileTarget(t testing.TB, fsys vfs.FS, f *Flusher, dir string, n int) *fileTarget {
	t.Helper()
	x := &fileTarget{t: t, name: fmt.Sprintf("t-%d", n), waiters: map[int][]chan error{}}
	id := fileID(n)
	folder := filepath.Join(dir, x.name)
	text := "version: 0\ntopic_id: " + base64.RawURLEncoding.EncodeToString(id.Topic[:])
	err := errors.Join(fsys.MkdirAll(folder), fsys.SyncDir(dir), vfs.WriteFile(fsys, filepath.Join(folder, "partition.metadata"), []byte(text), true))
	if err != nil {
		t.Fatal(err)
	}
	if x.file, err = fsys.Create(filepath.Join(folder, "0.log")); err == nil {
		err = fsys.SyncDir(folder)
	}
	if err != nil {
		t.Fatal(err)
	}
	x.h = f.Register(id, x)
	return x
}

// append writes data and gives a channel that says when it is durable.
func (x *fileTarget) append(data []byte) (<-chan error, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, err := x.file.WriteAt(data, int64(len(x.written))); err != nil {
		return nil, errors.Join(err, x.file.Truncate(int64(len(x.written))))
	}
	x.written = append(x.written, data...)
	done := make(chan error, 1)
	if x.ended != nil {
		done <- x.ended
		return done, nil
	}
	x.waiters[len(x.written)] = append(x.waiters[len(x.written)], done)
	x.h.Dirty()
	return done, nil
}

func (x *fileTarget) Flush() {
	x.flushing.Lock()
	defer x.flushing.Unlock()
	x.mu.Lock()
	end := len(x.written)
	x.mu.Unlock()
	if err := x.file.Sync(); err != nil {
		x.mu.Lock()
		x.ended = err
		x.mu.Unlock()
		x.tell(1<<30, err)
		return
	}
	x.h.NoteSynced(int64(end))
	x.mu.Lock()
	x.durable = end
	x.flushes++
	x.mu.Unlock()
	x.Tell()
}

func (x *fileTarget) Carry(buf []byte, max int) (p Piece, ok bool) {
	if !x.flushing.TryLock() {
		return p, false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended != nil || len(x.written)-x.durable > max {
		x.flushing.Unlock()
		return p, false
	}
	x.planned = len(x.written)
	data := append(buf, x.written[x.durable:]...)
	return Piece{File: x.name + "/0.log", Position: int64(x.durable), Next: int64(x.planned), Data: data}, true
}

func (x *fileTarget) Carried(err error) {
	x.mu.Lock()
	if err == nil {
		x.durable = x.planned
	}
	x.mu.Unlock()
	x.flushing.Unlock()
}

func (x *fileTarget) Tell() {
	x.mu.Lock()
	to := x.durable
	x.mu.Unlock()
	x.tell(to, nil)
}

func (x *fileTarget) tell(to int, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for at, list := range x.waiters {
		if at <= to {
			for _, w := range list {
				w <- err
			}
			delete(x.waiters, at)
		}
	}
}

// content is what the log's file holds on a disk.
func (x *fileTarget) content(t testing.TB, fsys vfs.FS, dir string) []byte {
	t.Helper()
	data, err := vfs.ReadFile(fsys, filepath.Join(dir, x.name, "0.log"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// carryRig is a flusher with some logs on a memory disk.
type carryRig struct {
	mem     *vfs.Mem
	faults  *vfs.Faults
	f       *Flusher
	targets []*fileTarget
}

func newCarryRig(t testing.TB, n int, size int64) *carryRig {
	t.Helper()
	r := &carryRig{mem: vfs.NewMem()}
	r.faults = vfs.WithFaults(r.mem)
	if err := errors.Join(r.mem.MkdirAll("d"), r.mem.SyncDir("/")); err != nil {
		t.Fatal(err)
	}
	f, err := New(Options{FS: r.faults, Dir: "d", CarryBytes: size, Clock: clock.NewManual(time.Unix(0, 0))})
	if err != nil {
		t.Fatal(err)
	}
	r.f = f
	for i := range n {
		r.targets = append(r.targets, newFileTarget(t, r.faults, f, "d", i))
	}
	return r
}

// TestRoundsShareASync: what becomes dirty during one sync is durable after one write and one more sync, however many files it is
// in; and their own files are not synced at all.
func TestRoundsShareASync(t *testing.T) {
	t.Parallel()
	const n = 50
	r := newCarryRig(t, n, 1<<20)
	var mu sync.Mutex
	ops := map[string]int{}
	hold, arrived := make(chan struct{}), make(chan struct{}, 1)
	r.faults.OnOp(func(op vfs.Op) {
		if op.Kind&(vfs.OpSync|vfs.OpWrite) == 0 {
			return
		}
		mu.Lock()
		ops[op.Kind.String()+" "+filepath.Base(op.Path)]++
		mu.Unlock()
		if op.Kind == vfs.OpSync && strings.HasPrefix(filepath.Base(op.Path), CarryName) {
			select {
			case arrived <- struct{}{}:
			default:
			}
			<-hold
		}
	})
	first, err := r.targets[0].append([]byte("first"))
	if err != nil {
		t.Fatal(err)
	}
	<-arrived
	var all []<-chan error
	for _, x := range r.targets {
		for range 3 {
			done, err := x.append([]byte("more"))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, done)
		}
	}
	mu.Lock()
	clear(ops)
	mu.Unlock()
	close(hold)
	for _, done := range append(all, first) {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if ops["write append-journal-0"] != 1 || ops["sync append-journal-0"] != 1 || ops["sync 0.log"] != 0 {
		t.Fatalf("%v, want one write and one sync of an append journal", ops)
	}
}

// TestCarriedOutlivesPowerCuts cuts the power at every operation of a random workload on small append journals, which are begun
// anew again and again: what was acknowledged is in the files after the next start, and they hold nothing but what was written.
// A second cut during that start changes nothing.
func TestCarriedOutlivesPowerCuts(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		carriedPowerCuts(t, seed, nil)
	}
}

// TestCarriedWithFailures is the same on a disk whose operations fail now and then, each kind at its n-th call.
func TestCarriedWithFailures(t *testing.T) {
	t.Parallel()
	for i, rule := range []vfs.Rule{
		{Kinds: vfs.OpWrite, Path: CarryName + "*", Nth: 1}, {Kinds: vfs.OpWrite, Path: CarryName + "*", Nth: 9},
		{Kinds: vfs.OpSync, Path: CarryName + "*", Nth: 1}, {Kinds: vfs.OpSync, Path: CarryName + "*", Nth: 20},
		{Kinds: vfs.OpCreate, Path: CarryName + "*"}, {Kinds: vfs.OpCreate, Path: CarryName + "*", Nth: 2},
		{Kinds: vfs.OpSyncDir, Nth: 1}, {Kinds: vfs.OpSync, Path: "*.log", Nth: 3}, {Kinds: vfs.OpSync, Path: "*.log"},
	} {
		rule.Err = syscall.EIO
		carriedPowerCuts(t, uint64(100+i), &rule)
	}
}

// carriedCrash is a disk, and what of each file was acknowledged before.
type carriedCrash struct {
	op    vfs.Op
	disk  *vfs.Mem
	acked []int
}

func carriedPowerCuts(t *testing.T, seed uint64, rule *vfs.Rule) {
	t.Helper()
	const n = 5
	most := 150
	if rule != nil {
		most = 60
	}
	r := newCarryRig(t, n, carryBytesMin)
	rng := rand.New(rand.NewPCG(seed, 1))
	var mu sync.Mutex
	acked := make([]int, n)
	var crashes []carriedCrash
	r.faults.OnOp(func(op vfs.Op) {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind&vfs.OpChanges != 0 && len(crashes) < most && rng.IntN(6) == 0 {
			a := append([]int(nil), acked...) // before the disk
			crashes = append(crashes, carriedCrash{op, r.mem.CrashClone(rng.Uint64()), a})
		}
	})
	if rule != nil {
		r.faults.Add(*rule)
	}
	work := rand.New(rand.NewPCG(seed, 2))
	for range 150 {
		var waits []func()
		for range 1 + work.IntN(4) {
			i := work.IntN(n)
			x := r.targets[i]
			data := make([]byte, 1+work.IntN(300))
			for k := range data {
				data[k] = byte(work.Uint32())
			}
			done, err := x.append(data)
			if err != nil {
				continue
			}
			end := len(x.written)
			waits = append(waits, func() {
				if <-done == nil {
					mu.Lock()
					acked[i] = max(acked[i], end)
					mu.Unlock()
				}
			})
		}
		for _, wait := range waits {
			wait()
		}
	}
	if err := r.f.Close(); err != nil && rule == nil {
		t.Fatal(err)
	}
	r.faults.OnOp(nil)
	for _, c := range crashes {
		r.check(t, fmt.Sprintf("seed %d, at %v %s", seed, c.op.Kind, c.op.Path), c, rng)
	}
	if len(crashes) < 50 {
		t.Fatalf("only %d power cuts", len(crashes))
	}
}

// check starts on a crashed disk, with one more power cut on the way.
func (r *carryRig) check(t *testing.T, what string, c carriedCrash, rng *rand.Rand) {
	t.Helper()
	again := vfs.WithFaults(c.disk)
	at, ops := rng.IntN(20), 0
	var second *vfs.Mem
	var mu sync.Mutex // the redo syncs several files at the same time
	again.OnOp(func(op vfs.Op) {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind&vfs.OpChanges != 0 {
			if ops == at {
				second = c.disk.CrashClone(rng.Uint64())
			}
			ops++
		}
	})
	disks := []*vfs.Mem{c.disk}
	for i := 0; i < len(disks); i++ {
		var fsys vfs.FS = disks[i]
		if i == 0 {
			fsys = again
		}
		f, err := New(Options{FS: fsys, Dir: "d", CarryBytes: carryBytesMin})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		for k, x := range r.targets {
			point := f.Register(fileID(k), nil).Point()
			have := x.content(t, disks[i], "d")
			known := max(c.acked[k], int(point.Synced))
			if len(have) < known || !bytes.Equal(have[:known], x.written[:known]) {
				t.Fatalf("%s, start %d: %s has %d bytes, %d were acknowledged, the journal says %d", what, i, x.name, len(have), c.acked[k], point.Synced)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if second != nil && i == 0 {
			disks = append(disks, second)
		}
	}
}

// TestRedoLeavesAlone: bytes of a topic that was made anew, of a segment that is gone, and of what was durable in its own file are not
// put back; a path that leads out of the folder is refused.
func TestRedoLeavesAlone(t *testing.T) {
	t.Parallel()
	r := newCarryRig(t, 4, 1<<20)
	for i, x := range r.targets {
		x.append([]byte("synced "))
		x.Flush()
		done, err := x.append(fmt.Append(nil, "carried ", i))
		if err != nil || <-done != nil {
			t.Fatal(err)
		}
	}
	disk := r.mem.Clone() // as after a kill; the files are cut by hand
	cut := func(name, content string) {
		t.Helper()
		if err := vfs.WriteFile(disk, filepath.Join("d", name), []byte(content), true); err != nil {
			t.Fatal(err)
		}
	}
	cut("t-0/0.log", "synced ")
	cut("t-1/0.log", "of another topic")
	other := fileID(77)
	cut("t-1/partition.metadata", "version: 0\ntopic_id: "+base64.RawURLEncoding.EncodeToString(other.Topic[:]))
	if err := disk.Remove("d/t-2/0.log"); err != nil {
		t.Fatal(err)
	}
	cut("t-3/0.log", "compacted since")
	if err := ChangeJournal(disk, "d", func(points map[ID]Point) {
		points[fileID(3)] = Point{Synced: 1 << 20}
	}); err != nil {
		t.Fatal(err)
	}
	if n, err := Pending(disk, "d"); err != nil || n == 0 {
		t.Fatalf("%d bytes are pending, %v", n, err)
	}
	if done, err := Redo(disk, "d"); !done || err != nil {
		t.Fatal(done, err)
	}
	for i, want := range []string{"synced carried 0", "of another topic", "", "compacted since"} {
		if want == "" {
			if _, err := disk.Stat("d/t-2/0.log"); err == nil {
				t.Error("a segment that was gone is back")
			}
			continue
		}
		if have := r.targets[i].content(t, disk, "d"); string(have) != want {
			t.Errorf("t-%d: %q, want %q", i, have, want)
		}
	}
	if n, err := Pending(disk, "d"); err != nil || n != 0 {
		t.Fatalf("%d bytes are pending, %v", n, err)
	}
	if done, err := Redo(disk, "d"); done || err != nil {
		t.Fatal(done, err)
	}
	evil := appendPiece(appendCarryHead(nil, 1, 1), 1, Piece{File: "../x", Data: []byte("x"), Next: 1})
	if err := vfs.WriteFile(disk, "d/"+CarryName+"0", evil, true); err != nil {
		t.Fatal(err)
	}
	if _, err := Redo(disk, "d"); err == nil {
		t.Fatal("a path out of the folder is taken")
	}
}

// TestTornAppendJournal: of a journal that is cut or has a wrong bit anywhere, the pieces before that place are read and no other.
func TestTornAppendJournal(t *testing.T) {
	t.Parallel()
	data := appendCarryHead(nil, 3, 33)
	ends := []int{len(data)}
	for i := range 5 {
		data = appendPiece(data, 33, Piece{ID: fileID(i), File: "t-0/0.log", Position: int64(i), Next: int64(i + 1), Data: bytes.Repeat([]byte{byte(i)}, 40+i)})
		ends = append(ends, len(data))
	}
	data = appendPiece(data, 32, Piece{File: "of/an/earlier/generation", Data: []byte("x"), Next: 1})
	whole := func(at int) (n int) { // pieces that end at or before a byte
		for n < 5 && ends[n+1] <= at {
			n++
		}
		return n
	}
	if g, pieces := readCarry(data); g != 3 || len(pieces) != 5 || pieces[4].Next != 5 || len(pieces[4].Data) != 44 {
		t.Fatalf("generation %d, %d pieces", g, len(pieces))
	}
	for at := range data {
		if _, pieces := readCarry(data[:at]); len(pieces) != whole(at) {
			t.Fatalf("cut at %d: %d pieces, want %d", at, len(pieces), whole(at))
		}
		torn := bytes.Clone(data)
		torn[at] ^= 0x10
		want := whole(at)
		if at < carryHead {
			want = 0
		}
		if _, pieces := readCarry(torn); len(pieces) != want {
			t.Fatalf("wrong bit at %d: %d pieces, want %d", at, len(pieces), want)
		}
	}
}

// TestCleanStopLeavesNoAppendJournal, and one with a file that could not be synced leaves it.
func TestCleanStopLeavesNoAppendJournal(t *testing.T) {
	t.Parallel()
	for _, fails := range []bool{false, true} {
		r := newCarryRig(t, 1, 1<<20)
		x := r.targets[0]
		done, err := x.append([]byte("carried"))
		if err != nil || <-done != nil {
			t.Fatal(err)
		}
		if fails {
			r.faults.Add(vfs.Rule{Kinds: vfs.OpSync, Path: "0.log", Err: io.ErrUnexpectedEOF})
		}
		x.Flush()
		if err := r.f.Close(); err != nil {
			t.Fatal(err)
		}
		if n, err := Pending(r.mem, "d"); err != nil || (n > 0) != fails {
			t.Fatalf("failed sync %v: %d bytes are pending, %v", fails, n, err)
		}
	}
}

// asked is someone with bytes in append journals; it counts how often it is asked to sync its own file.
type asked int

func (a *asked) file() { *a++ }

// TestWhatIsNeededIsNotWrittenOver: an append journal is begun anew only when nobody needs it. As long as files can't be synced more of
// them are begun, and in the end there is no room.
func TestWhatIsNeededIsNotWrittenOver(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	c := newCarryLog(mem, "/", carryBytesMin, crand.Reader, 7)
	var by [carryFiles]asked
	fill := func(i int) (n int) {
		t.Helper()
		for {
			at := c.generation
			ok, err := c.ready(1000)
			if err != nil {
				t.Fatal(err)
			}
			if !ok || n > 0 && c.generation != at {
				return n
			}
			p := Piece{File: "t-0/0.log", Position: int64(n), Next: 1, Data: bytes.Repeat([]byte{byte(i)}, 900)}
			if err := c.put(appendPiece(nil, c.salt, p), []filer{&by[i]}); err != nil {
				t.Fatal(err)
			}
			n++
		}
	}
	total := 0
	for i := range by {
		n := fill(i)
		if n < 10 {
			t.Fatalf("file %d takes %d pieces", i, n)
		}
		total += n
		if last := i == carryFiles-1; !last && by[i] != 1 {
			t.Fatalf("the owner of file %d was asked %d times", i, by[i])
		}
	}
	if n := fill(0); n != 0 {
		t.Fatal("there is room although everything is needed")
	}
	pieces, generation, _, err := carried(mem, "/")
	if err != nil || len(pieces) != total || generation != 7+carryFiles {
		t.Fatalf("%d pieces of %d, generation %d, %v", len(pieces), total, generation, err)
	}
	for i := 1; i < len(pieces); i++ {
		if pieces[i].Data[0] < pieces[i-1].Data[0] {
			t.Fatal("a later file is read first")
		}
	}
	c.filed(&by[2])
	if fill(2) == 0 {
		t.Fatal("there is no room although a file is free")
	}
	pieces, _, _, err = carried(mem, "/")
	if err != nil || len(pieces) != total || pieces[len(pieces)-1].Data[0] != 2 || pieces[0].Data[0] != 0 {
		t.Fatalf("%d pieces, %v", len(pieces), err)
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	if pieces, _, _, err = carried(mem, "/"); err != nil || len(pieces) != total {
		t.Fatalf("%d pieces after the end, %v", len(pieces), err)
	}
}
