package isolation

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sort"
)

// AbortedTxn is the span that an aborted transaction covers on one partition.
type AbortedTxn struct {
	ProducerID  int64
	FirstOffset int64 // of its first record
	LastOffset  int64 // of its marker
	// LastStableOffset is what the last stable offset could be once this marker was written: every transaction whose marker
	// comes later begins there or later. A search may end at an entry whose LastStableOffset reaches the end of the range
	// that is looked for.
	LastStableOffset int64
}

// EntrySize is the size of an entry in a .txnindex file, in bytes: int16 version 0, then the fields of [AbortedTxn] as int64.
const EntrySize = 34

const entryVersion = 0

// ErrCorruptIndex says that bytes are no transaction index. The log is the truth: rebuild the index from it.
var ErrCorruptIndex = errors.New("isolation: corrupt transaction index")

// AppendEntry appends the bytes of an entry to dst.
func AppendEntry(dst []byte, a AbortedTxn) []byte {
	be := binary.BigEndian
	dst = be.AppendUint16(dst, entryVersion)
	dst = be.AppendUint64(dst, uint64(a.ProducerID))
	dst = be.AppendUint64(dst, uint64(a.FirstOffset))
	dst = be.AppendUint64(dst, uint64(a.LastOffset))
	return be.AppendUint64(dst, uint64(a.LastStableOffset))
}

// ParseIndex reads the entries of a .txnindex file and checks what [Collect] relies on: each marker stands behind the one
// before. Errors wrap [ErrCorruptIndex].
func ParseIndex(p []byte) ([]AbortedTxn, error) {
	if len(p)%EntrySize != 0 {
		return nil, fmt.Errorf("%w: %d bytes are no multiple of %d", ErrCorruptIndex, len(p), EntrySize)
	}
	out := make([]AbortedTxn, 0, len(p)/EntrySize)
	be := binary.BigEndian
	for ; len(p) > 0; p = p[EntrySize:] {
		if v := int16(be.Uint16(p)); v != entryVersion {
			return nil, fmt.Errorf("%w: entry %d has version %d, only %d is known", ErrCorruptIndex, len(out), v, entryVersion)
		}
		a := AbortedTxn{
			ProducerID: int64(be.Uint64(p[2:])), FirstOffset: int64(be.Uint64(p[10:])),
			LastOffset: int64(be.Uint64(p[18:])), LastStableOffset: int64(be.Uint64(p[26:])),
		}
		if a.FirstOffset < 0 || a.FirstOffset >= a.LastOffset {
			return nil, fmt.Errorf("%w: entry %d covers offsets %d to %d", ErrCorruptIndex, len(out), a.FirstOffset, a.LastOffset)
		}
		if n := len(out); n > 0 && out[n-1].LastOffset >= a.LastOffset {
			return nil, fmt.Errorf("%w: entry %d has its marker at offset %d, the one before at %d", ErrCorruptIndex, n, a.LastOffset, out[n-1].LastOffset)
		}
		out = append(out, a)
	}
	return out, nil
}

// Collect appends to dst the aborted transactions that a reader needs who is served the offsets from (inclusive) to
// (exclusive): those with records or a marker in the range. The indexes are those of the segments, from the segment of from
// on, in order. The answer is sorted by first offset, which clients rely on, and has no entry that the range does not
// touch.
func Collect(dst []AbortedTxn, from, to int64, indexes iter.Seq[[]AbortedTxn]) []AbortedTxn {
	start := len(dst)
	if from >= to {
		return dst
	}
	for entries := range indexes {
		var done bool
		if dst, done = collect(dst, from, to, entries); done {
			break
		}
	}
	found := dst[start:]
	slices.SortFunc(found, compareFirst)
	return dst
}

// compareFirst orders by first offset. Two transactions of one partition never share it.
func compareFirst(a, b AbortedTxn) int {
	switch {
	case a.FirstOffset < b.FirstOffset:
		return -1
	case a.FirstOffset > b.FirstOffset:
		return 1
	}
	return 0
}

// collect takes what one segment's index has. Entries stand in the order of their markers, so the first whose marker is not
// below from is found by halving.
func collect(dst []AbortedTxn, from, to int64, entries []AbortedTxn) (out []AbortedTxn, done bool) {
	i := sort.Search(len(entries), func(i int) bool { return entries[i].LastOffset >= from })
	for _, a := range entries[i:] {
		if a.FirstOffset < to {
			dst = append(dst, a)
		}
		if a.LastStableOffset >= to {
			return dst, true
		}
	}
	return dst, false
}
