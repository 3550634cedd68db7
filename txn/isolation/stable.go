package isolation

// Tracker computes the last stable offset of one partition: the offset up to which everything is decided and the decision is
// durable. The zero value is that of a log without transactions. Not safe for concurrent use: the partition's lock owns it.
//
// Which transactions are open is the producer table's knowledge and comes in as an argument. The tracker holds those that
// have their marker, while that marker is not below the high watermark: a reader must not see the records before the marker,
// because a marker above the high watermark can still be lost, and with it the decision.
type Tracker struct {
	// waiting is in the order of the markers. Only entries that can still be the minimum are kept: one with a later marker
	// and an earlier first offset stands for all before it. So first offsets rise along the queue, its head is the least,
	// and each transaction costs a constant on average.
	waiting []decided
	head    int
}

type decided struct{ first, marker int64 }

// Decided notes a transaction whose marker (commit or abort) was appended at offset marker. Markers come in log order.
func (t *Tracker) Decided(first, marker int64) {
	for len(t.waiting) > t.head && t.waiting[len(t.waiting)-1].first >= first {
		t.waiting = t.waiting[:len(t.waiting)-1]
	}
	if t.head > 0 && len(t.waiting) == cap(t.waiting) { // make room at the front before growing
		n := copy(t.waiting, t.waiting[t.head:])
		t.waiting, t.head = t.waiting[:n], 0
	}
	t.waiting = append(t.waiting, decided{first, marker})
}

// Stable is the last stable offset under the given high watermark and, if anyOpen, with the lowest first offset of all open
// transactions. Calls must not take the high watermark back.
func (t *Tracker) Stable(highWatermark, firstOpen int64, anyOpen bool) int64 {
	for t.head < len(t.waiting) && t.waiting[t.head].marker < highWatermark {
		t.head++
	}
	if t.head == len(t.waiting) {
		t.waiting, t.head = t.waiting[:0], 0
	}
	stable := highWatermark
	if anyOpen {
		stable = min(stable, firstOpen)
	}
	if t.head < len(t.waiting) {
		stable = min(stable, t.waiting[t.head].first)
	}
	return stable
}

// Reset forgets everything, for a log that is truncated and replayed.
func (t *Tracker) Reset() { *t = Tracker{} }

// EntryFor makes the index entry of a transaction that is aborted by a marker at the given offset. firstOpen, if anyOpen, is
// the lowest first offset of the transactions that stay open.
func EntryFor(producerID, firstOffset, marker, firstOpen int64, anyOpen bool) AbortedTxn {
	stable := marker + 1
	if anyOpen {
		stable = firstOpen
	}
	return AbortedTxn{ProducerID: producerID, FirstOffset: firstOffset, LastOffset: marker, LastStableOffset: stable}
}
