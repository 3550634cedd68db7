package coord

import (
	"bytes"
	"fmt"
	"time"

	"github.com/millrace/millrace/core/record"
)

// A failed load is tried again after a while, longer each time.
const (
	reloadMin = 50 * time.Millisecond
	reloadMax = 5 * time.Second
)

// load replays the log into a new machine and starts to serve. It runs on a worker;
// nobody else touches the shard's machine meanwhile, for it is not serving.
func (s *Shard[M]) load() {
	log, err := s.o.Open(s.index)
	var m M
	last, newest := int64(-1), int64(0)
	if err == nil {
		m = s.o.New(s.index)
		last, newest, err = s.replay(log, m)
	}
	s.mu.Lock()
	s.time.Raise(time.UnixMilli(newest))
	if s.state != loading {
		s.mu.Unlock()
		return
	}
	if err != nil {
		s.retryLoad(err)
		s.mu.Unlock()
		return
	}
	s.state, s.log, s.machine, s.last = serving, log, m, last
	s.attempts, s.timer, s.broken = 0, nil, nil
	s.generation++
	st := s.begin()
	if l, ok := any(m).(Loader); ok {
		s.apply(&st, l.Loaded(s.nowMs()), 0)
	}
	s.resume(&st)
	s.arm()
	s.end(&st)
	s.mu.Unlock()
	s.o.Logger.Debug("coordinator loaded", "topic", s.o.Topic, "partition", s.index, "last_offset", last)
	s.release(st)
}

// replay feeds the whole log into m and returns the last offset and the newest time.
func (s *Shard[M]) replay(log Log, m M) (last, newestMs int64, err error) {
	var scratch record.Scratch
	err = log.Replay(func(b record.Batch) error {
		newestMs = max(newestMs, b.MaxTimestamp())
		if b.Attributes().Control() {
			mk, ok, err := b.Marker()
			if err == nil && ok {
				err = m.ReplayMarker(mk, b.LastOffset())
			}
			return err
		}
		for r, err := range b.Records(&scratch) {
			if err != nil {
				return err
			}
			err = m.Replay(Replayed{
				Offset: r.Offset, TimestampMs: r.Timestamp,
				ProducerID: b.ProducerID(), ProducerEpoch: b.ProducerEpoch(), Transactional: b.Attributes().Transactional(),
				Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value),
			})
			if err != nil {
				return fmt.Errorf("offset %d: %w", r.Offset, err)
			}
		}
		return nil
	})
	if err != nil {
		return -1, 0, fmt.Errorf("load %s-%d: %w", s.o.Topic, s.index, err)
	}
	return log.Marks().LogEnd - 1, newestMs, nil
}

// retryLoad arranges the next try; the caller holds mu.
func (s *Shard[M]) retryLoad(err error) {
	wait := min(reloadMin<<min(s.attempts, 10), reloadMax)
	s.attempts++
	s.broken = err
	s.o.Logger.Error("coordinator can not load its log", "topic", s.o.Topic, "partition", s.index, "error", err, "retry_in", wait)
	s.timer = s.o.Clock.AfterFunc(wait, func() { s.work.push(s.load) })
}

// lose drops the machine of that generation, tells all who wait, and loads again:
// what the log holds is not known until it was read. They are told before the load
// begins, so that the new machine finds nobody acting on behalf of the old one. It
// must not be called with a lock held.
func (s *Shard[M]) lose(generation int, err error) {
	s.mu.Lock()
	if s.state != serving || s.generation != generation {
		s.mu.Unlock()
		return
	}
	s.state = loading
	told := s.drop()
	s.mu.Unlock()
	s.o.Logger.Error("coordinator lost its log, loads again", "topic", s.o.Topic, "partition", s.index, "error", err)
	for _, reply := range told {
		reply(Failure{Code: CodeCoordinatorNotAvailable, Err: err, Lost: true})
	}
	s.work.push(s.load)
}

// drop lets the machine go and returns who waits for it; the caller holds mu.
func (s *Shard[M]) drop() []func(any) {
	var none M
	s.machine, s.log = none, nil
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	return s.waiters.takeAll()
}

// close ends the shard.
func (s *Shard[M]) close() {
	s.mu.Lock()
	s.state = closed
	told := s.drop()
	s.mu.Unlock()
	for _, reply := range told {
		reply(Failure{Code: CodeCoordinatorNotAvailable, Err: errClosed, Lost: true})
	}
}
