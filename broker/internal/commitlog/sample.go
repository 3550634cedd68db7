package commitlog

import (
	"sync"

	"github.com/millrace/millrace/core/vfs"
)

// sample is every step-th entry of a finished segment's offset index, so that a look-up reads one short piece of the file, or
// nothing, and not an entry for each halving. It is made by the first look-up and bounded, whatever the size of the segment: a
// partition with a thousand segments is read as cheaply as one with ten. It never changes: the file does not either, and a
// segment whose index is built again has it in memory.
type sample struct {
	step    int
	entries []offsetEntry
	n       int // entries of the file
}

// sampleEntries bounds a sample: 2 KiB. A segment of 1 GiB has 1,024 entries for each of them.
const sampleEntries = 256

func takeSample(all []offsetEntry) *sample {
	m := &sample{step: max((len(all)+sampleEntries-1)/sampleEntries, 1), n: len(all)}
	m.entries = make([]offsetEntry, 0, (len(all)+m.step-1)/m.step)
	for i := 0; i < len(all); i += m.step {
		m.entries = append(m.entries, all[i])
	}
	return m
}

// sampleOf returns the segment's sample. An index whose entries do not rise is errBadIndex.
func (s *segment) sampleOf() (*sample, error) {
	if m := s.sample.Load(); m != nil {
		return m, nil
	}
	var m *sample
	err := s.withIndex(indexSuffix, offsetEntrySize, func(f vfs.File, n int) error {
		p := make([]byte, n*offsetEntrySize)
		if n > 0 {
			if _, err := f.ReadAt(p, 0); err != nil {
				return err
			}
		}
		all, ok := parseOffsets(p, s.size.Load())
		if !ok {
			return errBadIndex
		}
		m = takeSample(all)
		return nil
	})
	if err == nil {
		s.sample.Store(m)
	}
	return m, err
}

var indexPieces = sync.Pool{New: func() any { return new([]byte) }}

// searchOffsets finds the last entry for which le holds, which holds for a beginning of them; the zero entry when for none.
func (s *segment) searchOffsets(le func(offsetEntry) bool) (found offsetEntry, err error) {
	m, err := s.sampleOf()
	if err != nil {
		return found, err
	}
	at, _ := floor(len(m.entries), func(i int) (bool, error) { return le(m.entries[i]), nil }) // never fails
	if at < 0 {
		return found, nil
	}
	found = m.entries[at]
	if m.step == 1 {
		return found, nil
	}
	from := at*m.step + 1 // the entry of the sample is known
	count := min(m.step-1, m.n-from)
	if count <= 0 {
		return found, nil
	}
	err = s.withIndex(indexSuffix, offsetEntrySize, func(f vfs.File, n int) error {
		if n != m.n {
			return errBadIndex
		}
		piece := indexPieces.Get().(*[]byte)
		defer indexPieces.Put(piece)
		if cap(*piece) < count*offsetEntrySize {
			*piece = make([]byte, count*offsetEntrySize)
		}
		p := (*piece)[:count*offsetEntrySize]
		if _, err := f.ReadAt(p, int64(from)*offsetEntrySize); err != nil {
			return err
		}
		i, _ := floor(count, func(i int) (bool, error) { return le(parseOffsetEntry(p[i*offsetEntrySize:])), nil }) // never fails
		if i >= 0 {
			found = parseOffsetEntry(p[i*offsetEntrySize:])
		}
		return nil
	})
	return found, err
}
