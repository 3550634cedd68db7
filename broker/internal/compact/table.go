package compact

import (
	"crypto/sha256"
	"encoding/binary"
)

// Table maps keys to offsets in bounded memory: 24 bytes a slot, whatever the keys' lengths. A key is known by the first 128 bits
// of its SHA-256, so no two keys that anybody can find are taken for one. (A mistaken identity would delete the last record of a
// key. Kafka uses MD5, for which such keys can be made.) The zero value is an empty table without room.
type Table struct {
	slots []slot // a power of two of them, or none
	used  int
	most  int // keys
}

// slot is a key's; next is its offset plus one, 0 when the slot is free.
type slot struct {
	hash [2]uint64
	next int64
}

const (
	slotBytes = 24
	// firstSlots is what a table begins with; it doubles as keys come.
	firstSlots = 1 << 10
	// MinTableBytes is the least size that a Table can be limited to.
	MinTableBytes = firstSlots * slotBytes
)

// NewTable makes a table that takes at most so many bytes, and half as much again for the moments when it grows.
func NewTable(bytes int) *Table {
	slots := firstSlots
	for 2*slots*slotBytes <= bytes {
		slots *= 2
	}
	return &Table{most: room(slots)}
}

// room is how many keys so many slots take: a probe then meets few strangers.
func room(slots int) int { return slots / 8 * 7 }

// Put notes that a record of the key stands at an offset, which rises from call to call. It is false when the key is new and the
// table is full.
func (t *Table) Put(key []byte, offset int64) bool {
	h := hash(key)
	if s := t.find(h); s != nil && s.next > 0 {
		s.next = offset + 1
		return true
	}
	if t.used >= t.most {
		return false
	}
	if t.used >= room(len(t.slots)) {
		t.grow()
	}
	*t.find(h) = slot{h, offset + 1}
	t.used++
	return true
}

// Get is the last offset that was Put for the key, -1 without one.
func (t *Table) Get(key []byte) int64 {
	if s := t.find(hash(key)); s != nil {
		return s.next - 1
	}
	return -1
}

// Len is the number of keys.
func (t *Table) Len() int { return t.used }

// find is the key's slot, or the free one where it belongs; nil in a table without slots.
func (t *Table) find(h [2]uint64) *slot {
	mask := uint64(len(t.slots) - 1)
	if mask == ^uint64(0) {
		return nil
	}
	for i := h[0] & mask; ; i = (i + 1) & mask {
		if s := &t.slots[i]; s.next == 0 || s.hash == h {
			return s
		}
	}
}

func (t *Table) grow() {
	old := t.slots
	t.slots = make([]slot, max(firstSlots, 2*len(old)))
	for _, s := range old {
		if s.next > 0 {
			*t.find(s.hash) = s
		}
	}
}

func hash(key []byte) [2]uint64 {
	sum := sha256.Sum256(key)
	return [2]uint64{binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])}
}
