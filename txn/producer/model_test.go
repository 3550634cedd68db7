package producer_test

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace/millrace/txn/producer"
)

// model is a dumb table: it keeps every batch and marker that it saw and searches all of them for each answer.
type model struct{ events []event }

type event struct {
	batch  producer.Batch
	marker *producer.Marker
	offset int64
	timeMs int64
}

func (e event) id() int64 {
	if e.marker != nil {
		return e.marker.ProducerID
	}
	return e.batch.ProducerID
}

func (e event) epoch() int16 {
	if e.marker != nil {
		return e.marker.Epoch
	}
	return e.batch.Epoch
}

// of gives the events of one producer.
func (m *model) of(id int64) iter.Seq[event] {
	return func(yield func(event) bool) {
		for _, e := range m.events {
			if e.id() == id && !yield(e) {
				return
			}
		}
	}
}

// epochAndWindow gives the last epoch and the last five batches since it began.
func (m *model) epochAndWindow(id int64) (epoch int16, known bool, window []producer.Batch) {
	for e := range m.of(id) {
		if !known || e.epoch() != epoch {
			window = nil
		}
		epoch, known = e.epoch(), true
		if e.marker == nil {
			window = append(window, e.batch)
		}
	}
	return epoch, known, window[max(0, len(window)-producer.Window):]
}

func (m *model) openSince(id int64) int64 {
	first := int64(-1)
	for e := range m.of(id) {
		if e.marker != nil {
			first = -1
		} else if e.batch.Transactional && first < 0 {
			first = e.batch.BaseOffset
		}
	}
	return first
}

func (m *model) lastMarker(id int64) *producer.Marker {
	var last *producer.Marker
	for e := range m.of(id) {
		if e.marker != nil {
			last = e.marker
		}
	}
	return last
}

func (m *model) check(b producer.Batch) (dup int64, code int16) {
	epoch, known, window := m.epochAndWindow(b.ProducerID)
	if !known {
		return -1, 0
	}
	want := int64(0)
	if epoch == b.Epoch {
		for _, w := range window {
			if w.BaseSequence == b.BaseSequence && w.LastSequence == b.LastSequence {
				return w.BaseOffset, 0
			}
			want = (int64(w.LastSequence) + 1) % (math.MaxInt32 + 1)
		}
	}
	switch open := m.openSince(b.ProducerID) >= 0; {
	case b.Epoch < epoch:
		return -1, 47
	case int64(b.BaseSequence) != want:
		return -1, 45
	case open && b.Epoch > epoch:
		return -1, 51
	case open && !b.Transactional:
		return -1, 48
	}
	return -1, 0
}

func (m *model) checkMarker(k producer.Marker) (code int16, repeated bool) {
	epoch, known, _ := m.epochAndWindow(k.ProducerID)
	last := m.lastMarker(k.ProducerID)
	switch {
	case !known:
		return 0, false
	case k.Epoch < epoch:
		return 47, false
	case k.Epoch == epoch && k.TxnVersion == 2:
		return 47, last != nil && last.Epoch == k.Epoch && last.Commit == k.Commit
	case last != nil && k.CoordinatorEpoch < last.CoordinatorEpoch:
		return 52, false
	}
	return 0, false
}

func (m *model) expire(now, after int64) {
	last := map[int64]int64{}
	for _, e := range m.events {
		last[e.id()] = e.timeMs
	}
	for id, at := range last {
		if m.openSince(id) < 0 && now-at >= after {
			m.events = slices.DeleteFunc(m.events, func(e event) bool { return e.id() == id })
		}
	}
}

func (m *model) firstOpen() (int64, bool) {
	first, any := int64(math.MaxInt64), false
	for id := range m.ids() {
		if o := m.openSince(id); o >= 0 {
			first, any = min(first, o), true
		}
	}
	return first, any
}

func (m *model) ids() iter.Seq[int64] {
	ids := map[int64]bool{}
	for _, e := range m.events {
		ids[e.id()] = true
	}
	return maps.Keys(ids)
}

// TestAgainstModel runs random batches, markers, expiries and restarts through the table and the model.
func TestAgainstModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		run := modelRun{rng: rand.New(rand.NewPCG(seed, 7)), now: 1000}
		for step := range 400 {
			if err := run.step(); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
		}
		if run.appended < 50 || run.dups < 5 || run.ended < 5 {
			t.Errorf("seed %d: only %d appends, %d duplicates, %d ends", seed, run.appended, run.dups, run.ended)
		}
	}
}

type modelRun struct {
	rng                   *rand.Rand
	table                 producer.Table
	model                 model
	next, now             int64
	appended, dups, ended int
}

func (r *modelRun) step() error {
	r.now += r.rng.Int64N(20)
	var err error
	switch r.rng.IntN(20) {
	case 0:
		after := r.rng.Int64N(300)
		r.table.Expire(r.now, after, 1<<30)
		r.model.expire(r.now, after)
	case 1:
		raw := r.table.Snapshot(nil)
		var again producer.Table
		if err := again.Load(raw); err != nil {
			return err
		}
		r.table = again
	case 2, 3, 4:
		err = r.marker()
	default:
		err = r.batch()
	}
	if err != nil {
		return err
	}
	return r.compare()
}

func (r *modelRun) batch() error {
	b := producer.Batch{
		ProducerID: r.rng.Int64N(4), Epoch: int16(r.rng.IntN(4)), TimestampMs: r.rng.Int64N(1000), SeenMs: r.now,
		Transactional: r.rng.IntN(2) == 0,
	}
	epoch, known, window := r.model.epochAndWindow(b.ProducerID)
	if known && r.rng.IntN(3) > 0 {
		b.Epoch = epoch
	}
	if r.rng.IntN(8) > 0 && r.model.openSince(b.ProducerID) >= 0 {
		b.Transactional = true
	}
	n := 1 + r.rng.Int32N(3)
	switch {
	case len(window) > 0 && r.rng.IntN(4) == 0: // again
		w := window[r.rng.IntN(len(window))]
		b.BaseSequence, n = w.BaseSequence, int32((int64(w.LastSequence)-int64(w.BaseSequence))&math.MaxInt32)+1
	case len(window) > 0 && r.rng.IntN(6) > 0:
		b.BaseSequence = int32((int64(window[len(window)-1].LastSequence) + 1) & math.MaxInt32)
	case !known:
		b.BaseSequence = math.MaxInt32 - r.rng.Int32N(4)
	default:
		b.BaseSequence = r.rng.Int32N(3)
	}
	b.LastSequence = int32((int64(b.BaseSequence) + int64(n) - 1) & math.MaxInt32)
	wantDup, wantCode := r.model.check(b)
	dup, isDup, err := r.table.Check(b)
	if codeOf(err) != wantCode || isDup != (wantDup >= 0) || (isDup && dup.BaseOffset != wantDup) {
		return fmt.Errorf("%+v: %+v, %v, %v, want offset %d, code %d", b, dup, isDup, err, wantDup, wantCode)
	}
	if isDup {
		r.dups++
	}
	if err != nil || isDup {
		return nil
	}
	r.appended++
	b.BaseOffset, b.LastOffset = r.next, r.next+int64(n)-1
	r.next += int64(n)
	r.table.Apply(b)
	r.model.events = append(r.model.events, event{batch: b, offset: b.BaseOffset, timeMs: r.now})
	return nil
}

func (r *modelRun) marker() error {
	m := producer.Marker{
		ProducerID: r.rng.Int64N(4), Epoch: int16(r.rng.IntN(4)), CoordinatorEpoch: r.rng.Int32N(3), Commit: r.rng.IntN(2) == 0,
		TxnVersion: int16(1 + r.rng.IntN(2)),
	}
	epoch, known, _ := r.model.epochAndWindow(m.ProducerID)
	if known && r.rng.IntN(2) == 0 {
		m.Epoch = epoch
		if m.TxnVersion == 2 && r.rng.IntN(3) > 0 {
			m.Epoch++
		}
	}
	wantCode, wantRepeated := r.model.checkMarker(m)
	err := r.table.CheckMarker(m)
	if codeOf(err) != wantCode || errors.Is(err, producer.ErrMarkerRepeated) != wantRepeated {
		return fmt.Errorf("%+v: %v, want code %d, repeated %v", m, err, wantCode, wantRepeated)
	}
	if err != nil {
		return nil
	}
	want := r.model.openSince(m.ProducerID)
	first, had := r.table.ApplyMarker(m, r.next, r.now)
	if first != want || had != (want >= 0) {
		return fmt.Errorf("%+v ended %d, %v, want %d", m, first, had, want)
	}
	if had {
		r.ended++
	}
	r.model.events = append(r.model.events, event{marker: &m, offset: r.next, timeMs: r.now})
	r.next++
	return nil
}

// compare asks everything that can be asked.
func (r *modelRun) compare() error {
	want := slices.Sorted(r.model.ids())
	i := 0
	for s := range r.table.All() {
		if i >= len(want) || s.ProducerID != want[i] {
			return fmt.Errorf("producer %d where %v are known", s.ProducerID, want)
		}
		i++
		epoch, _, window := r.model.epochAndWindow(s.ProducerID)
		seq, since := int32(-1), r.model.openSince(s.ProducerID)
		if len(window) > 0 {
			seq = window[len(window)-1].LastSequence
		}
		coordinator := int32(-1)
		if m := r.model.lastMarker(s.ProducerID); m != nil {
			coordinator = m.CoordinatorEpoch
		}
		if s.Epoch != epoch || s.LastSequence != seq || s.TxnFirstOffset != since || s.CoordinatorEpoch != coordinator {
			return fmt.Errorf("%+v, want epoch %d, sequence %d, open since %d, coordinator %d", s, epoch, seq, since, coordinator)
		}
		if first, open := r.table.Open(s.ProducerID, epoch); open != (since >= 0) || first != since {
			return fmt.Errorf("producer %d: open %v since %d, want %d", s.ProducerID, open, first, since)
		}
	}
	first, any := r.table.FirstOpen()
	if wantFirst, wantAny := r.model.firstOpen(); i != len(want) || any != wantAny || (any && first != wantFirst) {
		return fmt.Errorf("%d producers of %d, first open %d, %v, want %d, %v", i, len(want), first, any, wantFirst, wantAny)
	}
	return nil
}
