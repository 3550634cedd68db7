package producer_test

import (
	"errors"
	"math"
	"testing"

	"github.com/millrace/millrace/txn/producer"
)

func codeOf(err error) int16 {
	var e *producer.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// partition is one reduced to its producer table: it gives offsets and applies what the table lets in.
type partition struct {
	t *testing.T
	producer.Table
	next int64
	now  int64
}

// produce sends n records from sequence seq on, and gives the base offset, whether it was a duplicate, and the code.
func (l *partition) produce(id int64, epoch int16, seq, n int32, txn bool) (base int64, dup bool, code int16) {
	l.t.Helper()
	b := producer.Batch{
		ProducerID: id, Epoch: epoch, BaseSequence: seq, LastSequence: int32((int64(seq) + int64(n) - 1) & math.MaxInt32),
		TimestampMs: 1000 + l.next, SeenMs: l.now, Transactional: txn,
	}
	d, dup, err := l.Check(b)
	if err != nil {
		return -1, false, codeOf(err)
	}
	if dup {
		if d.TimestampMs != 1000+d.BaseOffset || d.LastOffset != d.BaseOffset+int64(n)-1 {
			l.t.Errorf("a duplicate of %+v", d)
		}
		return d.BaseOffset, true, 0
	}
	b.BaseOffset, b.LastOffset = l.next, l.next+int64(n)-1
	l.next += int64(n)
	l.Apply(b)
	return b.BaseOffset, false, 0
}

func (l *partition) end(m producer.Marker) (first int64, had bool, err error) {
	l.t.Helper()
	if err := l.CheckMarker(m); err != nil {
		return -1, false, err
	}
	first, had = l.ApplyMarker(m, l.next, l.now)
	l.next++
	return first, had, nil
}

// want checks the answer to a batch.
func (l *partition) want(base int64, dup bool, code int16) func(int64, bool, int16) {
	return func(b int64, d bool, c int16) {
		l.t.Helper()
		if b != base || d != dup || c != code {
			l.t.Errorf("offset %d, duplicate %v, code %d, want %d, %v, %d", b, d, c, base, dup, code)
		}
	}
}

// reopen is a restart: what was known goes through a snapshot.
func (l *partition) reopen() {
	l.t.Helper()
	raw := l.Snapshot(nil)
	l.Table = producer.Table{}
	if err := l.Load(raw); err != nil {
		l.t.Fatal(err)
	}
}

// TestSequenceWrap is case P01: sequences wrap from 2^31-1 to 0, and a batch across the wrap is recognised.
func TestSequenceWrap(t *testing.T) {
	t.Parallel()
	l := partition{t: t}
	l.want(0, false, 0)(l.produce(1, 0, 2147483640, 16, false))
	l.want(16, false, 0)(l.produce(1, 0, 8, 16, false))
	l.want(0, true, 0)(l.produce(1, 0, 2147483640, 16, false))
	l.reopen()
	l.want(0, true, 0)(l.produce(1, 0, 2147483640, 16, false))
	l.want(-1, false, 45)(l.produce(1, 0, 2147483640, 15, false))
	l.want(32, false, 0)(l.produce(1, 0, 24, 1, false))
}

// TestWindow is case P03: the last five batches are duplicates, also after a restart, older ones are out of order.
func TestWindow(t *testing.T) {
	t.Parallel()
	l := partition{t: t}
	for i := range int32(7) {
		l.want(int64(i)*2, false, 0)(l.produce(1, 0, i*2, 2, false))
	}
	for range 2 {
		for i := range int32(7) {
			if i < 2 {
				l.want(-1, false, 45)(l.produce(1, 0, i*2, 2, false))
			} else {
				l.want(int64(i)*2, true, 0)(l.produce(1, 0, i*2, 2, false))
			}
		}
		l.want(-1, false, 45)(l.produce(1, 0, 15, 2, false)) // a gap
		l.want(-1, false, 45)(l.produce(1, 0, 12, 1, false)) // the start of a known batch
		l.want(-1, false, 45)(l.produce(1, 0, 11, 2, false)) // across two of them
		l.reopen()
	}
	l.want(14, false, 0)(l.produce(1, 0, 14, 2, false))
}

func TestEpochs(t *testing.T) {
	t.Parallel()
	l := partition{t: t}
	l.want(0, false, 0)(l.produce(1, 3, 17, 1, false)) // unknown: may start anywhere
	l.want(-1, false, 47)(l.produce(1, 2, 0, 1, false))
	l.want(-1, false, 45)(l.produce(1, 4, 1, 1, false))
	l.want(1, false, 0)(l.produce(1, 4, 0, 1, false))
	l.want(-1, false, 47)(l.produce(1, 3, 17, 1, false)) // no duplicate under an old epoch
	l.want(-1, false, 47)(l.produce(1, -1, 0, 1, false))
	l.want(2, false, 0)(l.produce(2, 0, 0, 1, false)) // another producer is another matter
}

// TestMarkerKeepsWindow is case P13: under version 1 the marker keeps the epoch, and the batches of the transaction that is
// over are still known.
func TestMarkerKeepsWindow(t *testing.T) {
	t.Parallel()
	l := partition{t: t}
	l.want(0, false, 0)(l.produce(1, 0, 0, 3, true))
	if first, had, err := l.end(producer.Marker{ProducerID: 1, Commit: true}); first != 0 || !had || err != nil {
		t.Fatal(first, had, err)
	}
	for range 2 {
		l.want(0, true, 0)(l.produce(1, 0, 0, 3, true))
		if _, open := l.Open(1, 0); open {
			t.Error("the duplicate opened a transaction")
		}
		l.reopen()
	}
	l.want(4, false, 0)(l.produce(1, 0, 3, 1, true))
}

// TestReuseAfterAbort is case T31: after an abort the sequences of version 2 start again under the raised epoch, and new
// values are no duplicates of the aborted ones.
func TestReuseAfterAbort(t *testing.T) {
	t.Parallel()
	l := partition{t: t}
	l.want(0, false, 0)(l.produce(1, 0, 0, 3, true))
	if _, _, err := l.end(producer.Marker{ProducerID: 1, Epoch: 1, TxnVersion: 2}); err != nil {
		t.Fatal(err)
	}
	l.want(-1, false, 47)(l.produce(1, 0, 0, 3, true)) // the old epoch is over
	l.want(-1, false, 45)(l.produce(1, 1, 3, 3, true)) // sequences go from 0
	l.want(4, false, 0)(l.produce(1, 1, 0, 3, true))
	if first, had, err := l.end(producer.Marker{ProducerID: 1, Epoch: 2, Commit: true, TxnVersion: 2}); first != 4 || !had || err != nil {
		t.Fatal(first, had, err)
	}
}

// TestEmptyAbort is case T46: an abort without data ends nothing, and what is committed later is no part of it.
func TestEmptyAbort(t *testing.T) {
	t.Parallel()
	for _, version := range []int16{1, 2} {
		l := partition{t: t}
		raise := version - 1
		if first, had, err := l.end(producer.Marker{ProducerID: 1, Epoch: raise, TxnVersion: version}); had || err != nil {
			t.Errorf("an abort without data ended one from %d, %v", first, err)
		}
		l.want(1, false, 0)(l.produce(1, raise, 0, 1, true))
		first, had, err := l.end(producer.Marker{ProducerID: 1, Epoch: 2 * raise, Commit: true, TxnVersion: version})
		if first != 1 || !had || err != nil {
			t.Errorf("the commit ended one from %d, %v, %v", first, had, err)
		}
	}
}

// TestMarkerEpochs holds the rule of KIP-1228 against a late marker, and that of the coordinator's epoch.
func TestMarkerEpochs(t *testing.T) {
	t.Parallel()
	l := partition{t: t}
	marker := func(epoch int16, coordinator int32, commit bool, version int16) producer.Marker {
		return producer.Marker{ProducerID: 1, Epoch: epoch, CoordinatorEpoch: coordinator, Commit: commit, TxnVersion: version}
	}
	refused := func(m producer.Marker, code int16, repeated bool) {
		t.Helper()
		err := l.CheckMarker(m)
		if codeOf(err) != code || errors.Is(err, producer.ErrMarkerRepeated) != repeated {
			t.Errorf("%+v: %v", m, err)
		}
	}
	l.want(0, false, 0)(l.produce(1, 5, 0, 1, true))
	refused(marker(-1, 0, true, 2), 47, false)
	refused(marker(4, 0, true, 1), 47, false)
	refused(marker(5, 0, true, 2), 47, false) // not above the data's, and never written
	if _, _, err := l.end(marker(6, 7, true, 2)); err != nil {
		t.Fatal(err)
	}
	refused(marker(6, 7, true, 2), 47, true)
	refused(marker(6, 8, true, 2), 47, true)   // by the next coordinator
	refused(marker(6, 7, false, 2), 47, false) // the other decision is no repeat
	refused(marker(7, 6, true, 2), 52, false)
	l.want(2, false, 0)(l.produce(1, 6, 0, 1, true)) // the next transaction
	for range 2 {
		refused(marker(6, 7, true, 2), 47, true) // the late marker must not commit it
		if first, open := l.Open(1, 6); !open || first != 2 {
			t.Errorf("open %v from %d", open, first)
		}
		l.reopen()
	}
	if first, had, err := l.end(marker(7, 7, false, 2)); first != 2 || !had || err != nil {
		t.Fatal(first, had, err)
	}
	if err := l.CheckMarker(marker(7, 7, false, 1)); err != nil { // version 1 allows the same epoch
		t.Error(err)
	}
}

func TestOpenTransactions(t *testing.T) {
	t.Parallel()
	l := partition{t: t}
	l.want(0, false, 0)(l.produce(1, 0, 0, 1, true))
	l.want(1, false, 0)(l.produce(2, 0, 0, 1, true))
	l.want(-1, false, 48)(l.produce(1, 0, 1, 1, false)) // outside of its transaction
	l.want(-1, false, 51)(l.produce(1, 1, 0, 1, true))  // a new epoch must not join the old transaction
	if err := l.CheckInternal(producer.Batch{ProducerID: 1, Epoch: 1}); codeOf(err) != 51 {
		t.Errorf("a coordinator's batch: %v", err)
	}
	if err := l.CheckInternal(producer.Batch{ProducerID: 1, Epoch: -1}); codeOf(err) != 47 {
		t.Errorf("a coordinator's batch of epoch -1: %v", err)
	}
	l.want(2, false, 0)(l.produce(1, 0, 1, 1, true))
	if first, ok := l.FirstOpen(); !ok || first != 0 {
		t.Errorf("first open %d, %v", first, ok)
	}
	if _, _, err := l.end(producer.Marker{ProducerID: 1}); err != nil {
		t.Fatal(err)
	}
	if first, ok := l.FirstOpen(); !ok || first != 1 {
		t.Errorf("first open %d, %v", first, ok)
	}
	if _, open := l.Open(2, 1); open {
		t.Error("open under another epoch")
	}
	if _, _, err := l.end(producer.Marker{ProducerID: 2, Commit: true}); err != nil {
		t.Fatal(err)
	}
	if _, ok := l.FirstOpen(); ok {
		t.Error("a transaction is left open")
	}
}

// TestExpiry is case T27: a marker is a sign of life, and an open transaction keeps its producer for ever. Time is the
// broker's: the records of this test are of 1970.
func TestExpiry(t *testing.T) {
	t.Parallel()
	const day = 86_400_000
	l := partition{t: t, now: 100 * day}
	l.want(0, false, 0)(l.produce(1, 0, 0, 1, true))
	l.want(1, false, 0)(l.produce(2, 0, 0, 1, false))
	if n := l.Expire(l.now+day-1, day, 1<<30); n != 0 {
		t.Errorf("%d expired early", n)
	}
	l.reopen()
	if n := l.Expire(l.now+day, day, 1<<30); n != 1 || l.Len() != 1 {
		t.Errorf("%d expired, %d left", n, l.Len())
	}
	if n := l.Expire(l.now+1000*day, day, 1<<30); n != 0 {
		t.Error("a producer with an open transaction expired")
	}
	l.now += day - 1
	if _, _, err := l.end(producer.Marker{ProducerID: 1, Commit: true}); err != nil {
		t.Fatal(err)
	}
	l.now += day - 1
	l.Expire(l.now, day, 1<<30)
	l.want(-1, false, 45)(l.produce(1, 0, 5, 1, true)) // still known
	l.want(3, false, 0)(l.produce(1, 0, 1, 1, true))
	l.want(4, false, 0)(l.produce(2, 0, 9, 1, false)) // forgotten: any sequence
}

func TestDoesNotAllocate(t *testing.T) {
	var table producer.Table
	b := producer.Batch{ProducerID: 1, LastSequence: 9, LastOffset: 9, TimestampMs: 1, SeenMs: 1, Transactional: true}
	table.Apply(b)
	if n := testing.AllocsPerRun(100, func() {
		b.BaseSequence, b.LastSequence = b.BaseSequence+10, b.LastSequence+10
		b.BaseOffset, b.LastOffset = b.BaseOffset+10, b.LastOffset+10
		if _, dup, err := table.Check(b); dup || err != nil {
			t.Fatal(dup, err)
		}
		table.Apply(b)
		if _, dup, err := table.Check(b); !dup || err != nil {
			t.Fatal(dup, err)
		}
		if _, ok := table.FirstOpen(); !ok {
			t.Fatal("nothing is open")
		}
	}); n > 0 {
		t.Errorf("%v allocations for a batch", n)
	}
}
