package partition

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/seedtest"
	"github.com/millrace/millrace/core/vfs"
	"github.com/millrace/millrace/txn/producer"
)

// scrubAll goes over a partition in small steps.
func scrubAll(t *testing.T, p *Partition) (all commitlog.Scrubbed) {
	t.Helper()
	for s := p.Scrub(); ; {
		did, err := s.Step(500)
		if err != nil {
			t.Fatal(err)
		}
		all.Bytes, all.Segments, all.Rebuilt = all.Bytes+did.Bytes, all.Segments+did.Segments, all.Rebuilt+did.Rebuilt
		all.Damage = append(all.Damage, did.Damage...)
		if did.Done {
			return all
		}
	}
}

// fillForScrub writes segments with everything in them: aborted transactions, several index entries.
func fillForScrub(t *testing.T, p *Partition) {
	t.Helper()
	txn := &sender{id: 7, txn: true}
	for i := range int64(60) {
		s := plain
		o := AppendOptions{RequestVersion: 9}
		if i%5 == 0 {
			s = txn
			o.Guard = p.BeginVerify(7, 0, txn.sequence)
		}
		a, err := p.Append(s.batch(t, 1_700_000_000_000+i*10, fmt.Sprint(i), strings.Repeat("x", int(i*7%300))), o)
		if err != nil {
			t.Fatal(err)
		}
		if s.txn {
			if a, err = p.AppendMarker(producer.Marker{ProducerID: 7, Commit: i%2 == 0}); err != nil {
				t.Fatal(err)
			}
		}
		if err := await(p, a.LastOffset); err != nil {
			t.Fatal(err)
		}
	}
}

// TestScrub turns bits over in the finished segments of a partition that is open and has served and written all of it: nobody would
// look at these bytes again. The scrub finds each, and names the batch; it is served no more, and everything else is.
func TestScrub(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(seedtest.New(t), 0))
	mem := vfs.NewMem()
	r := newRig(t, mem, tiny)
	p := r.open()
	fillForScrub(t, p)
	if all := scrubAll(t, p); len(all.Damage) > 0 || all.Rebuilt > 0 || all.Segments < 3 || all.Bytes < 3000 {
		t.Fatalf("of a log that is whole: %+v", all)
	}
	r.close()
	for i := range 60 {
		left := mem.Clone()
		after := newRig(t, left, tiny)
		p := after.open()
		before := everything(t, p) // all of it is checked, and served
		names, err := left.List("data/t-0")
		if err != nil {
			t.Fatal(err)
		}
		logs := slices.DeleteFunc(names, func(n string) bool { return filepath.Ext(n) != ".log" })
		name := logs[rng.IntN(len(logs)-1)]
		at := turnBit(t, rng, left, "data/t-0/"+name)
		all := scrubAll(t, p)
		if len(all.Damage) == 0 || all.Damage[0].File != name || all.Damage[0].Position > at || all.Rebuilt > 0 {
			t.Fatalf("round %d: byte %d of %s is wrong, found %+v", i, at, name, all)
		}
		bad := all.Damage[0].Offset
		for _, b := range before {
			got, err := p.Read(ReadOptions{Offset: b.first, MaxBytes: 1, AtLeastOne: true})
			switch {
			case b.first == bad && !errors.Is(err, commitlog.ErrDamaged):
				t.Fatalf("round %d: the batch at %d is damaged, and read with %v", i, bad, err)
			case b.first < bad && err != nil:
				t.Fatalf("round %d: the batch at %d is whole, and refused: %v", i, b.first, err)
			}
			if err == nil {
				got.Release()
			}
		}
		if again := scrubAll(t, p); len(again.Damage) > 0 {
			t.Fatalf("round %d: known damage is reported again: %v", i, again.Damage)
		}
		if _, err := p.Append(plain.batch(t, 1_700_000_000_000, "goes on"), AppendOptions{RequestVersion: 9}); err != nil {
			t.Fatal(err)
		}
		after.close()
	}
}

// TestScrubMendsIndexes turns bits over in the index files of finished segments. A look-up by time has the right answer before the
// scrub came by and after it, and the scrub builds the file again.
func TestScrubMendsIndexes(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(seedtest.New(t), 1))
	mem := vfs.NewMem()
	r := newRig(t, mem, tiny)
	p := r.open()
	fillForScrub(t, p)
	r.close()
	truth := newRig(t, mem.Clone(), tiny)
	want := timeAnswers(t, truth.open())
	truth.close()
	for i := range 150 {
		for _, first := range []bool{true, false} { // who comes first, the reader or the scrub
			left := mem.Clone()
			names, err := left.List("data/t-0")
			if err != nil {
				t.Fatal(err)
			}
			last := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return filepath.Ext(n) != ".log" })
			active := strings.TrimSuffix(last[len(last)-1], ".log")
			suffix := []string{".index", ".timeindex", ".timeindex", ".txnindex", ".txnsum"}[rng.IntN(5)]
			files := slices.DeleteFunc(names, func(n string) bool {
				info, err := left.Stat("data/t-0/" + n)
				return filepath.Ext(n) != suffix || err != nil || info.Size == 0 || strings.HasPrefix(n, active)
			})
			name := files[rng.IntN(len(files))]
			at := turnBit(t, rng, left, "data/t-0/"+name)
			after := newRig(t, left, tiny)
			p := after.open()
			if first {
				if got := timeAnswers(t, p); got != want {
					t.Fatalf("round %d: byte %d of %s is wrong, and the answers are\n%s\nwant\n%s", i, at, name, got, want)
				}
			}
			all := scrubAll(t, p)
			if len(all.Damage) > 0 || !first && all.Rebuilt != 1 {
				t.Fatalf("round %d: byte %d of %s is wrong, the scrub says %+v", i, at, name, all)
			}
			if got := timeAnswers(t, p); got != want {
				t.Fatalf("round %d: byte %d of %s was wrong, and after the scrub the answers are\n%s\nwant\n%s", i, at, name, got, want)
			}
			after.close()
		}
	}
}

// TestLeapIsNoGap: in a compacted log offsets may be missing, so a base offset that has grown by a flipped bit, which no checksum
// covers, looks like a gap; but not when the next batch falls back behind it. The one that leaps is not served, and the last one
// is not lost without a word.
func TestLeapIsNoGap(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	r := newRig(t, mem, commitlog.Config{Compacted: true})
	p := r.open()
	for i := range int64(3) {
		appendOne(t, p, i, "v")
		if err := await(p, i); err != nil {
			t.Fatal(err)
		}
	}
	r.close()
	f, err := mem.Open("data/t-0/00000000000000000000.log")
	if err != nil {
		t.Fatal(err)
	}
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int64{1, 2} { // the base offset of the second batch or of the last one has bit 1 or 2 turned
		if _, err := f.WriteAt([]byte{byte(n ^ 2*n)}, n*size/3+7); err != nil {
			t.Fatal(err)
		}
		p = r.open()
		got, err := p.Read(ReadOptions{Offset: 0, MaxBytes: 1 << 20})
		if err != nil || got.Bytes != int(n*size/3) {
			t.Fatalf("read from 0: %+v, %v, want the batches before %d alone", got, err, n)
		}
		got.Release()
		if _, err := p.Read(ReadOptions{Offset: n, MaxBytes: 1 << 20}); !errors.Is(err, commitlog.ErrDamaged) {
			t.Fatalf("read from %d: %v, want damage", n, err)
		}
		r.close()
		if _, err := f.WriteAt([]byte{byte(n)}, n*size/3+7); err != nil {
			t.Fatal(err)
		}
	}
}

// TestActiveIndexWithAWrongBit turns over bits (all of them in the long form) of the index files of the segment that is appended to: its indexes are read at
// the start, and can not be built again while they grow. All can be read, and look-ups are right.
func TestActiveIndexWithAWrongBit(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	config := tiny
	config.SegmentBytes, config.IndexBytes = 1<<20, 1<<20
	r := newRig(t, mem, config)
	p := r.open()
	fillForScrub(t, p)
	want := timeAnswers(t, p)
	r.close()
	step := 29
	if seedtest.Soak() {
		step = 1
	}
	for _, suffix := range []string{".index", ".timeindex"} {
		path := "data/t-0/00000000000000000000" + suffix
		data, err := vfs.ReadFile(mem, path)
		if err != nil {
			t.Fatal(err)
		}
		for bit := 0; bit < len(data)*8; bit += step {
			left := mem.Clone()
			wrong := slices.Clone(data)
			wrong[bit/8] ^= 1 << (bit % 8)
			if err := vfs.WriteFile(left, path, wrong, true); err != nil {
				t.Fatal(err)
			}
			after := newRig(t, left, config)
			p := after.open()
			if got := timeAnswers(t, p); got != want {
				t.Fatalf("bit %d of %s is wrong, and the answers are\n%s\nwant\n%s", bit, suffix, got, want)
			}
			for at := range p.Marks().LogEnd {
				got, err := p.Read(ReadOptions{Offset: at, MaxBytes: 1, AtLeastOne: true})
				if err != nil {
					t.Fatalf("bit %d of %s is wrong: %v", bit, suffix, err)
				}
				got.Release()
			}
			after.close()
		}
	}
}

// timeAnswers is what look-ups by time and reads of aborted transactions say.
func timeAnswers(t *testing.T, p *Partition) (out string) {
	t.Helper()
	for ts := int64(1_700_000_000_000 - 5); ts < 1_700_000_000_620; ts += 5 {
		offset, found, _, ok, err := p.OffsetForTime(ts, false)
		if err != nil {
			t.Fatal(err)
		}
		out += fmt.Sprint(offset, found, ok, " ")
	}
	offset, ts, _, ok, err := p.MaxTimestamp(false)
	if err != nil {
		t.Fatal(err)
	}
	out += fmt.Sprint("max ", offset, ts, ok)
	for at := p.Marks().LogStart; at < p.Marks().LastStable; at += 7 {
		got, err := p.Read(ReadOptions{Offset: at, MaxBytes: 1 << 20, Committed: true})
		if err != nil {
			t.Fatal(err)
		}
		out += fmt.Sprint(at, got.Aborted)
		got.Release()
	}
	return out
}

type placed struct{ first, last int64 }

// everything reads all batches as a client does.
func everything(t *testing.T, p *Partition) (out []placed) {
	t.Helper()
	if err := p.Replay(func(b record.Batch) error {
		out = append(out, placed{b.BaseOffset(), b.LastOffset()})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// turnBit turns one bit of a file over and returns which byte it is in.
func turnBit(t *testing.T, rng *rand.Rand, fsys vfs.FS, path string) int64 {
	t.Helper()
	f, err := fsys.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() // in memory
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	at := rng.Int64N(size)
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1 << rng.IntN(8)
	if _, err := f.WriteAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	return at
}
