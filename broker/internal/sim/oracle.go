package sim

import (
	"slices"
)

// item is one record that a client wants in a topic, known by its number. Numbers are never used twice.
type item struct {
	id        int
	topic     string
	partition int32
	txn       *txn // nil outside of transactions
	source    *item
	// acked is the offset that the broker has acknowledged, -1 for none; at is where the log has it, -1 for nowhere.
	acked, at int64
	fate      fate // of the record in the log
}

// fate is what readers of committed data are told of a record.
type fate int8

const (
	undecided fate = iota
	committed
	aborted
)

func (f fate) String() string { return [...]string{"undecided", "committed", "aborted"}[f] }

// txn is one transaction of a client, as its client sees it.
type txn struct {
	id    string // transactional id
	items []*item
	// asked says that a commit was sent while its producer was the newest of its id. Before that it must never be committed.
	asked bool
	// ended is what the client was told.
	ended fate
	fate  fate // what markers say
	// moves are the offsets that it commits to a group, by partition of the input.
	moves map[int32]int64
}

// topicName of an internal name that the oracle knows things about.
const (
	input  = "in"
	output = "out"
)

// oracle knows what clients have done and been told, and is told what the logs hold. What does not fit is a violation.
type oracle struct {
	w     *world
	items []*item // by id
	// latest is the newest producer of each transactional id that was told that it is.
	latest map[string]any
	// copies of each item of the input that are in the output, committed.
	copied map[*item]*item
}

func newOracle(w *world) *oracle {
	return &oracle{w: w, latest: map[string]any{}, copied: map[*item]*item{}}
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
func (o *oracle) initialised(id string, producer any) {
	if id != "" {
		o.latest[id] = producer
	}
}

// asks says that a commit is about to be sent. An owner that was replaced may ask as it likes: it must get nothing.
func (o *oracle) asks(t *txn, producer any) {
	if o.latest[t.id] == producer {
		t.asked = true
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
	t.ended = f
}

// acknowledged says that the broker has acknowledged records: they must be in the log, where it says, for good.
func (o *oracle) acknowledged(items []*item, offset int64) {
	for n, i := range items {
		i.acked = offset + int64(n)
		if i.at != i.acked {
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
	i.at = offset
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
