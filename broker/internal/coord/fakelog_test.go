package coord

import (
	"bytes"
	"errors"
	"slices"
	"sync"

	"github.com/millrace/millrace/broker/internal/partition"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/txn/producer"
)

// fakeLog is a partition in memory whose durability and failures the test decides.
// Batches beyond durable are what a power cut takes.
type fakeLog struct {
	mu      sync.Mutex
	batches []record.Batch
	end     int64
	durable int64 // offsets below it are durable
	auto    bool  // everything is durable at once
	refuse  error // of the next appends
	dead    error // of everything, from a failed sync on
	waiting []fakeWait
}

type fakeWait struct {
	offset int64
	fn     func(error)
}

func (l *fakeLog) append(b record.Batch) (partition.Appended, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := errors.Join(l.refuse, l.dead); err != nil {
		return partition.Appended{}, err
	}
	b.SetBaseOffset(l.end)
	l.batches = append(l.batches, b)
	l.end += int64(b.Count())
	if l.auto {
		l.durable = l.end
	}
	return partition.Appended{BaseOffset: b.BaseOffset(), LastOffset: b.LastOffset(), LogAppendTimeMs: -1}, nil
}

func (l *fakeLog) Append(b []byte, _ partition.AppendOptions) (partition.Appended, error) {
	return l.append(bytes.Clone(b))
}

func (l *fakeLog) AppendMarker(m producer.Marker) (partition.Appended, error) {
	return l.append(record.BuildControl(nil, record.Marker{
		ProducerID: m.ProducerID, ProducerEpoch: m.Epoch, Commit: m.Commit, CoordinatorEpoch: m.CoordinatorEpoch,
	}))
}

func (l *fakeLog) LastOffset(producerID int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range slices.Backward(l.batches) {
		if b.ProducerID() == producerID && !b.Attributes().Control() {
			return b.LastOffset()
		}
	}
	return -1
}

func (l *fakeLog) AwaitDurable(offset int64, fn func(error)) { l.Await(offset, fn) }

func (l *fakeLog) Await(offset int64, fn func(error)) {
	l.mu.Lock()
	if offset >= l.durable && l.dead == nil {
		l.waiting = append(l.waiting, fakeWait{offset, fn})
		l.mu.Unlock()
		return
	}
	err := l.dead
	if offset < l.durable {
		err = nil
	}
	l.mu.Unlock()
	fn(err)
}

func (l *fakeLog) Marks() partition.Marks {
	l.mu.Lock()
	defer l.mu.Unlock()
	return partition.Marks{HighWatermark: l.durable, LastStable: l.durable, LogEnd: l.end}
}

func (l *fakeLog) Replay(fn func(record.Batch) error) error {
	l.mu.Lock()
	all, err := slices.Clone(l.batches), l.dead
	l.mu.Unlock()
	for _, b := range all {
		if err == nil {
			err = fn(b)
		}
	}
	return err
}

// sync makes everything durable; fail makes the sync fail, which takes all that was
// not durable with it.
func (l *fakeLog) sync() { l.settle(nil) }

func (l *fakeLog) fail(err error) { l.settle(err) }

func (l *fakeLog) settle(err error) {
	l.mu.Lock()
	if err == nil {
		l.durable = l.end
	} else {
		l.dead = err
	}
	ready := l.waiting
	l.waiting = nil
	l.mu.Unlock()
	for _, w := range ready {
		w.fn(err)
	}
}

// reopened is the log after a failed sync or a power cut: what was durable.
func (l *fakeLog) reopened() *fakeLog {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := &fakeLog{durable: l.durable, end: l.durable, auto: l.auto}
	for _, b := range l.batches {
		if b.LastOffset() < l.durable {
			n.batches = append(n.batches, b)
		}
	}
	return n
}
