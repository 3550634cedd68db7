package producer

import (
	"iter"
	"slices"
)

// All gives every producer in the order of the ids.
func (t *Table) All() iter.Seq[State] {
	return func(yield func(State) bool) {
		for _, e := range t.sorted() {
			if !yield(e.state()) {
				return
			}
		}
	}
}

// States appends every producer, in no order: for a caller that holds a lock and sorts without it.
func (t *Table) States(dst []State) []State {
	dst = slices.Grow(dst, len(t.entries))
	for _, e := range t.entries {
		dst = append(dst, e.state())
	}
	return dst
}

func (e *entry) state() State {
	return State{
		ProducerID: e.id, Epoch: e.epoch, LastSequence: e.lastSequence(), LastTimestampMs: e.timestampMs,
		CoordinatorEpoch: e.coordinatorEpoch, TxnFirstOffset: e.txnFirstOffset,
	}
}
