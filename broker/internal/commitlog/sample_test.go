package commitlog

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/millrace/millrace/core/vfs"
)

// TestSampledIndexFindsWhatThereIs compares look-ups in index files of many lengths with a plain search.
func TestSampledIndexFindsWhatThereIs(t *testing.T) {
	t.Parallel()
	const seed = 11
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, n := range []int{0, 1, 2, sampleEntries - 1, sampleEntries, sampleEntries + 1, 2*sampleEntries - 1, 2 * sampleEntries, 5000, 70_000} {
		var all []offsetEntry
		var file []byte
		e := offsetEntry{}
		for range n {
			e.relative += 1 + rng.Int32N(9)
			e.position += 1 + rng.Int32N(5000)
			all = append(all, e)
			file = appendOffsetEntry(file, e)
		}
		s := indexed(t, file, int64(e.position)+1)
		for range 2000 {
			want, relative := offsetEntry{}, rng.Int32N(e.relative+20)
			i, _ := floor(n, func(i int) (bool, error) { return all[i].relative <= relative, nil })
			if i >= 0 {
				want = all[i]
			}
			if got, err := s.floorOffset(int64(relative)); got != want || err != nil {
				t.Fatalf("seed %d, %d entries, offset %d: %+v and %v, want %+v", seed, n, relative, got, err, want)
			}
			want = offsetEntry{}
			pos := rng.Int64N(int64(e.position) + 20)
			i, _ = floor(n, func(i int) (bool, error) { return int64(all[i].position) <= pos, nil })
			if i >= 0 {
				want = all[i]
			}
			if got, err := s.floorPosition(pos); got != want || err != nil {
				t.Fatalf("seed %d, %d entries, position %d: %+v and %v, want %+v", seed, n, pos, got, err, want)
			}
		}
	}
}

// indexed is a finished segment with such an offset index.
func indexed(t *testing.T, index []byte, size int64) *segment {
	t.Helper()
	fs := vfs.NewMem()
	if err := fs.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	s := newSegment(&place{fs, "d", unbounded()}, 0)
	s.size.Store(size)
	if err := vfs.WriteFile(fs, s.path(indexSuffix), index, true); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSampledIndexThatDoesNotFit: entries that fall, and a file that changes its length behind the sample.
func TestSampledIndexThatDoesNotFit(t *testing.T) {
	t.Parallel()
	var file []byte
	for i := range int32(1000) {
		file = appendOffsetEntry(file, offsetEntry{i + 1, i * 10})
	}
	falls := append([]byte(nil), file...)
	falls[500*offsetEntrySize] ^= 0x40
	if _, err := indexed(t, falls, 1<<20).floorOffset(3); !errors.Is(err, errBadIndex) {
		t.Errorf("an index that falls gives %v", err)
	}
	s := indexed(t, file, 1<<20)
	if e, err := s.floorOffset(3); e.relative != 3 || err != nil {
		t.Fatalf("%+v, %v", e, err)
	}
	if err := vfs.WriteFile(s.fs, s.path(indexSuffix), file[:len(file)-offsetEntrySize], true); err != nil {
		t.Fatal(err)
	}
	if _, err := s.floorOffset(3); !errors.Is(err, errBadIndex) {
		t.Errorf("an index that got shorter gives %v", err)
	}
}

// BenchmarkFloorOffset looks into an index of a segment of 1 GiB.
func BenchmarkFloorOffset(b *testing.B) {
	var file []byte
	for i := range int32(1 << 18) {
		file = appendOffsetEntry(file, offsetEntry{i + 1, i * 4096})
	}
	fs, dir := vfs.OS(), b.TempDir()
	s := newSegment(&place{fs, dir, unbounded()}, 0)
	s.size.Store(1 << 30)
	if err := vfs.WriteFile(fs, s.path(indexSuffix), file, false); err != nil {
		b.Fatal(err)
	}
	for i := int64(0); b.Loop(); i = (i + 7919) % (1 << 18) {
		if _, err := s.floorOffset(i); err != nil {
			b.Fatal(err)
		}
	}
}
