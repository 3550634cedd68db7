package producer

import (
	"cmp"
	"slices"
)

// openList is the open transactions in the order of their first offsets, linked through the entries. Transactions begin in
// log order, so a new one belongs at the end and the list costs no search; the oldest is at the head.
type openList struct{ head, tail *entry }

func (l *openList) insert(e *entry) {
	at := l.tail
	for at != nil && at.txnFirstOffset > e.txnFirstOffset { // only when offsets come out of order, as none in a log do
		at = at.prev
	}
	e.prev = at
	if at == nil {
		e.next, l.head = l.head, e
	} else {
		e.next, at.next = at.next, e
	}
	if e.next == nil {
		l.tail = e
	} else {
		e.next.prev = e
	}
}

func (l *openList) remove(e *entry) {
	if e.prev == nil {
		l.head = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		l.tail = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
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
