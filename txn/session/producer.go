package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/core/record"
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

	sender *sender
	topics map[string]*written
	last   *written // the topic of the last record
	asked  time.Time
	filled []*lane // lanes with a parcel that is being filled

	open bool // a transaction is open
	// limit bounds the delivery of its records.
	limit   context.Context
	unlimit context.CancelFunc
	begun   time.Time // when it was opened; no two at the same time
	sent    int64     // records of it
	broken  error     // set: Renew is needed
	failed  error     // of a record that never got to the sender
	headers []record.Header
	names   []byte // of headers
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
	req := kmsg.NewPtrInitProducerIDRequest()
	var txnID *string
	if p.options.Mode == ExactlyOnce {
		id := p.options.TransactionalID
		txnID = &id
		req.TransactionalID, req.TransactionTimeoutMillis = txnID, int32(p.options.Timeout.Milliseconds())
	}
	var resp *kmsg.InitProducerIDResponse
	err := p.cluster.retry(ctx, func() (err error) {
		if resp, err = req.RequestWith(ctx, p.cluster.client); err != nil {
			return err
		}
		return kerr.ErrorForCode(resp.ErrorCode)
	})
	if err != nil {
		p.broken = fmt.Errorf("session: transactional id %s: init producer id: %w", p.options.TransactionalID, err)
		return p.broken
	}
	p.sender = newSender(p.cluster, txnID, resp.ProducerID, resp.ProducerEpoch)
	p.topics, p.last, p.broken = map[string]*written{}, nil, nil
	return nil
}

// drop lets go of the sender without ending its transaction. Requests that are on
// their way are given up: the next epoch fences them.
func (p *Producer) drop() {
	p.broken = fmt.Errorf("%w: transactional id %s", ErrClosed, p.options.TransactionalID)
	p.finish()
	p.sender, p.last = nil, nil
}

// Sent is how many records the open transaction has.
func (p *Producer) Sent() int64 { return p.sent }

// Deadline is when the open transaction has to be over, with some reserve for
// the way; ok is false when none is open, or in a mode without any. Whatever retries within a transaction
// must not go on past it.
func (p *Producer) Deadline() (deadline time.Time, ok bool) {
	return p.begun.Add(p.options.Timeout * 9 / 10), p.open && p.options.Mode == ExactlyOnce
}

// Send adds a record to the transaction and opens one when there is none. The
// record is copied. An error of the transmission itself comes from Commit. It
// waits while too much is on its way already. The transaction's records are
// bound to the ctx of its first Send.
func (p *Producer) Send(ctx context.Context, r *Record, ack *Ack) error {
	if p.broken != nil {
		return p.broken
	}
	if !p.open {
		p.begin(ctx)
	}
	p.sent++
	l, err := p.lane(r)
	if err != nil {
		p.failed = err // the first one keeps: nothing is sent after it
	}
	if p.failed != nil {
		return nil
	}
	ms := r.Time.UnixMilli()
	if r.Time.IsZero() {
		ms = time.Now().UnixMilli()
	}
	headers, size := p.headersOf(r)
	size += len(r.Key) + len(r.Value) + recordOverhead
	if l.fill != nil && !l.fill.room(size, l.most) {
		p.seal(l)
	}
	if l.fill == nil {
		l.fill = p.sender.empty()
		p.filled = append(p.filled, l)
	}
	l.fill.add(ms, r, headers, ack)
	if (l.begun != p.begun || l.fill.builder.Size() >= eagerBytes) && p.sender.idle.Load() {
		p.seal(l)
	}
	return nil
}

// Push says that nothing more will be sent for now. Where records are visible before
// the commit, they go out at once then.
func (p *Producer) Push() {
	if p.options.Mode == AtLeastOnce && p.broken == nil && p.open && p.sender.idle.Load() {
		p.sealAll()
	}
}

// recordOverhead is what a record takes beside its bytes, at most: lengths, deltas,
// attributes.
const recordOverhead = 40

// eagerBytes is how much a parcel must have to be sent although it is not full, when
// nothing else is on its way. The first record of a lane in a transaction goes at once
// then: its partition joins the transaction while others are still being processed.
const eagerBytes = 64 << 10

// begin opens a transaction, or what stands in its place.
func (p *Producer) begin(ctx context.Context) {
	p.open, p.begun = true, time.Now()
	if p.options.Mode == ExactlyOnce {
		p.limit, p.unlimit = context.WithDeadline(ctx, p.begun.Add(p.options.Timeout))
	} else {
		p.limit, p.unlimit = context.WithCancel(ctx)
	}
	if p.begun.Sub(p.asked) > metadataAge {
		p.asked = p.begun
		for _, w := range p.topics {
			w.old = true
		}
	}
	p.sender.begin(p.limit, p.options.Mode == AtMostOnce)
}

// lane finds out where a record goes.
func (p *Producer) lane(r *Record) (*lane, error) {
	w := p.last
	if w == nil || w.name != r.Topic || w.old {
		if p.failed != nil {
			return nil, p.failed
		}
		var err error
		if w, err = p.topic(r.Topic); err != nil {
			return nil, err
		}
		p.last = w
	}
	return w.route(r)
}

func (p *Producer) topic(name string) (*written, error) {
	w := p.topics[name]
	if w != nil && !w.old {
		return w, nil
	}
	t, err := p.sender.ask(p.limit, name)
	if err != nil {
		return nil, err
	}
	if w == nil {
		w = &written{name: name}
		p.topics[name] = w
	}
	p.sender.learn(w, t)
	return w, nil
}

// headersOf gives a record's headers as a batch takes them.
func (p *Producer) headersOf(r *Record) (headers []record.Header, size int) {
	if len(r.Headers) == 0 {
		return nil, 0
	}
	p.headers, p.names = p.headers[:0], p.names[:0]
	for _, h := range r.Headers {
		p.names = append(p.names, h.Key...)
	}
	at := 0
	for _, h := range r.Headers {
		p.headers = append(p.headers, record.Header{Key: p.names[at : at+len(h.Key)], Value: h.Value})
		at += len(h.Key)
		size += len(h.Key) + len(h.Value) + 2*5
	}
	return p.headers, size
}

// seal hands the parcel of a lane over.
func (p *Producer) seal(l *lane) {
	full := l.fill
	l.fill, l.begun = nil, p.begun
	p.filled = slices.DeleteFunc(p.filled, func(f *lane) bool { return f == l })
	if p.sender.post(l, full) {
		p.sender.room()
	}
}

// sealAll hands over what is there.
func (p *Producer) sealAll() {
	for len(p.filled) > 0 {
		p.seal(p.filled[len(p.filled)-1])
	}
}

// finish forgets the transaction.
func (p *Producer) finish() {
	if p.open {
		p.unlimit()
	}
	for _, l := range p.filled {
		l.fill = nil
	}
	clear(p.filled)
	p.filled = p.filled[:0]
	p.open, p.sent, p.failed = false, 0, nil
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
