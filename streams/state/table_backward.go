package state

// below returns the last entry with key < to, where nil is the end. The table must
// be indexed.
func (t *table) below(to []byte) *entry {
	if to == nil {
		var at *entry
		for l := maxLevel - 1; l >= 0; l-- {
			for next := t.next(at, l); next != nil; next = t.next(at, l) {
				at = next
			}
		}
		return at
	}
	return t.before(string(to))
}

// before returns the last entry with a smaller key. The list has no links back, so
// each step down is a search, which is cheaper than a second link in each entry.
func (t *table) before(key string) *entry {
	var prev [maxLevel]*entry
	t.findPrev(key, &prev)
	return prev[0]
}

// next follows a level from an entry, nil being the head.
func (t *table) next(e *entry, level int) *entry {
	if e == nil {
		return t.head[level]
	}
	return e.next[level]
}
