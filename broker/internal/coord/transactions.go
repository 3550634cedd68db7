package coord

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/millrace/millrace/core/clock"
	"github.com/millrace/millrace/txn/coordinator"
	"github.com/millrace/millrace/txn/producer"
)

// The internal topics.
const (
	GroupTopic = "__consumer_offsets"
	TxnTopic   = "__transaction_state"
)

// TopicPartition names a partition that takes part in a transaction.
type TopicPartition = coordinator.TopicPartition

// GroupLog is what the transaction coordinator needs of the group coordinator's
// runtime, which is one.
type GroupLog interface {
	PartitionFor(group string) int32
	AppendMarker(index int32, m producer.Marker, durable func(error)) error
	AwaitAll(index int32, fn func(error))
}

// TransactionsOptions configure the transaction coordinator. What has no default
// must be set.
type TransactionsOptions struct {
	// Partitions is how many partitions __transaction_state has.
	Partitions int32
	// Open gives a partition of __transaction_state.
	Open func(index int32) (Log, error)
	// Data gives a partition that takes part in a transaction. An error that wraps
	// [ErrNoPartition] says that it was deleted, and the transaction goes on without
	// it; any other is tried again. So metadata must be complete before Start.
	Data func(topic string, index int32) (MarkerLog, error)
	// Groups holds the partitions of __consumer_offsets.
	Groups GroupLog
	// ProducerIDs gives an id that was never given before; an error makes the client
	// ask again. It does not block.
	ProducerIDs func() (int64, error)
	// MaxTimeout bounds what clients may ask for as transaction timeout. 0 is 15
	// minutes.
	MaxTimeout time.Duration
	// Expiration is how long an id at rest is kept, 0 is 7 days; SweepInterval is how
	// far apart the times are at which ids are forgotten, 0 is an hour.
	Expiration, SweepInterval time.Duration
	// TwoPhase lets clients take part in two-phase commits. A transaction of one that is
	// open for NoticeAfter is logged, again and again; 0 is 15 minutes.
	TwoPhase    bool
	NoticeAfter time.Duration

	Clock  clock.Clock  // nil is the system's
	Logger *slog.Logger // nil discards
}

// Validate names the field that is wrong.
func (o TransactionsOptions) Validate() error {
	switch {
	case o.Data == nil:
		return fmt.Errorf("transaction coordinator options: Data is not set")
	case o.Groups == nil:
		return fmt.Errorf("transaction coordinator options: Groups is not set")
	}
	return o.machine().Validate()
}

// machine is what the machine of each shard needs.
func (o TransactionsOptions) machine() coordinator.Options {
	return coordinator.Options{
		ProducerIDs: o.ProducerIDs, MaxTimeout: o.MaxTimeout, Expiration: o.Expiration, SweepInterval: o.SweepInterval,
		TwoPhase: o.TwoPhase, NoticeAfter: o.NoticeAfter,
	}
}

// decisionKey names a decision. A transactional id has one at a time, but under
// version 1 the next may have the same producer id and epoch.
type decisionKey struct {
	id         string
	producerID int64
	epoch      int16
	commit     bool
}

type txnShard = Shard[*txnMachine]

// Transactions is the transaction coordinator of a broker. Its methods do not block
// and are safe for concurrent use; each calls done once, now or later, from any
// goroutine.
type Transactions struct {
	o  TransactionsOptions
	rt *Runtime[*txnMachine]

	mu sync.Mutex
	// running are the decisions being carried out, so that none is carried out by
	// two at once, not even when its shard was lost and loaded again: a second COMMIT
	// that comes late could end a part of the next transaction.
	running map[decisionKey]*completion
}

// completion carries out one decision: markers to all partitions, the answer to the
// client, Complete… when the markers are durable. It runs on workers, on callbacks of
// partitions and of the clock, and holds no lock while it calls any of them.
type completion struct {
	t     *Transactions
	shard *txnShard
	d     coordinator.Decision
	key   decisionKey

	mu sync.Mutex // owns everything below
	// todo are the partitions whose marker is to be appended, as places in d.Partitions.
	todo []int
	// finished says of each partition that its marker is durable, or that it needs none any more.
	finished []bool
	// open counts what is under way: markers that are not durable yet, and attempt
	// itself.
	open     int
	attempts int
	answered bool
}

// NewTransactions makes the coordinator. Until Start has loaded its log it answers
// COORDINATOR_LOAD_IN_PROGRESS.
func NewTransactions(o TransactionsOptions) (*Transactions, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	t := &Transactions{running: map[decisionKey]*completion{}}
	rt, err := NewRuntime(Options[*txnMachine]{
		Topic: TxnTopic, Partitions: o.Partitions, Open: o.Open,
		New: func(int32) *txnMachine {
			m, err := coordinator.New(o.machine())
			if err != nil {
				panic(err) // the same options were validated above
			}
			return &txnMachine{m}
		},
		Effect: func(s *txnShard, effect any) {
			switch e := effect.(type) {
			case coordinator.Decision:
				t.carryOut(s, e)
			case coordinator.Notice:
				t.tell(e)
			}
		},
		BaseSequence: -1,
		Clock:        o.Clock, Logger: o.Logger,
	})
	if err != nil {
		return nil, err
	}
	o.Clock, o.Logger = rt.o.Clock, rt.o.Logger
	t.o, t.rt = o, rt
	return t, nil
}

// Start loads the log in the background; decisions that were under way are carried
// out to the end.
func (t *Transactions) Start() { t.rt.Start() }

// Close answers everybody who waits and stops. Decisions under way are carried out
// after the next start.
func (t *Transactions) Close() { t.rt.Close() }

// PartitionFor is the partition of __transaction_state that coordinates an id.
func (t *Transactions) PartitionFor(txnID string) int32 { return t.rt.PartitionFor(txnID) }

// Dump writes the durable state of all ids of the shard, for tests and inspection.
func (t *Transactions) Dump(index int32, done func(string, error)) {
	s := t.rt.Shard(index)
	if s == nil {
		done("", ErrNoPartition)
		return
	}
	s.Do(func(r any) {
		if f, ok := r.(Failure); ok {
			done("", f)
			return
		}
		done(r.(string), nil)
	}, func(m *txnMachine, _ int64, to Token) Output {
		return Output{Replies: []Reply{{To: to, Response: m.Dump()}}}
	})
}

// InitProducerID gives out the next epoch of a transactional id.
func (t *Transactions) InitProducerID(r coordinator.InitRequest, done func(coordinator.InitReply)) {
	t.rt.ForKey(r.ID).Do(func(response any) {
		if f, ok := response.(Failure); ok {
			done(coordinator.InitReply{Code: f.Code, ProducerID: -1, Epoch: -1, OngoingProducerID: -1, OngoingEpoch: -1})
			return
		}
		done(response.(coordinator.InitReply))
	}, func(m *txnMachine, nowMs int64, to Token) Output {
		return txnOutput(m.InitProducerID(nowMs, coordinator.Token(to), r))
	})
}

// Add adds partitions on behalf of a client's AddPartitionsToTxn or AddOffsetsToTxn.
func (t *Transactions) Add(r coordinator.AddRequest, done func(codes []int16)) {
	t.rt.ForKey(r.ID).Do(func(response any) {
		if f, ok := response.(Failure); ok {
			codes := make([]int16, len(r.Partitions))
			for i := range codes {
				codes[i] = f.Code
			}
			done(codes)
			return
		}
		done(response.(coordinator.AddReply).Codes)
	}, func(m *txnMachine, nowMs int64, to Token) Output {
		return txnOutput(m.AddPartitions(nowMs, coordinator.Token(to), r))
	})
}

// brokerVersion is the version of AddPartitionsToTxn that brokers speak.
const brokerVersion = 5

// AddPartitions is what a Produce or TxnOffsetCommit request asks before its first
// append in a transaction: under transaction version 2 it adds the partitions,
// otherwise (verifyOnly) it asks whether the client has added them. The answer comes
// when it is durable. A producer that was fenced is told INVALID_PRODUCER_EPOCH, the
// only code for that which these requests know. Left for the caller to fit to its
// request are CONCURRENT_TRANSACTIONS, the codes of a coordinator that is not there,
// and the answer to the owner of a transaction that its timeout has ended:
// TRANSACTION_ABORTABLE when adding, UNKNOWN_PRODUCER_ID when verifying.
func (t *Transactions) AddPartitions(txnID string, pid int64, epoch int16, parts []TopicPartition, verifyOnly bool, done func(codes []int16)) {
	t.Add(coordinator.AddRequest{
		ID: txnID, ProducerID: pid, Epoch: epoch, Partitions: parts,
		Implicit: !verifyOnly, VerifyOnly: verifyOnly, Version: brokerVersion,
	}, func(codes []int16) {
		for i, c := range codes {
			if c == coordinator.CodeProducerFenced {
				codes[i] = coordinator.CodeInvalidProducerEpoch
			}
		}
		done(codes)
	})
}

// GroupPartition is the partition that a transaction with offsets of a group takes
// in.
func (t *Transactions) GroupPartition(group string) TopicPartition {
	return TopicPartition{Topic: GroupTopic, Partition: t.o.Groups.PartitionFor(group)}
}
