package partition

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/vfs"
	"github.com/millrace/millrace/txn/isolation"
	"github.com/millrace/millrace/txn/producer"
)

// entry is one batch of the model: a log as a plain slice.
type entry struct {
	base, last int64
	ts         int64
	values     []string
	bytes      []byte // as sent; nil for a marker
	marker     *producer.Marker
	id         int64
	epoch      int16
	txn        bool
}

// model is the dumb twin of a partition: every batch that may be in the log, in order, and what was acknowledged. A partition
// that comes back from a crash must hold a beginning of log that has everything acknowledged.
type model struct {
	mu         sync.Mutex
	log        []entry
	acked      int64 // every offset below was acknowledged
	start      int64 // acknowledged log start
	startAsked int64 // the greatest that was ever asked for
}

func (m *model) next() int64 {
	if n := len(m.log); n > 0 {
		return m.log[n-1].last + 1
	}
	return 0
}

func (m *model) push(e entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.base = m.next()
	e.last = e.base + int64(max(len(e.values), 1)) - 1
	m.log = append(m.log, e)
}

func (m *model) pop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log = m.log[:len(m.log)-1]
}

func (m *model) ack(last int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.acked = max(m.acked, last+1)
}

// clone is the model as of now, for a crash at this moment.
func (m *model) clone() *model {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &model{log: slices.Clone(m.log), acked: m.acked, start: m.start, startAsked: m.startAsked}
}

// at is what a log that ends at an offset must look like.
type picture struct {
	records, committed []got
	open               map[int64]int64 // producer to first offset
	aborted            []isolation.AbortedTxn
	stable             int64
}

// picture computes everything from scratch.
func (m *model) picture(start, end int64) picture {
	pic := picture{open: map[int64]int64{}, stable: end}
	type span struct{ first, last int64 }
	dropped := map[int64][]span{}
	for _, e := range m.log {
		if e.base >= end {
			break
		}
		if e.marker != nil {
			first, had := pic.open[e.id]
			delete(pic.open, e.id)
			if had && !e.marker.Commit {
				pic.aborted = append(pic.aborted, isolation.AbortedTxn{ProducerID: e.id, FirstOffset: first, LastOffset: e.base})
				dropped[e.id] = append(dropped[e.id], span{first, e.base})
			}
			continue
		}
		if _, open := pic.open[e.id]; e.txn && !open {
			pic.open[e.id] = e.base
		}
	}
	for _, first := range pic.open {
		pic.stable = min(pic.stable, first)
	}
	pic.stable = max(pic.stable, start)
	for _, e := range m.log {
		hidden := e.txn && slices.ContainsFunc(dropped[e.id], func(s span) bool { return s.first <= e.base && e.base < s.last })
		for i, v := range e.values {
			if o := e.base + int64(i); o >= start && o < end {
				g := got{o, e.ts + int64(i), v}
				pic.records = append(pic.records, g)
				if o < pic.stable && !hidden {
					pic.committed = append(pic.committed, g)
				}
			}
		}
	}
	return pic
}

// check compares a partition with the model and returns what differs first. A log that lost an unacknowledged tail is cut off
// in the model too.
func (m *model) check(t testing.TB, p *Partition, rng *rand.Rand) error {
	marks := p.Marks()
	if marks.LogEnd < m.acked {
		return fmt.Errorf("the log ends at %d, acknowledged was all below %d", marks.LogEnd, m.acked)
	}
	if marks.LogStart < m.start || marks.LogStart > max(m.startAsked, m.start) {
		return fmt.Errorf("the log starts at %d, acknowledged was %d, asked for %d", marks.LogStart, m.start, m.startAsked)
	}
	for len(m.log) > 0 && m.log[len(m.log)-1].base >= marks.LogEnd {
		m.log = m.log[:len(m.log)-1]
	}
	if m.next() != marks.LogEnd {
		return fmt.Errorf("the log ends at %d, in the middle of a batch or beyond what was written (%d)", marks.LogEnd, m.next())
	}
	if marks.HighWatermark != marks.LogEnd {
		return fmt.Errorf("high watermark %d, log end %d", marks.HighWatermark, marks.LogEnd)
	}
	m.start, m.startAsked = marks.LogStart, marks.LogStart
	pic := m.picture(marks.LogStart, marks.LogEnd)
	if marks.LastStable != pic.stable {
		return fmt.Errorf("last stable offset %d, want %d", marks.LastStable, pic.stable)
	}
	from := marks.LogStart + rng.Int64N(marks.LogEnd-marks.LogStart+1)
	size := int32(1 + rng.IntN(3000))
	behind := func(all []got) []got {
		i := slices.IndexFunc(all, func(g got) bool { return g.offset >= from })
		if i < 0 {
			return nil
		}
		return all[i:]
	}
	if have, want := fmt.Sprint(records(t, p, from, size, false)), fmt.Sprint(behind(pic.records)); have != want {
		return fmt.Errorf("from %d by %d bytes:\nhave %s\nwant %s", from, size, have, want)
	}
	if have, want := fmt.Sprint(committed(t, p, from, size)), fmt.Sprint(behind(pic.committed)); have != want {
		return fmt.Errorf("read_committed from %d by %d bytes:\nhave %s\nwant %s\naborted %v", from, size, have, want, pic.aborted)
	}
	for id, first := range pic.open {
		if have, open := p.producers.table.Open(id, epochOf(m.log, id)); !open || have != first {
			return fmt.Errorf("producer %d has a transaction open since %d, the partition says %d, %v", id, first, have, open)
		}
	}
	return errors.Join(m.checkTimes(p, pic, rng), m.checkWindow(p), checkEpochs(p))
}

// checkEpochs compares the leader epochs with those in the batches (S09).
func checkEpochs(p *Partition) error {
	last := int32(-1)
	return p.Replay(func(b record.Batch) error {
		epoch := b.LeaderEpoch()
		if at := p.EpochAt(max(b.BaseOffset(), p.Marks().LogStart)); at != epoch || epoch < last {
			return fmt.Errorf("the batch at %d has leader epoch %d after %d, known is %d", b.BaseOffset(), epoch, last, at)
		}
		if found, end := p.EpochEnd(epoch); found != epoch || end <= b.LastOffset() {
			return fmt.Errorf("epoch %d ends at %d (%d), the batch at %d has it", epoch, end, found, b.LastOffset())
		}
		last = epoch
		return nil
	})
}

// checkTimes compares look-ups by time.
func (m *model) checkTimes(p *Partition, pic picture, rng *rand.Rand) error {
	if len(pic.records) == 0 || slices.ContainsFunc(m.log, func(e entry) bool { return e.marker != nil }) {
		return nil // markers have times of their own; TestTimes looks at those
	}
	ts := pic.records[rng.IntN(len(pic.records))].ts + rng.Int64N(3) - 1
	i := slices.IndexFunc(pic.records, func(g got) bool { return g.ts >= ts })
	offset, found, _, ok, err := p.OffsetForTime(ts, false)
	if err != nil || ok != (i >= 0) || ok && (offset != pic.records[i].offset || found != pic.records[i].ts) {
		return fmt.Errorf("first at time %d: %d %d %v %v, want %d of %v", ts, offset, found, ok, err, i, pic.records)
	}
	greatest := slices.MaxFunc(pic.records, func(a, b got) int { return int(a.ts - b.ts) })
	offset, found, _, ok, err = p.MaxTimestamp(false)
	if err != nil || !ok || offset != greatest.offset || found != greatest.ts {
		return fmt.Errorf("greatest time: %d %d %v %v, want %v", offset, found, ok, err, greatest)
	}
	return nil
}

// checkWindow sends the last five batches of each producer again.
func (m *model) checkWindow(p *Partition) error {
	seen := map[int64]int{}
	end := p.Marks().LogEnd
	for _, e := range slices.Backward(m.log) {
		if e.bytes == nil || e.id < 0 || e.epoch != epochOf(m.log, e.id) || seen[e.id] == producer.Window {
			continue
		}
		seen[e.id]++
		a, err := p.Append(slices.Clone(e.bytes), AppendOptions{RequestVersion: 12})
		if err != nil || !a.Duplicate || a.BaseOffset != e.base || a.LastOffset != e.last {
			return fmt.Errorf("producer %d's batch at %d, sent again: %+v, %v", e.id, e.base, a, err)
		}
	}
	if now := p.Marks().LogEnd; now != end {
		return fmt.Errorf("duplicates were appended: the log end moved from %d to %d", end, now)
	}
	return nil
}

// epochOf is a producer's latest epoch in a log.
func epochOf(log []entry, id int64) int16 {
	for _, e := range slices.Backward(log) {
		if e.id == id {
			return e.epoch
		}
	}
	return -1
}

// committed reads as a read_committed consumer does: it skips what the aborted lists tell it to.
func committed(t testing.TB, p *Partition, from int64, maxBytes int32) []got {
	t.Helper()
	var out []got
	for {
		r, err := p.Read(ReadOptions{Offset: from, MaxBytes: maxBytes, Committed: true, AtLeastOne: true})
		if err != nil {
			t.Fatal(err)
		}
		if r.Bytes == 0 {
			r.Release()
			return out
		}
		pending := slices.Clone(r.Aborted)
		if !slices.IsSortedFunc(pending, func(a, b isolation.AbortedTxn) int { return int(a.FirstOffset - b.FirstOffset) }) {
			t.Fatalf("aborted list is not sorted: %v", pending)
		}
		aborted := map[int64]bool{}
		for b, err := range record.Batches(bytesOf(t, r)) {
			if err != nil {
				t.Fatal(err)
			}
			for len(pending) > 0 && pending[0].FirstOffset <= b.LastOffset() {
				aborted[pending[0].ProducerID] = true
				pending = pending[1:]
			}
			next := b.LastOffset() + 1
			if m, isMarker, err := b.Marker(); err != nil {
				t.Fatal(err)
			} else if isMarker {
				if !m.Commit {
					delete(aborted, m.ProducerID)
				}
			} else if !b.Attributes().Transactional() || !aborted[b.ProducerID()] {
				for rec, err := range b.Records(nil) {
					if err != nil {
						t.Fatal(err)
					}
					if rec.Offset >= from {
						out = append(out, got{rec.Offset, rec.Timestamp, string(rec.Value)})
					}
				}
			}
			from = next
		}
		r.Release()
	}
}

// load is a random workload on a rig and its model.
type load struct {
	*rig
	m         *model
	rng       *rand.Rand
	producers []*sender
	n         int
	noMarkers bool
	fail      func(error) bool // whether an error is expected; nil expects none
	idle      *rand.Rand       // when the partition's files count as idle
	// ack takes the place of acknowledge, where acknowledged does not mean synced.
	ack func(last int64, wait bool)
}

func newLoad(t testing.TB, fsys vfs.FS, r *rig, seed uint64) *load {
	l := &load{rig: r, m: new(model), rng: rand.New(rand.NewPCG(seed, 99)), idle: rand.New(rand.NewPCG(seed, 100))}
	for id := range int64(4) {
		l.producers = append(l.producers, &sender{id: id, txn: id%2 == 1, codec: record.Codec(id)})
	}
	l.producers = append(l.producers, &sender{id: -1})
	return l
}

// expected ends the test for an error that must not be.
func (l *load) expected(what string, err error) {
	l.t.Helper()
	if l.fail == nil || !l.fail(err) {
		l.t.Fatalf("%s: %v", what, err)
	}
}

// produce appends a random batch; wait says whether to wait for its acknowledgement.
func (l *load) produce(wait bool) {
	s := l.producers[l.rng.IntN(len(l.producers))]
	if l.noMarkers && s.txn {
		s = l.producers[len(l.producers)-1]
	}
	var values []string
	for range 1 + l.rng.IntN(4) {
		l.n++
		values = append(values, fmt.Sprintf("%d-%0*d", l.n, l.rng.IntN(80), 0))
	}
	was := *s
	ts := 1_690_000_000_000 + l.rng.Int64N(10_000_000)
	b := s.batch(l.t, ts, values...)
	l.m.push(entry{ts: ts, values: values, bytes: b, id: s.id, epoch: s.epoch, txn: s.txn})
	a, err := l.p.Append(slices.Clone(b), AppendOptions{RequestVersion: 12, Guard: l.guardFor(b)})
	if err != nil {
		l.m.pop()
		*s = was
		l.expected("append", err)
		return
	}
	if a.Duplicate || a.BaseOffset != l.m.log[len(l.m.log)-1].base {
		l.t.Fatalf("%+v, want base offset %d", a, l.m.log[len(l.m.log)-1].base)
	}
	l.acknowledge(a.LastOffset, wait)
}

func (l *load) acknowledge(last int64, wait bool) {
	if l.ack != nil {
		l.ack(last, wait)
		return
	}
	l.promise(l.p.Await, last, wait)
}

// acknowledgeDurably waits for the sync, whatever the topic's durability.
func (l *load) acknowledgeDurably(last int64) { l.promise(l.p.AwaitDurable, last, true) }

// promise takes into the model that what is awaited must outlive a power cut.
func (l *load) promise(awaited func(int64, func(error)), last int64, wait bool) {
	done := make(chan error, 1)
	m := l.m
	awaited(last, func(err error) {
		if err == nil {
			m.ack(last)
		}
		done <- err
	})
	if wait {
		if err := <-done; err != nil {
			l.expected("await", err)
		}
	}
}

// finish ends a random producer's transaction, open or not.
func (l *load) finish() {
	s := l.producers[1+2*l.rng.IntN(2)]
	m := producer.Marker{ProducerID: s.id, Epoch: s.epoch + 1, CoordinatorEpoch: 1, Commit: l.rng.IntN(2) == 0, TxnVersion: 2}
	l.m.push(entry{marker: &m, id: s.id, epoch: m.Epoch, txn: true, ts: l.clock.Now().UnixMilli()})
	a, err := l.p.AppendMarker(m)
	if err != nil {
		l.m.pop()
		l.expected("marker", err)
		return
	}
	s.epoch, s.sequence = m.Epoch, 0
	l.acknowledge(a.LastOffset, l.rng.IntN(2) == 0)
}

// trim deletes records.
func (l *load) trim() {
	marks := l.p.Marks()
	before := marks.LogStart + l.rng.Int64N(marks.HighWatermark-marks.LogStart+1)
	if l.rng.IntN(8) == 0 {
		before = -1
	}
	l.m.mu.Lock()
	l.m.startAsked = max(l.m.startAsked, before)
	if before == -1 {
		l.m.startAsked = max(l.m.startAsked, marks.LogEnd)
	}
	l.m.mu.Unlock()
	low, err := l.p.DeleteRecords(before)
	if err != nil {
		l.expected("delete records", err)
		return
	}
	l.m.mu.Lock()
	l.m.start = max(l.m.start, low)
	l.m.mu.Unlock()
}

// step does something.
func (l *load) step() {
	if l.idle.IntN(3) == 0 {
		l.rest()
	}
	switch n := l.rng.IntN(40); {
	case n == 0:
		l.trim()
	case n < 8 && !l.noMarkers:
		l.finish()
	default:
		l.produce(l.rng.IntN(3) > 0)
	}
}

// resume sets the producers to what a recovered log says, as clients do after a new epoch.
func (l *load) resume() {
	for _, s := range l.producers {
		if s.id < 0 {
			continue
		}
		s.epoch, s.sequence = max(epochOf(l.m.log, s.id), 0), 0
		for _, e := range l.m.log {
			if e.id == s.id && e.epoch == s.epoch && e.bytes != nil {
				s.sequence += int32(len(e.values))
			}
		}
	}
}
