package producer

import (
	"cmp"
	"slices"
)

// quietList is the producers without an open transaction in the order of their last activity. So those to expire are at the
// head, and looking for them costs nothing where there are none.
type quietList struct{ line }

func (l *quietList) push(e *entry) { l.after(l.tail, e) }

// touch moves e, which is in the list, to the end.
func (l *quietList) touch(e *entry) {
	if l.tail != e {
		l.remove(e)
		l.push(e)
	}
}

// fill makes the list of entries in any order; the list must be empty.
func (l *quietList) fill(es []*entry) {
	slices.SortFunc(es, func(a, b *entry) int { return cmp.Or(cmp.Compare(a.seenMs, b.seenMs), cmp.Compare(a.id, b.id)) })
	for _, e := range es {
		l.push(e)
	}
}
