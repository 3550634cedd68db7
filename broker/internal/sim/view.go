package sim

import (
	"fmt"

	"github.com/millrace/millrace/broker/internal/partition"
	"github.com/millrace/millrace/core/record"
)

// view is what an observer outside of the broker knows of one partition: every batch below the high watermark, and what follows
// from the batches alone. It is held against what the broker says after every step, and against the log after every restart.
type view struct {
	o     *oracle
	name  string
	topic string
	index int32
	known bool // its records are the oracle's
	gaps  bool // it is compacted: what was seen may be gone
	marks partition.Marks
	start int64 // of the log
	// truncated is the log start that a client was told.
	truncated int64
	// asked is the greatest offset that somebody wanted it to start at: nothing else moves a log start here.
	asked   int64
	next    int64 // behind the last batch seen
	batches []seen
	table   bool    // a topic with keys, which is compacted
	items   []*item // of a table or a relaxed topic, by offset
	loose   bool    // a relaxed topic
	bounds  bounds
	again   bool // it is read once more, what its records are is known
	cuts    int  // how often the power had failed when it was opened
	writers map[int64]*writer
	open    int // writers with an open transaction
	runs    int // of the broker that was looked at last
}

// seen is a batch as it was when it was first seen.
type seen struct {
	base, last int64
	crc        uint32
	epoch      int32
}

// writer is a producer as the log shows it.
type writer struct {
	epoch    int16
	sequence int32 // the last one; -1 for none under this epoch
	first    int64 // of the open transaction, -1 for none
	records  []*item
}

func newView(o *oracle, topic string, index int32, known bool) *view {
	return &view{
		o: o, name: fmt.Sprintf("%s-%d", topic, index), topic: topic, index: index, known: known, writers: map[int64]*writer{},
	}
}

// look takes in what has become durable, and checks the watermarks. run counts runs of the broker.
func (v *view) look(p *partition.Partition, run int) {
	m := p.Marks()
	if m == v.marks && run == v.runs {
		return
	}
	w := v.o.w
	if m.LogStart > m.LastStable || m.LastStable > m.HighWatermark || m.HighWatermark > m.LogEnd {
		w.fail("%s: watermarks in disorder: %+v", v.name, m)
		return
	}
	if run != v.runs && v.loose {
		v.reopened(p, m)
	}
	if m.HighWatermark < v.marks.HighWatermark || m.LogStart < v.marks.LogStart || m.LastStable < v.marks.LastStable {
		w.fail("%s: a watermark went back: from %+v to %+v, run %d", v.name, v.marks, m, run)
		return
	}
	if v.start = m.LogStart; v.start < v.truncated {
		w.fail("%s: the log starts at %d, and was said to start at %d", v.name, v.start, v.truncated)
	}
	if v.known && v.start > v.asked {
		w.fail("%s: the log starts at %d, and nobody wanted that: up to %d was deleted", v.name, v.start, v.asked)
	}
	again := run != v.runs
	if again && !v.gaps && !v.table && !v.loose {
		v.compare(p, m.LogStart)
	}
	v.runs = run
	if m.HighWatermark > v.next {
		v.read(p, v.next, v.take)
		if v.next != m.HighWatermark && w.failure == nil {
			w.fail("%s: the high watermark is %d, the batches below it end at %d", v.name, m.HighWatermark, v.next)
		}
	}
	if v.marks = m; again && v.table {
		v.compacted(p)
	}
	want := max(v.stable(), m.LogStart)
	if v.loose && m.LastStable < want && m.LastStable >= m.LogStart { // a marker that is seen and not durable decides nothing
		return
	}
	if m.LastStable != want {
		w.fail("%s: the last stable offset is %d, the log says %d: %+v", v.name, m.LastStable, want, m)
	}
}

// stable is the last stable offset as the batches have it.
func (v *view) stable() int64 {
	stable := v.next
	if v.open == 0 {
		return stable
	}
	for _, w := range v.writers {
		if w.first >= 0 {
			stable = min(stable, w.first)
		}
	}
	return stable
}

// read hands over the batches from an offset to the high watermark; complete says that there was no reason to stop before.
func (v *view) read(p *partition.Partition, from int64, take func(record.Batch)) (complete bool) {
	w := v.o.w
	high := p.Marks().HighWatermark
	for from < high && w.failure == nil {
		r, err := p.Read(partition.ReadOptions{Offset: from, MaxBytes: 1 << 20, AtLeastOne: true})
		if err != nil {
			if p.Marks().LogStart <= from { // else it was deleted meanwhile
				w.log("%s: can not be looked at: %v", v.name, err)
			}
			return false
		}
		before := from
		for _, s := range r.Sections {
			buf := make([]byte, s.Len)
			if _, err := s.File.ReadAt(buf, s.Offset); err != nil {
				w.log("%s: can not be looked at: %v", v.name, err)
				r.Release()
				return false
			}
			for b, err := range record.Batches(buf) {
				if err == nil {
					err = b.CheckCRC()
				}
				if err != nil {
					w.fail("%s: offset %d: %w", v.name, from, err)
					break
				}
				take(b)
				from = b.LastOffset() + 1
			}
		}
		r.Release()
		if from == before {
			w.fail("%s: nothing can be read at %d, the high watermark is %d", v.name, from, high)
		}
	}
	return w.failure == nil
}

// compare holds the log of a new run of the broker against the batches that were durable before.
func (v *view) compare(p *partition.Partition, start int64) {
	n := 0
	for n < len(v.batches) && v.batches[n].last < start {
		n++
	}
	v.read(p, start, func(b record.Batch) {
		if n == len(v.batches) {
			return
		}
		want, have := v.batches[n], seen{b.BaseOffset(), b.LastOffset(), b.CRC(), b.LeaderEpoch()}
		if have != want {
			v.o.w.fail("%s: the log had %+v and has %+v after a restart", v.name, want, have)
		}
		n++
	})
	if n < len(v.batches) && v.o.w.failure == nil {
		v.o.w.fail("%s: %d batches that were durable are gone after a restart, from offset %d on", v.name, len(v.batches)-n, v.batches[n].base)
	}
}

// take takes in one batch.
func (v *view) take(b record.Batch) {
	if b.BaseOffset() < v.next { // the batch holds the log start
		return
	}
	if b.BaseOffset() > v.next && v.next >= v.start && !v.gaps {
		v.o.w.fail("%s: a gap: offset %d follows %d", v.name, b.BaseOffset(), v.next-1)
	}
	v.batches = append(v.batches, seen{b.BaseOffset(), b.LastOffset(), b.CRC(), b.LeaderEpoch()})
	v.next = b.LastOffset() + 1
	var wr *writer
	if b.HasProducer() {
		if wr = v.writers[b.ProducerID()]; wr == nil {
			wr = &writer{epoch: b.ProducerEpoch(), sequence: -1, first: -1}
			v.writers[b.ProducerID()] = wr
		}
		if b.ProducerEpoch() < wr.epoch {
			v.o.w.fail("%s: offset %d: producer %d writes with epoch %d after %d", v.name, b.BaseOffset(), b.ProducerID(), b.ProducerEpoch(), wr.epoch)
		}
	}
	if b.Attributes().Control() {
		v.marker(b, wr)
		return
	}
	if wr != nil {
		v.sequence(b, wr)
	}
	if v.known {
		v.records(b, wr)
	}
}

func (v *view) sequence(b record.Batch, wr *writer) {
	if b.ProducerEpoch() > wr.epoch {
		if wr.first >= 0 {
			v.o.w.fail("%s: offset %d: producer %d goes on under epoch %d and has a transaction of epoch %d open since %d",
				v.name, b.BaseOffset(), b.ProducerID(), b.ProducerEpoch(), wr.epoch, wr.first)
		}
		wr.epoch, wr.sequence = b.ProducerEpoch(), -1
	}
	if v.known && b.BaseSequence() != wr.sequence+1 && !v.weak(b, wr) {
		v.o.w.fail("%s: offset %d: producer %d/%d: sequence %d follows %d",
			v.name, b.BaseOffset(), b.ProducerID(), b.ProducerEpoch(), b.BaseSequence(), wr.sequence)
	}
	wr.sequence = b.LastSequence()
	if b.Attributes().Transactional() && wr.first < 0 {
		wr.first = b.BaseOffset()
		v.open++
	}
}

// weak tells whether batches may be missing before one: its sender had them acknowledged from the page cache.
func (v *view) weak(b record.Batch, wr *writer) bool {
	for r, err := range b.Records(nil) {
		if n := numberOf(r); err == nil && n >= 0 && n < len(v.o.items) && v.o.items[n].weak {
			return b.BaseSequence() > wr.sequence
		}
	}
	return false
}

func (v *view) records(b record.Batch, wr *writer) {
	for r, err := range b.Records(nil) {
		if err != nil || numberOf(r) < 0 {
			v.o.w.fail("%s: offset %d: a record of %d bytes, %v", v.name, r.Offset, len(r.Value), err)
			return
		}
		if v.again {
			if i := v.o.items[numberOf(r)]; i.txn != nil && wr != nil {
				wr.records = append(wr.records, i)
			}
			continue
		}
		i := v.o.appended(v.topic, v.index, r.Offset, numberOf(r), b.Attributes().Transactional())
		if i == nil {
			return
		}
		if v.table || v.loose {
			v.items = append(v.items, i)
		}
		if i.txn != nil && wr != nil {
			v.o.together(wr.records, i)
			wr.records = append(wr.records, i)
		}
	}
}

func (v *view) marker(b record.Batch, wr *writer) {
	m, ok, err := b.Marker()
	if !ok || err != nil || wr == nil {
		v.o.w.fail("%s: offset %d: a control batch that is no marker: %v", v.name, b.BaseOffset(), err)
		return
	}
	if b.ProducerEpoch() > wr.epoch {
		wr.epoch, wr.sequence = b.ProducerEpoch(), -1
	}
	f := aborted
	if m.Commit {
		f = committed
	}
	for _, i := range wr.records {
		v.o.decided(i, f)
	}
	if wr.first >= 0 {
		v.open--
	}
	wr.first, wr.records = -1, nil
}
