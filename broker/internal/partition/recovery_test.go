package partition

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/vfs"
	"github.com/millrace/millrace/txn/producer"
)

const dir = "data/t-0"

// snapshotOf is every file of the folder.
func snapshotOf(t *testing.T, fsys vfs.FS) map[string]string {
	t.Helper()
	names, err := fsys.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, name := range names {
		b, err := vfs.ReadFile(fsys, filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		out[name] = string(b)
	}
	return out
}

// change rewrites a file of the folder in place.
func change(t *testing.T, fsys vfs.FS, name string, f func([]byte) []byte) {
	t.Helper()
	path := filepath.Join(dir, name)
	b, err := vfs.ReadFile(fsys, path)
	if err == nil {
		err = vfs.WriteFile(fsys, path, f(b), true)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// killed is a rig whose process was killed after n acknowledged batches and one that was not; the files are all there, as the
// page cache survives. mem is the disk.
func killed(t *testing.T, n int) (r *rig, mem *vfs.Mem, tail int64) {
	t.Helper()
	mem = vfs.NewMem()
	faults := vfs.WithFaults(mem)
	g := newGate(faults)
	r = newRig(t, faults, commitlog.Config{IndexIntervalBytes: 300})
	r.alone = true
	p := r.open()
	for i := range n {
		r.append(plain.batch(t, int64(i), fmt.Sprintf("%d %s", i, strings.Repeat("x", 100))))
	}
	g.shut()
	tail = p.log.End().Bytes
	if _, err := p.Append(plain.batch(t, int64(n), "never acknowledged"), AppendOptions{RequestVersion: 12}); err != nil {
		t.Fatal(err)
	}
	mem = mem.Clone()
	g.release()
	r.close()
	r.fs = mem
	return r, mem, tail
}

// TestDamageAndTornTail flips one byte after another in a log whose process was killed. Below the last acknowledged batch's end
// it is damage: refused, named, and nothing is changed. Above, it is a torn tail, and cut.
func TestDamageAndTornTail(t *testing.T) {
	t.Parallel()
	const n = 6
	_, disk, tail := killed(t, n)
	log := "00000000000000000000.log"
	size := int64(len(snapshotOf(t, disk)[log]))
	rng := rand.New(rand.NewPCG(1, 1))
	damaged, cut := 0, 0
	for at := int64(0); at < size; at += 1 + rng.Int64N(5) {
		mem := disk.Clone()
		change(t, mem, log, func(b []byte) []byte { b[at] ^= 1 << rng.IntN(8); return b })
		before := snapshotOf(t, mem)
		r := newRig(t, mem, commitlog.Config{IndexIntervalBytes: 300})
		err := r.tryOpen()
		header := at % (tail / n)
		if ignored := header >= 12 && header < 16; ignored { // the leader epoch is outside of the checksum
			continue
		}
		if at < tail {
			var d *commitlog.DamageError
			if !errors.As(err, &d) || !errors.Is(err, commitlog.ErrDamaged) {
				t.Fatalf("byte %d of %d, acknowledged to %d: %v", at, size, tail, err)
			}
			if d.File != log || d.Partition != "t-0" || d.Position > at || d.Durable != n {
				t.Fatalf("byte %d: %+v", at, d)
			}
			if after := snapshotOf(t, mem); fmt.Sprint(after) != fmt.Sprint(before) {
				t.Fatalf("byte %d: the folder was changed", at)
			}
			damaged++
			continue
		}
		if err != nil {
			t.Fatalf("byte %d of %d, acknowledged to %d: %v", at, size, tail, err)
		}
		if m := r.p.Marks(); m.LogEnd != n {
			t.Fatalf("byte %d: %+v", at, m)
		}
		a := r.append(plain.batch(t, 1, "goes on"))
		if a.BaseOffset != n {
			t.Fatalf("%+v", a)
		}
		r.close()
		cut++
	}
	if damaged < 50 || cut < 10 {
		t.Fatalf("%d damaged, %d cut", damaged, cut)
	}
}

// TestTornAnywhere cuts the file at every length: with the acknowledged batches it opens, without one of them it does not.
func TestTornAnywhere(t *testing.T) {
	t.Parallel()
	const n = 4
	_, disk, tail := killed(t, n)
	log := "00000000000000000000.log"
	size := len(snapshotOf(t, disk)[log])
	for at := range size + 1 {
		mem := disk.Clone()
		change(t, mem, log, func(b []byte) []byte { return b[:at] })
		r := newRig(t, mem, commitlog.Config{})
		err := r.tryOpen()
		if int64(at) < tail {
			if !errors.Is(err, commitlog.ErrDamaged) {
				t.Fatalf("cut at %d of %d, acknowledged to %d: %v", at, size, tail, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("cut at %d of %d, acknowledged to %d: %v", at, size, tail, err)
		}
		want := int64(n)
		if at == size {
			want++
		}
		if m := r.p.Marks(); m.LogEnd != want || m.HighWatermark != want {
			t.Fatalf("cut at %d: %+v", at, m)
		}
		r.close()
	}
}

// TestZerosBehindTheLog is what a power cut leaves on some file systems; it is no batch, and cut.
func TestZerosBehindTheLog(t *testing.T) {
	t.Parallel()
	r, mem, _ := killed(t, 3)
	change(t, mem, "00000000000000000000.log", func(b []byte) []byte { return append(b, make([]byte, 5000)...) })
	p := r.open()
	if m := p.Marks(); m.LogEnd != 4 {
		t.Fatalf("%+v", m)
	}
	r.close()
}

// loaded is a closed log with several segments, an aborted transaction and idempotent producers.
func loaded(t *testing.T) (r *rig, mem *vfs.Mem, want []got) {
	t.Helper()
	mem = vfs.NewMem()
	r = newRig(t, mem, tiny)
	r.open()
	idem, txn := &sender{id: 1}, &sender{id: 2, txn: true}
	for i := range 40 {
		r.append(idem.batch(t, int64(i), fmt.Sprint("i", i, strings.Repeat("x", 200))))
		r.append(txn.batch(t, int64(i), fmt.Sprint("t", i)))
		if i%7 == 6 {
			a, err := r.p.AppendMarker(producer.Marker{ProducerID: 2, Epoch: txn.epoch + 1, Commit: i == 20, TxnVersion: 2})
			if err != nil {
				t.Fatal(err)
			}
			if err := await(r.p, a.LastOffset); err != nil {
				t.Fatal(err)
			}
			txn.epoch, txn.sequence = txn.epoch+1, 0
		}
	}
	want = committed(t, r.p, 0, 1<<20)
	if n := len(r.p.log.Segments()); n < 4 {
		t.Fatalf("%d segments", n)
	}
	r.close()
	return r, mem, want
}

// TestDerivedFilesAreRebuilt takes away or spoils each file that only repeats what the log says: it is made again, and what is
// served stays the same. S07.
func TestDerivedFilesAreRebuilt(t *testing.T) {
	t.Parallel()
	_, disk, want := loaded(t)
	whole := snapshotOf(t, disk)
	spoil := map[string]func([]byte) []byte{
		"garbage": func(b []byte) []byte {
			for i := range b {
				b[i] ^= 0x5a
			}
			return b
		},
		"zeros":     func(b []byte) []byte { return make([]byte, len(b)) },
		"cut":       func(b []byte) []byte { return b[:max(0, len(b)-5)] },
		"preceding": func(b []byte) []byte { return append([]byte{1}, b...) },
		"missing":   nil,
	}
	for _, name := range slices.Sorted(maps.Keys(whole)) {
		suffix := filepath.Ext(name)
		if suffix == ".log" {
			continue
		}
		for how, f := range spoil {
			if suffix == ".txnindex" && f == nil && !strings.HasPrefix(name, lastSegment(whole)) {
				continue // the file of a sealed segment without aborted transactions is missing by design
			}
			mem := disk.Clone()
			if f == nil {
				if err := mem.Remove(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			} else {
				change(t, mem, name, f)
			}
			r := newRig(t, mem, tiny)
			if err := r.tryOpen(); err != nil {
				t.Fatalf("%s %s: %v", name, how, err)
			}
			if have := committed(t, r.p, 0, 500); fmt.Sprint(have) != fmt.Sprint(want) {
				t.Fatalf("%s %s: read_committed has\n%v\nwant\n%v", name, how, have, want)
			}
			for _, g := range want {
				if have := committed(t, r.p, g.offset, 1)[0]; have != g {
					t.Fatalf("%s %s: at %d is %v", name, how, g.offset, have)
				}
			}
			for _, find := range []func() (int64, int64, int32, bool, error){
				func() (int64, int64, int32, bool, error) { return r.p.OffsetForTime(20, false) },
				func() (int64, int64, int32, bool, error) { return r.p.MaxTimestamp(false) },
			} {
				if offset, _, _, ok, err := find(); !ok || err != nil {
					t.Fatalf("%s %s: %d %v %v", name, how, offset, ok, err)
				}
			}
			r.append((&sender{id: 1, sequence: 40}).batch(t, 1, "next")) // the producer is known
			r.close()
			if noticed := how != "garbage" && how != "zeros"; noticed && suffix == ".index" { // a time index has an entry more for each checkpoint
				after := snapshotOf(t, mem)
				if !strings.HasPrefix(after[name], whole[name]) {
					t.Fatalf("%s %s: rebuilt as\n%x\nit was\n%x", name, how, after[name], whole[name])
				}
			}
		}
	}
}

func lastSegment(files map[string]string) (base string) {
	for name := range files {
		if b, ok := strings.CutSuffix(name, ".log"); ok {
			base = max(base, b)
		}
	}
	return base
}

// TestWhatIsNotDerivedIsRefused: a missing log file, a foreign topic id.
func TestWhatIsNotDerivedIsRefused(t *testing.T) {
	t.Parallel()
	_, disk, _ := loaded(t)
	logs := slices.DeleteFunc(slices.Sorted(maps.Keys(snapshotOf(t, disk))), func(n string) bool { return !strings.HasSuffix(n, ".log") })
	for _, c := range []struct {
		name  string
		spoil func(*vfs.Mem) error
		want  error
	}{
		{"first log missing", func(m *vfs.Mem) error { return m.Remove(filepath.Join(dir, logs[0])) }, commitlog.ErrDamaged},
		{"middle log missing", func(m *vfs.Mem) error { return m.Remove(filepath.Join(dir, logs[1])) }, commitlog.ErrDamaged},
		{"last log missing", func(m *vfs.Mem) error { return m.Remove(filepath.Join(dir, logs[len(logs)-1])) }, commitlog.ErrDamaged},
		{"last log empty", func(m *vfs.Mem) error {
			return vfs.WriteFile(m, filepath.Join(dir, logs[len(logs)-1]), nil, true)
		}, commitlog.ErrDamaged},
		{"folder empty", func(m *vfs.Mem) error { return errors.Join(vfs.RemoveAll(m, dir), m.MkdirAll(dir)) }, commitlog.ErrDamaged},
		{"another topic's", func(m *vfs.Mem) error {
			return vfs.WriteFile(m, filepath.Join(dir, "partition.metadata"), []byte("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"), true)
		}, commitlog.ErrTopicID},
	} {
		mem := disk.Clone()
		if err := c.spoil(mem); err != nil {
			t.Fatal(err)
		}
		before := fmt.Sprint(snapshotOf(t, mem))
		r := newRig(t, mem, tiny)
		if err := r.tryOpen(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if after := fmt.Sprint(snapshotOf(t, mem)); after != before {
			t.Errorf("%s: the folder was changed", c.name)
		}
	}
}

// TestFlippedByteInAnOldSegment flips each byte of a cold segment in turn. Kafka answers by deleting all later segments after a
// crash, and serves the byte after a clean stop. Here what stands before is served, the batch never, and the error names it;
// later batches are served, and nothing is deleted.
func TestFlippedByteInAnOldSegment(t *testing.T) {
	t.Parallel()
	_, disk, _ := loaded(t)
	log := "00000000000000000000.log"
	whole := snapshotOf(t, disk)[log]
	rng := rand.New(rand.NewPCG(4, 4))
	flips, behind := 0, 0
	for at := 0; at < len(whole); at += 1 + rng.IntN(9) {
		mem := disk.Clone()
		change(t, mem, log, func(b []byte) []byte { b[at] ^= 1 << rng.IntN(8); return b })
		r := newRig(t, mem, tiny)
		p := r.open()
		var spoiled record.Batch
		start := 0
		for b, err := range record.Batches([]byte(whole)) {
			if err != nil {
				t.Fatal(err)
			}
			if start <= at {
				spoiled = b
			}
			start += len(b)
		}
		for _, from := range []int64{0, spoiled.BaseOffset(), spoiled.LastOffset()} {
			served, err := serve(t, p, from)
			if served != spoiled.BaseOffset() && !(from > served) {
				t.Fatalf("byte %d, batch %d: from %d served up to %d, %v", at, spoiled.BaseOffset(), from, served, err)
			}
			if code(err) != CodeKafkaStorageError {
				t.Fatalf("byte %d, batch %d: from %d: %v", at, spoiled.BaseOffset(), from, err)
			}
		}
		// Behind the next index entry nothing depends on the spoiled batch; before it a spoiled header may be in the way.
		if served, err := serve(t, p, spoiled.LastOffset()+1); err == nil && served == p.Marks().LogEnd {
			behind++
		} else if code(err) != CodeKafkaStorageError || served >= spoiled.LastOffset()+5 {
			t.Fatalf("byte %d, batch %d: behind it served up to %d, %v", at, spoiled.BaseOffset(), served, err)
		}
		r.append(plain.batch(t, 1, "goes on"))
		r.close()
		if after := snapshotOf(t, mem)[log]; len(after) != len(whole) {
			t.Fatalf("byte %d: the file was changed", at)
		}
		flips++
	}
	if behind < flips*3/4 {
		t.Fatalf("only after %d of %d flips could what stands behind be served", behind, flips)
	}
}

// serve fetches from an offset on, and returns how far it came and why no farther.
func serve(t *testing.T, p *Partition, from int64) (next int64, err error) {
	t.Helper()
	for {
		read, err := p.Read(ReadOptions{Offset: from, MaxBytes: 1000, AtLeastOne: true})
		if err != nil {
			return from, err
		}
		if read.Bytes == 0 {
			read.Release()
			return from, nil
		}
		for b, err := range record.Batches(bytesOf(t, read)) {
			if err == nil {
				err = b.CheckCRC()
			}
			if err != nil || b.BaseOffset() > from || b.LastOffset() < from {
				t.Fatalf("served at %d: offsets %d to %d, %v", from, b.BaseOffset(), b.LastOffset(), err)
			}
			from = b.LastOffset() + 1
		}
		read.Release()
	}
}

// TestCleanStopReplaysNothing: after a clean stop the newest checkpoint is the log's end.
func TestCleanStopReplaysNothing(t *testing.T) {
	t.Parallel()
	r, mem, _ := loaded(t)
	faults := vfs.WithFaults(mem)
	var reads []string
	faults.OnOp(func(op vfs.Op) {
		if op.Kind == vfs.OpRead && strings.HasSuffix(op.Path, ".log") && op.Len > 8<<10 {
			reads = append(reads, fmt.Sprint(op))
		}
	})
	r.fs = faults
	p := r.open()
	if len(reads) > 0 {
		t.Fatalf("the log was read: %v", reads)
	}
	if c := p.handle.Point().Checkpoint; c.Offset != p.Marks().LogEnd {
		t.Fatalf("%+v", c)
	}
	r.close()
}

// TestWrongLeaderEpochs: a leader epoch file that parses and is wrong, and a batch's epoch, which no checksum covers. The file is
// made again from the headers; a header that disagrees with its neighbours is damage.
func TestWrongLeaderEpochs(t *testing.T) {
	t.Parallel()
	_, disk, _ := loaded(t)
	right := snapshotOf(t, disk)["leader-epoch-checkpoint"]
	for _, text := range []string{"0\n1\n1 0\n", "0\n1\n0 8\n", "0\n2\n0 0\n3 9\n", "0\n0\n", "0\n1\n7 500\n"} {
		mem := disk.Clone()
		change(t, mem, "leader-epoch-checkpoint", func([]byte) []byte { return []byte(text) })
		r := newRig(t, mem, tiny)
		p := r.open()
		if next, err := serve(t, p, 0); err != nil || next != p.Marks().LogEnd {
			t.Fatalf("%q: served up to %d, %v", text, next, err)
		}
		if err := checkEpochs(p); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		r.append(plain.batch(t, 1, "next"))
		r.close()
		if after := snapshotOf(t, mem)["leader-epoch-checkpoint"]; after != right {
			t.Fatalf("%q was left as %q", text, after)
		}
	}
	for bit := range 32 { // of the second batch
		mem := disk.Clone()
		change(t, mem, "00000000000000000000.log", func(b []byte) []byte {
			first, _, err := record.Next(b)
			if err != nil {
				t.Fatal(err)
			}
			b[len(first)+12+bit/8] ^= 1 << (bit % 8)
			return b
		})
		r := newRig(t, mem, tiny)
		p := r.open()
		if next, err := serve(t, p, 0); next != 1 || code(err) != CodeKafkaStorageError {
			t.Fatalf("bit %d: served up to %d, %v", bit, next, err)
		}
		r.close()
	}
}
