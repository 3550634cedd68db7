package compact

import (
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/txn/isolation"
)

// txns follows the transactions through a log that is read in order, and knows of each batch whether it is needed.
type txns struct {
	coming    []isolation.AbortedTxn // whose first record is still to come, by first offset
	aborted   map[int64]*abortedTxn  // under way, by producer
	committed map[int64]bool         // producers with a batch of a committed transaction and no marker yet
	// kept are the aborted transactions whose marker was read and of which a batch had been read: the index of what is written.
	kept []isolation.AbortedTxn
}

type abortedTxn struct {
	isolation.AbortedTxn
	seen bool // a batch of it was read
}

func newTxns(aborted []isolation.AbortedTxn) txns {
	return txns{coming: aborted, aborted: map[int64]*abortedTxn{}, committed: map[int64]bool{}}
}

// needless takes in the next batch. Of data it tells that it belongs to an aborted transaction, of a marker that no batch of its
// transaction has been read.
func (t *txns) needless(b record.Batch) (bool, error) {
	for len(t.coming) > 0 && t.coming[0].FirstOffset <= b.LastOffset() {
		a := t.coming[0]
		if t.coming = t.coming[1:]; t.aborted[a.ProducerID] == nil {
			t.aborted[a.ProducerID] = &abortedTxn{AbortedTxn: a}
		}
	}
	attr := b.Attributes()
	switch {
	case attr.Control():
		return t.marker(b)
	case !attr.Transactional():
		return false, nil
	}
	if a := t.aborted[b.ProducerID()]; a != nil {
		a.seen = true
		return true, nil
	}
	t.committed[b.ProducerID()] = true
	return false, nil
}

func (t *txns) marker(b record.Batch) (needless bool, err error) {
	if b.Count() == 0 {
		return true, nil // emptied by an earlier round
	}
	m, ok, err := b.Marker()
	switch {
	case err != nil || !ok: // not a marker: other control records are nobody's to remove
		return false, err
	case m.Commit:
		needless = !t.committed[m.ProducerID]
		delete(t.committed, m.ProducerID)
		return needless, nil
	}
	a := t.aborted[m.ProducerID]
	delete(t.aborted, m.ProducerID)
	if a == nil || !a.seen {
		return true, nil
	}
	t.kept = append(t.kept, a.AbortedTxn)
	return false, nil
}
