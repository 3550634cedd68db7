package isolation

import "github.com/millrace/millrace/core/record"

// Filter is the consumer's half: it tells which batches of a fetched range a read_committed reader must not see. Of the
// aborted transactions it uses what a fetch answers with, producer id and first offset, sorted by the latter. It takes the
// batches of one range in order, from its start; positions move past hidden batches all the same. The zero value hides only
// control batches.
type Filter struct {
	next    []AbortedTxn // whose first record is still to come
	aborted map[int64]bool
}

// NewFilter makes the filter of one fetched range. It keeps the list and does not change it.
func NewFilter(aborted []AbortedTxn) *Filter { return &Filter{next: aborted} }

// Hides tells whether the next batch is hidden: a control batch, or one of an aborted transaction. The error is that of a
// control batch that does not parse.
func (f *Filter) Hides(b record.Batch) (bool, error) {
	for len(f.next) > 0 && f.next[0].FirstOffset <= b.LastOffset() {
		if f.aborted == nil {
			f.aborted = make(map[int64]bool)
		}
		f.aborted[f.next[0].ProducerID] = true
		f.next = f.next[1:]
	}
	a := b.Attributes()
	if !a.Control() {
		return a.Transactional() && f.aborted[b.ProducerID()], nil
	}
	m, ok, err := b.Marker()
	if err != nil {
		return true, err
	}
	if ok && !m.Commit {
		delete(f.aborted, m.ProducerID)
	}
	return true, nil
}
