package producer

// shrinkFrom is the number of producers from which on it is worth to give memory back.
const shrinkFrom = 1024

// Expire forgets producers that have been quiet for afterMs or longer, up to limit of them so that whoever holds a lock need
// not hold it for long, and tells how many. One with an open transaction stays, however old: its marker is still to come, and
// forgetting it would let the last stable offset pass undecided records. A marker counts as activity (KAFKA-9144). Where the
// clock was set back, those that were seen before that wait for those seen after it.
func (t *Table) Expire(nowMs, afterMs int64, limit int) int {
	n := 0
	for e := t.quiet.head; e != nil && n < limit && nowMs-e.seenMs >= afterMs; e = t.quiet.head {
		t.quiet.remove(e)
		delete(t.entries, e.id)
		n++
	}
	if t.peak >= shrinkFrom && len(t.entries) <= t.peak/8 {
		t.shrink()
	}
	return n
}

// shrink gives the memory of a map back that was once much larger.
func (t *Table) shrink() {
	kept := make(map[int64]*entry, len(t.entries))
	for id, e := range t.entries {
		kept[id] = e
	}
	t.entries, t.peak = kept, len(kept)
}
