package inspect

import (
	"fmt"

	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/txn/isolation"
	"github.com/millrace/millrace/txn/producer"
)

// stateCheck replays the producers and compares the snapshots with that.
type stateCheck struct {
	table   producer.Table
	offsets []int64 // of the snapshots that check, ascending
	loaded  map[int64]*producer.Table
}

// load reads the snapshots. One that checks is a witness that everything below its offset was durable.
func (s *stateCheck) load(c *ground) error {
	s.loaded = map[int64]*producer.Table{}
	for _, offset := range c.p.offsets(snapshotSuffix) {
		name := fileName(offset, snapshotSuffix)
		data, err := c.p.read(name)
		if err != nil {
			return err
		}
		t := new(producer.Table)
		if err := t.Load(data); err != nil {
			c.find(Rebuildable, name, 0, -1, "the snapshot can not be read: %v", err)
			continue
		}
		s.loaded[offset] = t
		s.offsets = append(s.offsets, offset)
		c.witnessed(offset, name)
	}
	return nil
}

// begin takes over what was before the first segment.
func (s *stateCheck) begin(c *ground, base int64) {
	if base == 0 {
		return
	}
	c.partial = true
	for _, offset := range s.offsets {
		if offset > base {
			break
		}
		data, err := c.p.read(fileName(offset, snapshotSuffix))
		if err == nil && s.table.Load(data) == nil && offset == base {
			c.partial = false
		}
	}
}

// before compares the snapshots at or below an offset, the next batch's.
func (s *stateCheck) before(c *ground, offset int64) {
	for len(s.offsets) > 0 && s.offsets[0] <= offset {
		if at := s.offsets[0]; at >= c.p.logs[0] && !c.first {
			s.compare(c, at)
		}
		s.offsets = s.offsets[1:]
	}
}

// end compares those at the end of the log. Snapshots beyond it are witnesses of what is missing: see points.
func (s *stateCheck) end(c *ground) {
	if len(c.p.logs) > 0 {
		s.before(c, c.next)
	}
}

// batch takes a batch in, and gives the transaction that it aborts, if it does.
func (s *stateCheck) batch(c *ground, name string, b record.Batch, pos int64) *isolation.AbortedTxn {
	if !b.HasProducer() {
		return nil
	}
	if !b.Attributes().Control() {
		s.table.Apply(producer.Batch{
			ProducerID: b.ProducerID(), Epoch: b.ProducerEpoch(), BaseSequence: b.BaseSequence(), LastSequence: b.LastSequence(),
			BaseOffset: b.BaseOffset(), LastOffset: b.LastOffset(), TimestampMs: b.MaxTimestamp(), Transactional: b.Attributes().Transactional(),
		})
		return nil
	}
	m, ok, err := b.Marker()
	if err != nil {
		c.find(Damage, name, pos, b.BaseOffset(), "the marker can not be read: %v", err)
	}
	if !ok || err != nil {
		return nil
	}
	first, had := s.table.ApplyMarker(producer.Marker{
		ProducerID: m.ProducerID, Epoch: m.ProducerEpoch, CoordinatorEpoch: m.CoordinatorEpoch, Commit: m.Commit,
	}, b.BaseOffset(), m.TimestampMs)
	if !had || m.Commit {
		return nil
	}
	open, any := s.table.FirstOpen()
	a := isolation.EntryFor(m.ProducerID, first, b.BaseOffset(), open, any)
	return &a
}

// compare holds a snapshot against the replay. Producers that were quiet for long are forgotten by a broker, and one that wrote only
// what was deleted since is known to the snapshot alone; both are no fault.
func (s *stateCheck) compare(c *ground, offset int64) {
	if c.guesses() {
		return
	}
	replayed := map[int64]producer.State{}
	newest := int64(0)
	for st := range s.table.All() {
		replayed[st.ProducerID] = st
		newest = max(newest, st.LastTimestampMs)
	}
	say := func(format string, args ...any) {
		c.find(Rebuildable, fileName(offset, snapshotSuffix), -1, -1, "%s", fmt.Sprintf(format, args...))
	}
	for st := range s.loaded[offset].All() {
		want, ok := replayed[st.ProducerID]
		delete(replayed, st.ProducerID)
		if ok && st != want {
			say("the snapshot has producer %+v, a replay of the log gives %+v", st, want)
			return
		}
		if !ok {
			say("the snapshot has producer %d, which wrote nothing before offset %d", st.ProducerID, offset)
			return
		}
	}
	for st := range s.table.All() {
		if _, left := replayed[st.ProducerID]; left && (st.TxnFirstOffset >= 0 || st.LastTimestampMs == newest) {
			say("the snapshot does not have producer %d, which wrote before offset %d", st.ProducerID, offset)
			return
		}
	}
}
