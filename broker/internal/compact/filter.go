package compact

import (
	"math"

	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/txn/isolation"
	"github.com/millrace/millrace/txn/producer"
)

// Round is what a Filter goes by.
type Round struct {
	NowMs             int64
	DeleteRetentionMs int64
	Table             *Table
	// Indexed is the offset behind what the table knows.
	Indexed int64
	// End is the end of the part of the log that is compacted; the batch that ends there stays.
	End     int64
	Last    map[int64]producer.Last // of the producers that are known
	Aborted []isolation.AbortedTxn  // that touch the log below End, by first offset
}

// Filter gives back what a round leaves of the batches of a log, from the first one on.
type Filter struct {
	round   Round
	txns    txns
	rewrite record.Rewriter
	counts  Counts
	horizon int64
	// Of the batch at hand.
	expired    bool
	tombstones int
}

// Counts says what a filter has seen and left.
type Counts struct {
	BatchesIn, BatchesOut int64
	BytesIn, BytesOut     int64
	RecordsIn, RecordsOut int64
	Keyless               int64 // records that had to go because they have no key
}

// NewFilter begins a round.
func NewFilter(r Round) *Filter {
	return &Filter{round: r, txns: newTxns(r.Aborted), horizon: math.MaxInt64}
}

// Counts is what it came to so far.
func (f *Filter) Counts() Counts { return f.counts }

// Horizon is the earliest time at which something that was left only for its delete horizon may go; ok is false without one.
func (f *Filter) Horizon() (ms int64, ok bool) { return f.horizon, f.horizon < math.MaxInt64 }

// TakeAborted gives the index entries of the aborted transactions whose markers were among the batches since the last call.
func (f *Filter) TakeAborted() []isolation.AbortedTxn {
	out := f.txns.kept
	f.txns.kept = nil
	return out
}

// Apply takes the next batch and gives back what stays of it: the batch itself, another one that is valid until the next call, or
// nil.
func (f *Filter) Apply(b record.Batch) (record.Batch, error) {
	f.counts.BatchesIn++
	f.counts.BytesIn += int64(len(b))
	f.counts.RecordsIn += int64(b.Count())
	out, err := f.apply(b)
	if err != nil || out == nil {
		return nil, err
	}
	f.counts.BatchesOut++
	f.counts.BytesOut += int64(len(out))
	f.counts.RecordsOut += int64(out.Count())
	return out, nil
}

func (f *Filter) apply(b record.Batch) (record.Batch, error) {
	needless, err := f.txns.needless(b)
	if err != nil {
		return nil, err
	}
	attr := b.Attributes()
	f.expired = attr.DeleteHorizon() && b.BaseTimestamp() <= f.round.NowMs
	f.tombstones = 0
	left := 0
	switch {
	case needless && (f.expired || !attr.Control()):
	case attr.Control():
		left = int(b.Count())
	default:
		if left, err = f.rewrite.Keep(b, f.stays); err != nil {
			return nil, err
		}
	}
	if left == 0 {
		switch {
		case !f.last(b):
			return nil, nil
		case b.Count() == 0:
			return b, nil
		}
		return f.rewrite.Empty(b), nil
	}
	return f.write(b, left, f.tombstones > 0 || needless)
}

// write makes the batch of the records that are left. waits says that some of them wait for a delete horizon.
func (f *Filter) write(b record.Batch, left int, waits bool) (record.Batch, error) {
	attr, horizon := b.Attributes(), int64(record.NoTimestamp)
	if attr.DeleteHorizon() {
		horizon = b.BaseTimestamp()
	}
	fresh := waits && !attr.DeleteHorizon()
	if fresh {
		horizon = add(f.round.NowMs, f.round.DeleteRetentionMs)
	}
	if waits && !f.expired {
		f.horizon = min(f.horizon, horizon)
	}
	if left == int(b.Count()) && !fresh {
		return b, nil
	}
	if attr.Control() {
		if _, err := f.rewrite.Keep(b, func(*record.Record) bool { return true }); err != nil {
			return nil, err
		}
	}
	return f.rewrite.Batch(b, horizon)
}

// stays tells whether a record of the batch at hand does.
func (f *Filter) stays(r *record.Record) bool {
	switch {
	case r.Offset >= f.round.Indexed:
	case r.Key == nil:
		f.counts.Keyless++
		return false
	case r.Offset < f.round.Table.Get(r.Key), r.Value == nil && f.expired:
		return false
	}
	if r.Value == nil {
		f.tombstones++
	}
	return true
}

// last tells whether the batch stays, if only its header.
func (f *Filter) last(b record.Batch) bool {
	if b.LastOffset()+1 == f.round.End {
		return true
	}
	last, known := f.round.Last[b.ProducerID()]
	switch {
	case !known || !b.HasProducer():
		return false
	case last.Offset >= 0:
		return b.LastOffset() == last.Offset
	}
	return b.Attributes().Control() && b.ProducerEpoch() == last.Epoch
}

// add adds without overflow: settings reach up to the greatest int64.
func add(a, b int64) int64 {
	if sum := a + b; b < 0 || sum >= a {
		return sum
	}
	return math.MaxInt64
}
