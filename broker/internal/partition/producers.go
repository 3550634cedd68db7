package partition

import (
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/txn/isolation"
	"github.com/millrace/millrace/txn/producer"
)

// producers is what the log derives from its batches: the state of the idempotent and transactional producers. It implements
// commitlog.State. The append lock owns it.
type producers struct {
	table  producer.Table
	seenMs int64 // the time of the recovery, from which idle producers replayed in it expire
}

// Load implements commitlog.State.
func (p *producers) Load(snapshot []byte) error {
	p.table = producer.Table{}
	return p.table.Load(snapshot)
}

// Snapshot implements commitlog.State.
func (p *producers) Snapshot(dst []byte) []byte { return p.table.Snapshot(dst) }

// Replay implements commitlog.State: a batch that is in the log is believed.
func (p *producers) Replay(b record.Batch) (isolation.AbortedTxn, bool, error) {
	if !b.HasProducer() {
		return isolation.AbortedTxn{}, false, nil
	}
	if !b.Attributes().Control() {
		p.table.Apply(batchOf(b, p.seenMs))
		return isolation.AbortedTxn{}, false, nil
	}
	m, ok, err := b.Marker()
	if !ok || err != nil {
		return isolation.AbortedTxn{}, false, err
	}
	a, _, aborted := p.end(producer.Marker{
		ProducerID: m.ProducerID, Epoch: m.ProducerEpoch, CoordinatorEpoch: m.CoordinatorEpoch, Commit: m.Commit,
	}, b.BaseOffset(), m.TimestampMs)
	return a, aborted, nil
}

// end takes in a marker. first is where the transaction began that it ended, -1 if none was open.
func (p *producers) end(m producer.Marker, offset, timestampMs int64) (a isolation.AbortedTxn, first int64, aborted bool) {
	first, had := p.table.ApplyMarker(m, offset, timestampMs)
	if !had {
		return a, -1, false
	}
	if m.Commit {
		return a, first, false
	}
	open, any := p.table.FirstOpen()
	return isolation.EntryFor(m.ProducerID, first, offset, open, any), first, true
}

func batchOf(b record.Batch, seenMs int64) producer.Batch {
	return producer.Batch{
		ProducerID: b.ProducerID(), Epoch: b.ProducerEpoch(),
		BaseSequence: b.BaseSequence(), LastSequence: b.LastSequence(),
		BaseOffset: b.BaseOffset(), LastOffset: b.LastOffset(),
		TimestampMs: b.MaxTimestamp(), SeenMs: seenMs,
		Transactional: b.Attributes().Transactional(),
	}
}
