package commitlog

import (
	"encoding/binary"
	"errors"
	"sync/atomic"

	"github.com/millrace/millrace/txn/isolation"
)

// errBadIndex says that an index file does not fit the log: the log is right, the index is built again.
var errBadIndex = errors.New("the index does not fit the log")

// table is a slice that one writer appends to while readers look into it without a lock. Entries never change once they are
// visible; growing copies them and leaves the old block to those who still read it.
type table[E any] struct{ block atomic.Pointer[block[E]] }

type block[E any] struct {
	entries []E          // full length; those from n on are not there yet
	n       atomic.Int64 // visible entries
}

// add appends; one caller at a time.
func (t *table[E]) add(e E) {
	b := t.block.Load()
	if b == nil || int(b.n.Load()) == len(b.entries) {
		grown := &block[E]{entries: make([]E, 2)}
		if b != nil {
			grown.entries = make([]E, 2*len(b.entries))
			copy(grown.entries, b.entries)
			grown.n.Store(b.n.Load())
		}
		b = grown
		defer t.block.Store(grown)
	}
	n := b.n.Load()
	b.entries[n] = e
	b.n.Store(n + 1)
}

// view is what is visible now.
func (t *table[E]) view() []E {
	b := t.block.Load()
	if b == nil {
		return nil
	}
	return b.entries[:b.n.Load()]
}

// offsetEntry says where a batch starts: the last offset of the batch, relative to the segment's base, and its position.
type offsetEntry struct{ relative, position int32 }

// timeEntry says that up to the batch with this last offset no timestamp was greater, and that it holds the timestamp.
type timeEntry struct {
	timestamp int64
	relative  int32
}

// Sizes of the entries in the files.
const (
	offsetEntrySize = 8
	timeEntrySize   = 12
)

func appendOffsetEntry(dst []byte, e offsetEntry) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(e.relative))
	return binary.BigEndian.AppendUint32(dst, uint32(e.position))
}

func parseOffsetEntry(p []byte) offsetEntry {
	return offsetEntry{int32(binary.BigEndian.Uint32(p)), int32(binary.BigEndian.Uint32(p[4:]))}
}

func appendTimeEntry(dst []byte, e timeEntry) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(e.timestamp))
	return binary.BigEndian.AppendUint32(dst, uint32(e.relative))
}

func parseTimeEntry(p []byte) timeEntry {
	return timeEntry{int64(binary.BigEndian.Uint64(p)), int32(binary.BigEndian.Uint32(p[8:]))}
}

// parseOffsets reads a whole file of offset entries; ok is false when they do not rise or point beyond size.
func parseOffsets(p []byte, size int64) (out []offsetEntry, ok bool) {
	if len(p)%offsetEntrySize != 0 {
		return nil, false
	}
	for ; len(p) > 0; p = p[offsetEntrySize:] {
		e := parseOffsetEntry(p)
		if n := len(out); e.relative < 0 || e.position < 0 || int64(e.position) >= size ||
			n > 0 && (out[n-1].relative >= e.relative || out[n-1].position >= e.position) {
			return nil, false
		}
		out = append(out, e)
	}
	return out, true
}

// parseTimes reads a whole file of time entries; ok is false when they do not rise.
func parseTimes(p []byte) (out []timeEntry, ok bool) {
	if len(p)%timeEntrySize != 0 {
		return nil, false
	}
	for ; len(p) > 0; p = p[timeEntrySize:] {
		e := parseTimeEntry(p)
		if n := len(out); e.relative < 0 || n > 0 && (out[n-1].timestamp >= e.timestamp || out[n-1].relative > e.relative) {
			return nil, false
		}
		out = append(out, e)
	}
	return out, true
}

// memIndex is the indexes of a segment whose index files are not complete.
type memIndex struct {
	offsets table[offsetEntry]
	times   table[timeEntry]
	txns    table[isolation.AbortedTxn]
}

// floor is the last of n entries for which le holds, which holds for a beginning of them; -1 if for none.
func floor(n int, le func(i int) (bool, error)) (int, error) {
	low, high := -1, n // le(low) holds, le(high) does not
	for high-low > 1 {
		mid := int(uint(low+high) >> 1)
		ok, err := le(mid)
		if err != nil {
			return -1, err
		}
		if ok {
			low = mid
		} else {
			high = mid
		}
	}
	return low, nil
}
