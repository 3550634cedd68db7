package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/core/partition"
)

// ProducerOptions describe a transactional producer.
type ProducerOptions struct {
	// Mode is what commits promise. The default is ExactlyOnce.
	Mode Mode
	// TransactionalID is the producer's identity; opening a second producer
	// with it fences the first. Required, except without transactions, where it
	// only names the producer in errors.
	TransactionalID string
	// Timeout is how long the coordinator lets a transaction stay open before
	// it aborts it. Default 10 s. Commits are not tried past it.
	Timeout time.Duration
	// OnStep is called before each step of a commit. An error from it leaves
	// everything where it is, as a crash at this point would; the producer is
	// of no use afterwards. It is there to test crash safety.
	OnStep func(Step) error
}

// Step is a point in a commit.
type Step string

// The steps of a commit, in order.
const (
	StepFlush   Step = "flush"   // before the last records are acknowledged
	StepOffsets Step = "offsets" // before the offsets join the transaction
	StepEnd     Step = "end"     // before the commit is asked for
	StepDone    Step = "done"    // after it is confirmed
)

const defaultTimeout = 10 * time.Second

// Validate names the field that is wrong.
func (o ProducerOptions) Validate() error {
	if err := o.Mode.validate(); err != nil {
		return err
	}
	switch {
	case o.TransactionalID == "" && o.Mode == ExactlyOnce:
		return errors.New("session: ProducerOptions.TransactionalID is empty")
	case o.Timeout < 0:
		return fmt.Errorf("session: ProducerOptions.Timeout is %v, must not be negative", o.Timeout)
	case o.Timeout > 0 && o.Timeout < 100*time.Millisecond:
		return fmt.Errorf("session: ProducerOptions.Timeout is %v, must be at least 100ms", o.Timeout)
	}
	return nil
}

// Producer sends records in transactions, one at a time. Its methods are for
// one goroutine; acknowledgements arrive on others.
//
// A transaction begins with the first Send and ends with Commit or Abort. After
// [ErrFenced] and [ErrUnknownOutcome] the producer does nothing until Renew.
type Producer struct {
	cluster *Cluster
	options ProducerOptions

	client *kgo.Client
	open   bool // a transaction is open
	// limit bounds the delivery of its records. The client's own delivery
	// timeout will not do: it counts from the record's timestamp, and a record
	// of 2001 would be late before it is sent.
	limit   context.Context
	unlimit context.CancelFunc
	begun   time.Time   // when it was opened
	sent    int64       // records of it
	broken  error       // set: Renew is needed
	chunk   []byte      // bytes of sent records; see keep
	full    [][]byte    // filled chunks of this transaction
	spare   [][]byte    // chunks of earlier transactions, to be filled again
	held    []*outgoing // records of AtMostOnce, until the offsets are committed
	failure atomic.Pointer[error]
	pool    sync.Pool
}

// NewProducer opens a producer: from now on, any earlier one with the same
// transactional id is fenced, and its open transaction is aborted.
func (c *Cluster) NewProducer(ctx context.Context, options ProducerOptions) (*Producer, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	if options.Timeout == 0 {
		options.Timeout = defaultTimeout
	}
	p := &Producer{cluster: c, options: options}
	p.pool.New = func() any {
		o := &outgoing{producer: p}
		o.done = o.acknowledged
		return o
	}
	if err := p.Renew(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// Renew takes a new epoch, which aborts whatever transaction of this id is
// open and fences every other holder of the id. The outcome of an earlier
// commit is settled afterwards.
func (p *Producer) Renew(ctx context.Context) error {
	p.drop()
	opts := p.cluster.clientOptions()
	if p.options.Mode == ExactlyOnce {
		opts = append(opts, kgo.TransactionalID(p.options.TransactionalID), kgo.TransactionTimeout(p.options.Timeout))
	}
	client, err := kgo.NewClient(append(opts,
		kgo.RecordPartitioner(kgo.BasicConsistentPartitioner(choosePartition)),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.MaxBufferedRecords(200_000),
		kgo.MaxBufferedBytes(64<<20),
	)...)
	if err != nil {
		return fmt.Errorf("session: transactional id %s: %w", p.options.TransactionalID, err)
	}
	err = p.cluster.retry(ctx, func() error {
		_, _, err := client.ProducerID(ctx)
		return err
	})
	if err != nil {
		client.Close()
		p.broken = fmt.Errorf("session: transactional id %s: init producer id: %w", p.options.TransactionalID, err)
		return p.broken
	}
	p.client, p.broken = client, nil
	return nil
}

// drop lets go of the client without ending its transaction.
func (p *Producer) drop() {
	if p.client != nil {
		p.client.UnsafeAbortBufferedRecords()
		p.client.Close()
		p.client = nil
	}
	p.broken = fmt.Errorf("%w: transactional id %s", ErrClosed, p.options.TransactionalID)
	p.finish()
	// Requests of the old client may still be reading the old chunks.
	p.chunk, p.spare = nil, nil
}

// choosePartition respects an explicit partition and else hashes the key.
func choosePartition(string) func(*kgo.Record, int) int {
	next := -1
	return func(r *kgo.Record, n int) int {
		switch {
		case r.Partition >= 0:
			return int(r.Partition)
		case r.Key == nil:
			next = (next + 1) % n
			return next
		}
		return int(partition.ForKey(r.Key, int32(n)))
	}
}

// Sent is how many records the open transaction has.
func (p *Producer) Sent() int64 { return p.sent }

// Deadline is when the open transaction has to be over, with some reserve for
// the way; ok is false when none is open, or in a mode without any. Whatever retries within a transaction
// must not go on past it.
func (p *Producer) Deadline() (deadline time.Time, ok bool) {
	return p.begun.Add(p.options.Timeout * 9 / 10), p.open && p.options.Mode == ExactlyOnce
}

// Ack collects the acknowledgements of the records sent with it. The zero value
// is ready; it may be used for one partition at a time.
type Ack struct{ next atomic.Int64 }

// Next is the offset after the last acknowledged record, 0 when there was none.
func (a *Ack) Next() int64 { return a.next.Load() }

// Send adds a record to the transaction and opens one when there is none. The
// record is copied. An error of the transmission itself comes from Commit. It
// waits while too much is on its way already. The transaction's records are
// bound to the ctx of its first Send.
func (p *Producer) Send(ctx context.Context, r *Record, ack *Ack) error {
	if p.broken != nil {
		return p.broken
	}
	if !p.open {
		if err := p.begin(ctx); err != nil {
			return err
		}
	}
	o := p.pool.Get().(*outgoing)
	o.ack = ack
	o.record = kgo.Record{
		Topic: r.Topic, Partition: r.Partition,
		Key: p.keep(r.Key), Value: p.keep(r.Value),
		Headers: o.record.Headers[:0], Timestamp: r.Time,
	}
	for _, h := range r.Headers {
		o.record.Headers = append(o.record.Headers, kgo.RecordHeader{Key: h.Key, Value: p.keep(h.Value)})
	}
	p.sent++
	if p.options.Mode == AtMostOnce {
		p.held = append(p.held, o)
		return nil
	}
	p.client.Produce(p.limit, &o.record, o.done)
	return nil
}

// begin opens a transaction, or what stands in its place.
func (p *Producer) begin(ctx context.Context) error {
	if p.options.Mode != ExactlyOnce {
		p.limit, p.unlimit = context.WithCancel(ctx)
		p.open, p.begun = true, time.Now()
		return nil
	}
	if err := p.client.BeginTransaction(); err != nil {
		p.broken = before("begin", err)
		return p.broken
	}
	p.open, p.begun = true, time.Now()
	p.limit, p.unlimit = context.WithDeadline(ctx, p.begun.Add(p.options.Timeout))
	return nil
}

// outgoing is a record on its way; it is reused once acknowledged.
type outgoing struct {
	record   kgo.Record
	producer *Producer
	ack      *Ack
	done     func(*kgo.Record, error)
}

func (o *outgoing) acknowledged(r *kgo.Record, err error) {
	p := o.producer
	if err != nil {
		err = fmt.Errorf("produce to %s partition %d: %w", r.Topic, r.Partition, err)
		p.failure.CompareAndSwap(nil, &err)
	} else if o.ack != nil {
		o.ack.next.Store(r.Offset + 1)
	}
	o.ack = nil
	p.pool.Put(o)
}

const chunkSize = 256 << 10

// keep copies bytes into a chunk that lives until the transaction is over. Nil
// stays nil.
func (p *Producer) keep(b []byte) []byte {
	if b == nil {
		return nil
	}
	if len(b) > chunkSize/4 {
		return append(make([]byte, 0, len(b)), b...)
	}
	if len(p.chunk)+len(b) > cap(p.chunk) {
		p.nextChunk()
	}
	at := len(p.chunk)
	p.chunk = append(p.chunk, b...)
	return p.chunk[at:len(p.chunk):len(p.chunk)]
}

func (p *Producer) nextChunk() {
	if cap(p.chunk) > 0 {
		p.full = append(p.full, p.chunk)
	}
	if n := len(p.spare); n > 0 {
		p.chunk, p.spare = p.spare[n-1][:0], p.spare[:n-1]
		return
	}
	p.chunk = make([]byte, 0, chunkSize)
}

// finish forgets the transaction. All of its records are acknowledged, so the
// chunks are free.
func (p *Producer) finish() {
	if p.open {
		p.unlimit()
	}
	p.open, p.sent = false, 0
	clear(p.held)
	p.held = p.held[:0]
	p.failure.Store(nil)
	p.spare = append(p.spare, p.full...)
	clear(p.full)
	p.full = p.full[:0]
	p.chunk = p.chunk[:0]
}

// Close lets go of the producer. An open transaction is aborted.
func (p *Producer) Close(ctx context.Context) error {
	var err error
	if p.open && p.broken == nil {
		err = p.Abort(ctx)
	}
	p.drop()
	return err
}
