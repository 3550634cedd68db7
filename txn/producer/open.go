package producer

import (
	"cmp"
	"slices"
)

// openList is the open transactions in the order of their first offsets. Transactions begin in log order, so a new one belongs
// at the end and the list costs no search; the oldest is at the head.
type openList struct{ line }

func (l *openList) insert(e *entry) {
	at := l.tail
	for at != nil && at.txnFirstOffset > e.txnFirstOffset { // only when offsets come out of order, as none in a log do
		at = at.prev
	}
	l.after(at, e)
}

// fill makes the list of entries in any order; the list must be empty.
func (l *openList) fill(es []*entry) {
	slices.SortFunc(es, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.txnFirstOffset, b.txnFirstOffset), cmp.Compare(a.id, b.id))
	})
	for _, e := range es {
		l.insert(e)
	}
}
