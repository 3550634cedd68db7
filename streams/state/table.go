package state

import (
	"bytes"
	"math/bits"
)

// kind says what one side of an entry means.
type kind uint8

const (
	// unknown: this side says nothing; ask below.
	unknown kind = iota
	// present: the key has the value beside the kind.
	present
	// deleted: the key has no value.
	deleted
	// forgotten, on the open side only: created and expired within the open
	// transaction; read as unknown, logged not at all.
	forgotten
)

// version is a value buffer and what it means. The buffer is reused by later
// writes, so a key that is written again and again costs no allocation.
type version struct {
	val  []byte
	kind kind
}

// value returns the bytes to hand out: nil only where there is no value.
func (v *version) value() []byte {
	if v.kind != present {
		return nil
	}
	if v.val == nil {
		return []byte{}
	}
	return v.val
}

// entry is one key of a table, with its committed version and the one of the
// open transaction. The memory image uses the committed side alone.
type entry struct {
	key       string
	open      version
	committed version
	dirty     bool // the committed side is not yet in the image
	fresh     bool // the image has no row of this key
	next      []*entry
}

// maxLevel bounds the height of the skip list: with one level in four nodes it
// is good for 4^12 entries.
const maxLevel = 12

// table is an ordered map in memory: a hash map for point access, and a skip
// list for order. Entries enter the skip list only when somebody asks for
// order, so a task that never ranges pays for one sort per commit and nothing
// per record. Entries are never removed one by one except by remove.
type table struct {
	byKey   map[string]*entry // empty where there are windows
	head    [maxLevel]*entry
	pending []*entry         // in byKey, not yet in the skip list
	last    *entry           // the one that was asked for last: a read is often followed by a write
	windows *windows[*entry] // entries by window, where rows begin with one; else nil
	bytes   int              // keys, values and a flat charge per entry
	seed    uint64           // of the level generator; any fixed start does
}

// entryCost is the flat charge per entry, so that many tiny rows count too.
const entryCost = 128

func newTable() *table {
	return &table{byKey: make(map[string]*entry), seed: 0x9e3779b97f4a7c15}
}

func (t *table) get(key []byte) *entry {
	if t.last != nil && t.last.key == string(key) {
		return t.last
	}
	var e *entry
	if t.windows != nil {
		e, _ = t.windows.get(key)
	} else {
		e = t.byKey[string(key)]
	}
	if e != nil {
		t.last = e
	}
	return e
}

// at returns the entry of key, a new one with both sides unknown if need be.
func (t *table) at(key []byte) *entry {
	e := t.get(key)
	if e == nil {
		e = &entry{key: string(key)}
		if t.windows != nil {
			t.windows.add(e.key, e)
		} else {
			t.byKey[e.key] = e
		}
		t.pending = append(t.pending, e)
		t.bytes += len(key) + entryCost
		t.last = e
	}
	return e
}

// write sets one side of an entry of this table. The value is copied.
func (t *table) write(v *version, val []byte, k kind) {
	t.bytes += len(val) - len(v.val)
	v.val = append(v.val[:0], val...)
	v.kind = k
}

// remove takes an entry out. It indexes first, so it is meant for tables that
// are ordered anyway, and not for those with windows.
func (t *table) remove(key []byte) {
	e := t.byKey[string(key)]
	if e == nil {
		return
	}
	t.index()
	var prev [maxLevel]*entry
	t.findPrev(e.key, &prev)
	for l := range e.next {
		if prev[l] == nil {
			t.head[l] = e.next[l]
		} else {
			prev[l].next[l] = e.next[l]
		}
	}
	t.last = nil
	t.bytes -= len(e.key) + len(e.open.val) + len(e.committed.val) + entryCost
	delete(t.byKey, e.key)
}

// reset empties the table and keeps the memory of the map.
func (t *table) reset() {
	clear(t.byKey)
	clear(t.pending)
	t.pending = t.pending[:0]
	t.head = [maxLevel]*entry{}
	t.last, t.bytes = nil, 0
	if t.windows != nil {
		t.windows.reset()
	}
}

// index moves every pending entry into the skip list.
func (t *table) index() {
	for i, e := range t.pending {
		t.insert(e)
		t.pending[i] = nil
	}
	t.pending = t.pending[:0]
}

func (t *table) insert(e *entry) {
	var prev [maxLevel]*entry
	t.findPrev(e.key, &prev)
	e.next = make([]*entry, t.level())
	for l := range e.next {
		if prev[l] == nil {
			e.next[l], t.head[l] = t.head[l], e
		} else {
			e.next[l], prev[l].next[l] = prev[l].next[l], e
		}
	}
}

// level draws a height: one more level with probability 1/4 each.
func (t *table) level() int {
	t.seed ^= t.seed << 13
	t.seed ^= t.seed >> 7
	t.seed ^= t.seed << 17
	return 1 + min(bits.TrailingZeros64(t.seed)/2, maxLevel-1)
}

// findPrev fills prev with the last entry below key on each level, nil for the
// head, and returns the first entry that is not below key.
func (t *table) findPrev(key string, prev *[maxLevel]*entry) *entry {
	var at *entry
	for l := maxLevel - 1; l >= 0; l-- {
		next := t.head[l]
		if at != nil {
			next = at.next[l]
		}
		for next != nil && next.key < key {
			at, next = next, next.next[l]
		}
		prev[l] = at
	}
	return t.after(at)
}

// after returns the entry that follows e in key order; nil e is the head.
func (t *table) after(e *entry) *entry {
	if e == nil {
		return t.head[0]
	}
	return e.next[0]
}

// seek returns the first entry with key >= from. The table must be indexed.
func (t *table) seek(from []byte) *entry {
	if len(from) == 0 {
		return t.head[0]
	}
	var prev [maxLevel]*entry
	return t.findPrev(string(from), &prev)
}

// inRange reports key < to, where nil is the end.
func inRange(key string, to []byte) bool {
	return to == nil || key < string(to)
}

// emptyRange reports a range that cannot hold a key.
func emptyRange(from, to []byte) bool {
	return to != nil && bytes.Compare(from, to) >= 0
}
