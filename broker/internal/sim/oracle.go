package sim

import (
	"slices"
)

// topicName of an internal name that the oracle knows things about.
const (
	input  = "in"
	output = "out"
)

// partitions is how many each topic of clients has.
const partitions = 2

// owner is who had a transactional id last, and what it was told.
type owner struct {
	producer any
	pid      int64
	epoch    int16
}

// oracle knows what clients have done and been told, and is told what the logs hold. What does not fit is a violation.
type oracle struct {
	w     *world
	n     *node
	items []*item // by id
	// latest is the newest producer of each transactional id that was told that it is.
	latest map[string]owner
	txns   []*txn // that were asked to commit
	// dropped are topics whose deletion somebody has asked for: nothing is known of them any more.
	dropped map[string]bool
	// copies of each item of the input that are in the output, committed.
	copied map[*item]*item
}

func newOracle(w *world, n *node) *oracle {
	return &oracle{w: w, n: n, dropped: map[string]bool{}, latest: map[string]owner{}, copied: map[*item]*item{}}
}

// add makes a new item, of a transaction or not.
func (o *oracle) add(topic string, partition int32, t *txn, source *item) *item {
	i := &item{id: len(o.items), topic: topic, partition: partition, txn: t, source: source, acked: -1, at: -1}
	o.items = append(o.items, i)
	if t != nil {
		t.items = append(t.items, i)
	}
	return i
}

// initialised says that a producer was told that it owns its transactional id now. Whoever had it before may commit nothing any
// more that it had not asked for.
func (o *oracle) initialised(id string, pid int64, epoch int16, producer any) {
	have, any := o.latest[id]
	if id == "" || any && (have.pid > pid || have.pid == pid && have.epoch >= epoch) {
		return // it was told long ago, and hears of it only now
	}
	o.latest[id] = owner{producer, pid, epoch}
}

// asks says that a commit is about to be sent. An owner that was replaced may ask as it likes: it must get nothing.
func (o *oracle) asks(t *txn, producer any) {
	if o.latest[t.id].producer == producer && !t.asked {
		t.asked = true
		o.txns = append(o.txns, t)
	}
}

// told says what the broker has told about the end of a transaction.
func (o *oracle) told(t *txn, f fate) {
	if f == committed && !t.asked {
		o.w.fail("a producer of %s that was replaced is told that its transaction is committed", t.id)
	}
	if t.fate != undecided && t.fate != f {
		o.w.fail("%s is told that its transaction is %v, its markers say %v", t.id, f, t.fate)
	}
	if t.ended = f; f == committed {
		o.kept(t)
	}
}

// acknowledged says that the broker has acknowledged records: they must be in the log, where it says, for good; those that were
// not to wait for the disk as long as the power does not fail.
func (o *oracle) acknowledged(items []*item, offset int64, cuts int) {
	for n, i := range items {
		i.acked, i.cuts = offset+int64(n), cuts
		if i.at != i.acked && (!i.weak || i.at >= 0) {
			o.w.fail("record %d is acknowledged at %s-%d offset %d, the durable log has it at %d", i.id, i.topic, i.partition, i.acked, i.at)
			return
		}
	}
}

// appended says that the durable part of a log holds a record.
func (o *oracle) appended(topic string, partition int32, offset int64, id int, transactional bool) *item {
	if id < 0 || id >= len(o.items) {
		o.w.fail("%s-%d offset %d: record %d was never sent", topic, partition, offset, id)
		return nil
	}
	i := o.items[id]
	switch {
	case i.topic != topic || i.partition != partition:
		o.w.fail("%s-%d offset %d: record %d was sent to %s-%d", topic, partition, offset, id, i.topic, i.partition)
	case i.at >= 0:
		o.w.fail("%s-%d: record %d is at offset %d and at %d", topic, partition, id, i.at, offset)
	case transactional != (i.txn != nil):
		o.w.fail("%s-%d offset %d: record %d has lost its transaction", topic, partition, offset, id)
	}
	if i.at = offset; i.acked >= 0 && i.acked != offset {
		o.w.fail("%s-%d: record %d was acknowledged at offset %d and is at %d", topic, partition, id, i.acked, offset)
	}
	if i.txn == nil {
		o.decided(i, committed)
	}
	return i
}

// together checks that the records which a producer has open on a partition belong to one transaction.
func (o *oracle) together(open []*item, next *item) {
	if len(open) > 0 && open[0].txn != next.txn {
		o.w.fail("%s-%d: record %d of one transaction of %s is in another one, with record %d",
			next.topic, next.partition, next.id, next.txn.id, open[0].id)
	}
}

// decided says what a marker, or its absence, makes of a record.
func (o *oracle) decided(i *item, f fate) {
	i.fate = f
	if t := i.txn; t != nil {
		switch {
		case t.fate != undecided && t.fate != f:
			o.w.fail("%s: a transaction is torn: record %d is %v, others are %v", t.id, i.id, f, t.fate)
		case f == committed && !t.asked:
			o.w.fail("%s: record %d is committed, and nobody who may has asked for it", t.id, i.id)
		case t.ended != undecided && t.ended != f:
			o.w.fail("%s: record %d is %v, its producer was told %v", t.id, i.id, f, t.ended)
		}
		t.fate = f
	}
	if f == committed && i.source != nil {
		if twin := o.copied[i.source]; twin != nil {
			o.w.fail("record %d is copied twice: as %d and as %d", i.source.id, twin.id, i.id)
		}
		o.copied[i.source] = i
	}
}

// committedOf lists the records of a topic that readers of committed data see, by partition and offset.
func (o *oracle) committedOf(topic string) []*item {
	var out []*item
	for _, i := range o.items {
		if i.topic == topic && i.fate == committed {
			out = append(out, i)
		}
	}
	slices.SortFunc(out, func(a, b *item) int {
		if a.partition != b.partition {
			return int(a.partition - b.partition)
		}
		return int(a.at - b.at)
	})
	return out
}

// uncopied is a committed record of the input that is not in the output, nil if there is none.
func (o *oracle) uncopied() *item {
	for _, i := range o.items {
		if i.topic == input && i.fate == committed && o.copied[i] == nil {
			return i
		}
	}
	return nil
}

// final checks what must hold when everything has ended.
func (o *oracle) final() {
	for _, i := range o.items {
		switch t := i.txn; {
		case o.dropped[i.topic] || o.lost(i):
		case i.acked >= 0 && i.at != i.acked:
			o.w.fail("record %d was acknowledged at %s-%d offset %d and is not there", i.id, i.topic, i.partition, i.acked)
		case t != nil && t.ended == committed && i.fate != committed && (!i.weak || i.acked >= 0):
			o.w.fail("record %d of a committed transaction of %s is %v", i.id, t.id, i.fate)
		case i.source != nil && i.fate == committed && i.source.fate != committed:
			o.w.fail("record %d is a copy of record %d, which is %v", i.id, i.source.id, i.source.fate)
		}
	}
	last := [partitions]int64{} // offsets of the sources, per partition
	for _, i := range o.committedOf(output) {
		if i.source.at < last[i.partition] {
			o.w.fail("the copy of record %d is behind that of a later one", i.source.id)
		}
		last[i.partition] = i.source.at
	}
}

// positions are where the group is by its committed transactions, for each partition of the input.
func (o *oracle) positions() (at [partitions]int64) {
	for _, t := range o.txns {
		if t.moves > 0 && t.fate == committed {
			at[t.part] = max(at[t.part], t.moves)
		}
	}
	return at
}

// finished counts transactions that were committed.
func (o *oracle) finished() (n int) {
	for _, t := range o.txns {
		if t.fate == committed {
			n++
		}
	}
	return n
}
