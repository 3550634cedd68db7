package state

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
)

// sorter orders entries by key. Keys of one store are alike: what they all begin with
// is skipped, and the 16 bytes after it, as two numbers beside the entry, decide most
// comparisons without a look at the keys, which are all over the memory.
type sorter struct{ scratch []sortable }

type sortable struct {
	a, b uint64
	e    *entry
}

func (s *sorter) sort(entries []*entry) {
	if len(entries) < 2 {
		return
	}
	skip := sharedPrefix(entries)
	list := s.scratch[:0]
	for _, e := range entries {
		rest := e.key[skip:]
		x := sortable{e: e, a: leading(rest)}
		if len(rest) > 8 {
			x.b = leading(rest[8:])
		}
		list = append(list, x)
	}
	slices.SortFunc(list, func(x, y sortable) int {
		if x.a != y.a {
			return cmp.Compare(x.a, y.a)
		}
		if x.b != y.b {
			return cmp.Compare(x.b, y.b)
		}
		return strings.Compare(x.e.key, y.e.key)
	})
	for i := range list {
		entries[i] = list[i].e
	}
	clear(list) // keep the memory, not the entries
	s.scratch = list
}

// sharedPrefix is how many bytes all keys begin with.
func sharedPrefix(entries []*entry) int {
	first := entries[0].key
	n := len(first)
	for _, e := range entries[1:] {
		i := 0
		for n = min(n, len(e.key)); i < n && first[i] == e.key[i]; i++ {
		}
		n = i
	}
	return n
}

// leading is the first 8 bytes as a number that orders as they do, short ones filled
// up with zeros: who is equal by it has to be compared in full.
func leading(s string) uint64 {
	if len(s) >= 8 {
		return binary.BigEndian.Uint64([]byte(s[:8]))
	}
	var b [8]byte
	copy(b[:], s)
	return binary.BigEndian.Uint64(b[:])
}
