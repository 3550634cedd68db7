package producer

import "slices"

// Batch is a data batch of an idempotent producer, as the partition sees it.
type Batch struct {
	ProducerID                 int64
	Epoch                      int16
	BaseSequence, LastSequence int32
	BaseOffset, LastOffset     int64
	// TimestampMs is the batch's max timestamp: what a duplicate is answered with, and what DescribeProducers shows.
	TimestampMs int64
	// SeenMs is the broker's clock when the batch was appended or, in a recovery, replayed: what expiry counts from. Records
	// may be dated decades back, so their own time would forget a producer that is at work. 0 is unknown: TimestampMs.
	SeenMs        int64
	Transactional bool
}

// Duplicate is where a batch stands that arrived a second time.
type Duplicate struct {
	BaseOffset, LastOffset int64
	TimestampMs            int64
}

// Marker is the end of a transaction on this partition.
type Marker struct {
	ProducerID       int64
	Epoch            int16
	CoordinatorEpoch int32
	Commit           bool
	// TxnVersion is the transaction version that the coordinator ended the transaction under: 2 when the marker must carry
	// a raised epoch.
	TxnVersion int16
}

// State is what is known about one producer.
type State struct {
	ProducerID       int64
	Epoch            int16
	LastSequence     int32 // -1 when it has written nothing under its epoch
	LastTimestampMs  int64 // of its last batch or marker
	CoordinatorEpoch int32 // of its last marker, -1 without one
	TxnFirstOffset   int64 // of its open transaction, -1 without one
}

// Table is the producer state of one partition. The zero value is an empty one. It is not safe for concurrent use: the
// partition's lock owns it.
type Table struct {
	entries map[int64]*entry
	open    openList
	quiet   quietList // all that are not in open
	peak    int       // most entries since the map was made
}

func (t *Table) get(id int64) *entry { return t.entries[id] }

func (t *Table) getOrAdd(id int64, epoch int16) *entry {
	if e := t.entries[id]; e != nil {
		return e
	}
	if t.entries == nil {
		t.entries = make(map[int64]*entry)
	}
	e := &entry{id: id, epoch: epoch, markerEpoch: noMarker, coordinatorEpoch: -1, txnFirstOffset: -1}
	t.entries[id] = e
	t.peak = max(t.peak, len(t.entries))
	t.quiet.push(e)
	return e
}

// Apply takes in a data batch that is in the log now: one that Check let pass, or one that is replayed. It believes the log
// and checks nothing.
func (t *Table) Apply(b Batch) {
	e := t.getOrAdd(b.ProducerID, b.Epoch)
	e.setEpoch(b.Epoch)
	e.push(seen{
		lastSequence: b.LastSequence, offsetDelta: int32(b.LastOffset - b.BaseOffset),
		lastOffset: b.LastOffset, timestampMs: b.TimestampMs,
	})
	e.timestampMs, e.seenMs = b.TimestampMs, b.SeenMs
	if e.seenMs == 0 {
		e.seenMs = b.TimestampMs
	}
	switch {
	case e.txnFirstOffset >= 0:
	case b.Transactional:
		e.txnFirstOffset = b.BaseOffset
		t.quiet.remove(e)
		t.open.insert(e)
	default:
		t.quiet.touch(e)
	}
}

// ApplyMarker takes in a marker that is in the log now, at the given offset and with the broker's time. It tells where the
// transaction began that it ended; hadTxn is false when nothing was open here, as after a transaction that sent no data to
// this partition: then there is nothing to list as aborted.
func (t *Table) ApplyMarker(m Marker, offset, timestampMs int64) (firstOffset int64, hadTxn bool) {
	e := t.getOrAdd(m.ProducerID, m.Epoch)
	e.setEpoch(m.Epoch)
	e.coordinatorEpoch = m.CoordinatorEpoch
	e.markerEpoch, e.markerResult = m.Epoch, resultAbort
	if m.Commit {
		e.markerResult = resultCommit
	}
	e.timestampMs, e.seenMs = timestampMs, timestampMs
	if e.txnFirstOffset < 0 {
		t.quiet.touch(e)
		return -1, false
	}
	firstOffset = e.txnFirstOffset
	t.close(e)
	return firstOffset, true
}

func (t *Table) close(e *entry) {
	t.open.remove(e)
	e.txnFirstOffset = -1
	t.quiet.push(e)
}

// Open tells whether exactly this producer, under exactly this epoch, has a transaction open here, and where it began.
func (t *Table) Open(id int64, epoch int16) (firstOffset int64, open bool) {
	e := t.get(id)
	if e == nil || e.epoch != epoch || e.txnFirstOffset < 0 {
		return -1, false
	}
	return e.txnFirstOffset, true
}

// Knows tells whether the table has an entry for a producer.
func (t *Table) Knows(id int64) bool { return t.get(id) != nil }

// FirstOpen is the lowest first offset of all open transactions: what holds the last stable offset back. It costs no search.
func (t *Table) FirstOpen() (offset int64, ok bool) {
	if t.open.head == nil {
		return 0, false
	}
	return t.open.head.txnFirstOffset, true
}

// Len is the number of producers known.
func (t *Table) Len() int { return len(t.entries) }

func (t *Table) sorted() []*entry {
	es := make([]*entry, 0, len(t.entries))
	for _, e := range t.entries {
		es = append(es, e)
	}
	slices.SortFunc(es, func(a, b *entry) int {
		if a.id < b.id {
			return -1
		}
		return 1
	})
	return es
}
