package coord

import (
	"errors"
	"sync"

	"github.com/millrace/millrace/broker/internal/partition"
	"github.com/millrace/millrace/core/clock"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/txn/producer"
)

type shardState int8

const (
	// loading: no machine; a load is queued, under way or waits for its next try.
	loading shardState = iota
	serving
	closed
)

// Shard is one machine over one partition. All methods are safe for concurrent use
// and none blocks for longer than an append takes.
type Shard[M Machine] struct {
	index   int32
	o       *Options[M] // the runtime's, with defaults
	work    *workers    // the runtime's
	waiters waiters

	mu    sync.Mutex // owns everything below
	state shardState
	// generation counts loads. What belongs to an earlier one is ignored.
	generation int
	log        Log
	machine    M
	// last is the offset of the last record, -1 for none. Whoever waits, waits for
	// this one.
	last    int64
	builder record.Builder
	// timer wakes the machine at timerMs, or is nil.
	timer   clock.Timer
	timerMs int64
	// attempts counts failed loads in a row, for the back-off.
	attempts int
}

// step collects, under the lock, what has to happen outside of it.
type step struct {
	generation int
	log        Log
	last       int64
	replies    []Reply
	effects    []any
	failures   []Reply
	// lost says that the machine does not follow its log any more.
	lost error
}

// Index is the partition of the shard.
func (s *Shard[M]) Index() int32 { return s.index }

// Do runs a handler of the machine. reply is called once: with the response that the
// machine gave for the token, when everything before it is durable, or with a
// [Failure]. With a nil reply nobody waits, and the token is 0. f must not keep m.
func (s *Shard[M]) Do(reply func(any), f func(m M, nowMs int64, to Token) Output) {
	s.mu.Lock()
	if s.state != serving {
		failure := s.refusal()
		s.mu.Unlock()
		if reply != nil {
			reply(failure)
		}
		return
	}
	var to Token
	if reply != nil {
		to = s.waiters.add(reply)
	}
	st := s.begin()
	s.apply(&st, f(s.machine, s.nowMs(), to), to)
	s.resume(&st)
	s.arm()
	s.end(&st)
	s.mu.Unlock()
	s.release(st)
}

// Reply answers a caller whose answer was left to an effect. A caller that has its
// answer already gets no other.
func (s *Shard[M]) Reply(to Token, response any) { s.waiters.deliver(to, response) }

// AppendMarker ends a transaction on this partition: the marker is appended and the
// machine told in one step, so that no handler sees one without the other. An error
// says that nothing was appended; it may wrap [producer.ErrMarkerRepeated].
// Otherwise durable is called once.
func (s *Shard[M]) AppendMarker(m producer.Marker, durable func(error)) error {
	s.mu.Lock()
	if s.state != serving {
		failure := s.refusal()
		s.mu.Unlock()
		return failure
	}
	st := s.begin()
	a, err := s.log.AppendMarker(m)
	if err != nil {
		st.lost = s.fatal(err)
		s.end(&st)
		s.mu.Unlock()
		s.release(st)
		return err
	}
	s.last = a.LastOffset
	marker := record.Marker{
		ProducerID: m.ProducerID, ProducerEpoch: m.Epoch, Commit: m.Commit, CoordinatorEpoch: m.CoordinatorEpoch,
		TimestampMs: s.nowMs(),
	}
	if err := s.machine.ReplayMarker(marker, a.LastOffset); err != nil {
		st.lost = err
	}
	s.resume(&st)
	s.arm()
	s.end(&st)
	s.mu.Unlock()
	s.release(st)
	st.log.Await(a.LastOffset, durable)
	return nil
}

// AwaitAll calls fn when everything that is in the log now is durable, or with an
// error.
func (s *Shard[M]) AwaitAll(fn func(error)) {
	s.mu.Lock()
	if s.state != serving {
		failure := s.refusal()
		s.mu.Unlock()
		fn(failure)
		return
	}
	log, last := s.log, s.last
	s.mu.Unlock()
	if last < 0 {
		fn(nil)
		return
	}
	log.Await(last, fn)
}

// refusal is the answer while there is no machine; the caller holds mu.
func (s *Shard[M]) refusal() Failure {
	if s.state == closed {
		return Failure{Code: CodeCoordinatorNotAvailable, Err: errClosed, Lost: true}
	}
	return Failure{Code: CodeCoordinatorLoading, Err: errLoading}
}

var (
	errClosed  = errors.New("coordinator is closed")
	errLoading = errors.New("coordinator loads its log")
)

func (s *Shard[M]) nowMs() int64 { return s.o.Clock.Now().UnixMilli() }

// begin, apply, resume and end run under mu, in this order; release runs after it.
func (s *Shard[M]) begin() step { return step{generation: s.generation, log: s.log} }

// apply appends and replays an output. to is the caller that it is about, told too
// when that fails.
func (s *Shard[M]) apply(st *step, out Output, to Token) (ok bool) {
	if st.lost != nil {
		return false
	}
	if err := s.append(out); err != nil {
		s.fail(st, out, to, err)
		return false
	}
	if out.Applied != nil {
		out.Applied()
	}
	st.replies = append(st.replies, out.Replies...)
	st.effects = append(st.effects, out.Effects...)
	return true
}

// fail tells everybody whom the output would have answered, now or later.
func (s *Shard[M]) fail(st *step, out Output, to Token, err error) {
	st.lost = s.fatal(err)
	failure := Failure{Code: CodeCoordinatorNotAvailable, Err: err, Lost: st.lost != nil}
	if errors.Is(err, errTooLarge) {
		failure.Code = CodeRecordListTooLarge
	}
	told := append([]Token{to}, out.Pending...)
	for _, r := range out.Replies {
		told = append(told, r.To)
	}
	forgetter, _ := any(s.machine).(Forgetter)
	for _, to := range told {
		if to == 0 {
			continue
		}
		st.failures = append(st.failures, Reply{To: to, Response: failure})
		if forgetter != nil {
			forgetter.Forget(to)
		}
	}
}

// fatal says whether an error of an append means that machine and log are apart or
// that the log is gone. Others, such as a full disk, change nothing.
func (s *Shard[M]) fatal(err error) error {
	var pe *partition.Error
	if errors.Is(err, errReplay) || errors.As(err, &pe) && pe.Code == partition.CodeKafkaStorageError {
		return err
	}
	return nil
}

// resume lets parked requests go on.
func (s *Shard[M]) resume(st *step) {
	r, ok := any(s.machine).(Resumer)
	for ok && st.lost == nil {
		var out Output
		if out, ok = r.Resume(s.nowMs()); ok {
			s.apply(st, out, 0)
		}
	}
}

// end closes the step, before the lock is given back.
func (s *Shard[M]) end(st *step) { st.last = s.last }

// release does what a step left to do, without the lock.
func (s *Shard[M]) release(st step) {
	for _, f := range st.failures {
		s.waiters.deliver(f.To, f.Response)
	}
	if st.lost != nil {
		s.lose(st.generation, st.lost)
		return
	}
	if len(st.replies)+len(st.effects) == 0 {
		return
	}
	if st.last < 0 {
		s.settle(st, nil)
		return
	}
	st.log.Await(st.last, func(err error) { s.settle(st, err) })
}

// settle runs when a step is durable, or never will be. It is called by the log and
// takes no lock but that of the waiters.
func (s *Shard[M]) settle(st step, err error) {
	if err != nil {
		s.work.push(func() { s.lose(st.generation, err) })
		return
	}
	for _, r := range st.replies {
		s.waiters.deliver(r.To, r.Response)
	}
	if len(st.effects) > 0 {
		s.work.push(func() {
			for _, e := range st.effects {
				s.o.Effect(s, e)
			}
		})
	}
}

// leaderEpoch is the epoch under which this broker leads the shard's partition, which
// markers carry as the coordinator's epoch; 0 while there is no log.
func (s *Shard[M]) leaderEpoch() int32 {
	s.mu.Lock()
	log := s.log
	s.mu.Unlock()
	if log == nil {
		return 0
	}
	return log.Marks().LeaderEpoch
}
