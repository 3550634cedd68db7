package coord

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/millrace/millrace/core/clock"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/txn/producer"
)

// Options of a [Runtime].
type Options[M Machine] struct {
	// Topic names the internal topic, for errors and the log.
	Topic string
	// Partitions is how many it has. It never changes: it is in the hash of every
	// key.
	Partitions int32
	// Open gives the partition of a shard, at the start and again after a failed
	// sync.
	Open func(index int32) (Log, error)
	// New gives an empty machine.
	New func(index int32) M
	// Effect carries out an effect of a machine, on a worker with no lock held. It
	// does not block. nil when the machine has none.
	Effect func(s *Shard[M], effect any)
	// BaseSequence is what batches without a producer carry as their base sequence.
	// Kafka writes 0 in __consumer_offsets and -1 in __transaction_state, and nobody
	// looks at it.
	BaseSequence int32
	// MaxBatchBytes bounds a batch. 0 is 1 MB, which every topic takes.
	MaxBatchBytes int
	// Workers is how many goroutines load shards and carry out effects. 0 is 4.
	Workers int
	Clock   clock.Clock  // nil is the system's
	Logger  *slog.Logger // nil discards
}

const (
	defaultMaxBatchBytes = 1 << 20
	defaultWorkers       = 4
	// maxPartitions is Kafka's own bound of a topic in one request, far above any
	// use.
	maxPartitions = 10_000
)

// Validate names the field that is wrong.
func (o Options[M]) Validate() error {
	switch {
	case o.Topic == "":
		return fmt.Errorf("coordinator options: Topic is empty")
	case o.Partitions < 1 || o.Partitions > maxPartitions:
		return fmt.Errorf("coordinator options of %s: Partitions is %d, must be 1 to %d", o.Topic, o.Partitions, maxPartitions)
	case o.Open == nil:
		return fmt.Errorf("coordinator options of %s: Open is not set", o.Topic)
	case o.New == nil:
		return fmt.Errorf("coordinator options of %s: New is not set", o.Topic)
	case o.MaxBatchBytes < 0:
		return fmt.Errorf("coordinator options of %s: MaxBatchBytes is %d, the least is 0", o.Topic, o.MaxBatchBytes)
	case o.Workers < 0:
		return fmt.Errorf("coordinator options of %s: Workers is %d, the least is 0", o.Topic, o.Workers)
	}
	return nil
}

func (o Options[M]) withDefaults() Options[M] {
	if o.Effect == nil {
		o.Effect = func(*Shard[M], any) {}
	}
	if o.MaxBatchBytes == 0 {
		o.MaxBatchBytes = defaultMaxBatchBytes
	}
	if o.Workers == 0 {
		o.Workers = defaultWorkers
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

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
	time    clock.Steady
	// timer wakes the machine at timerMs, or is nil.
	timer   clock.Timer
	timerMs int64
	// pauseMs is the time before which no tick runs: the last one could not be appended.
	// It outlives a load, or a log that takes no writes would be loaded again and again.
	pauseMs int64
	// attempts counts failed loads in a row, for the back-off.
	attempts int
	broken   error // of the last failed load; nil after one that went well
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
	if s.broken != nil { // clients look for another coordinator then, and an operator reads why
		return Failure{Code: CodeCoordinatorNotAvailable, Err: s.broken}
	}
	return Failure{Code: CodeCoordinatorLoading, Err: errLoading}
}

var (
	errClosed  = errors.New("coordinator is closed")
	errLoading = errors.New("coordinator loads its log")
)

// nowMs is the coordinator's time; the caller holds mu. It never goes back, not over a
// load either, for the machine's deadlines are times of day: a clock that is set back by
// an hour would make each rebalance, session and transaction last an hour longer.
func (s *Shard[M]) nowMs() int64 { return s.time.Now().UnixMilli() }

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

// look shows the machine to f, which must not change it. What f sees may not be durable. It does not run while there is no machine.
func (s *Shard[M]) look(f func(m M)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == serving {
		f(s.machine)
	}
}
