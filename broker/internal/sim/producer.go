package sim

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/core/record"
)

// producer is an idempotent or transactional producer of a client: ids, sequences, batches under way. It follows the protocol
// as Kafka's own clients do, and nothing in it knows what the broker is made of.
type producer struct {
	*process
	o  *oracle
	id string // transactional id, empty for none
	v2 bool   // speaks transaction version 2
	// learns says that the version is what the cluster's level says at the begin of each transaction, not always the same.
	learns bool
	acks   int16

	pid     int64
	epoch   int16
	next    map[partitionOf]int32 // sequences
	pending []*batch              // not acknowledged, in the order of sending
	added   map[partitionOf]bool  // partitions of the transaction, version 1
	txn     *txn
	tries   int  // of sending again, to tell them apart
	stalled bool // everything will be sent again in a moment
}

type partitionOf struct {
	topic string
	index int32
}

// batch is records on their way to one partition.
type batch struct {
	to       partitionOf
	items    []*item
	sequence int32
	bytes    []byte
	done     func(outcome)
	sent     bool
}

func newProducer(p *process, o *oracle, id string, v2 bool) *producer {
	return &producer{process: p, o: o, id: id, v2: v2, pid: -1, epoch: -1, acks: all, learns: id != "" && p.w.chance(2)}
}

// repeat says whether what is asked of the transaction may come twice: version 1 has nothing to tell the second by.
func (p *producer) repeat() repeat {
	if p.v2 {
		return always
	}
	return never
}

// soon is when a client tries again.
func (p *producer) soon() time.Duration { return p.w.between(2*time.Millisecond, 30*time.Millisecond) }

const txnTimeout = 700 * time.Millisecond

// begin gets a producer id, or the next epoch of the transactional id, and aborts what an earlier producer left open. It tries
// until it has it; lost is called when somebody newer has it.
func (p *producer) begin(ready func()) {
	p.txn, p.pending, p.added = nil, nil, map[partitionOf]bool{}
	p.tries++
	p.stalled = false
	p.learn(func() { p.initialise(ready) })
}

func (p *producer) initialise(ready func()) {
	if p.id == "" && p.acks == none { // its records carry no producer id: nobody asks it to send them again
		p.next = map[partitionOf]int32{}
		ready()
		return
	}
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version = 4
	if p.v2 {
		req.Version = 5
	}
	req.ProducerID, req.ProducerEpoch = -1, -1
	if p.id != "" {
		req.TransactionalID = &p.id
		req.TransactionTimeoutMillis = int32(txnTimeout.Milliseconds())
	}
	p.call(toCoordinator, req, 1200*time.Millisecond, always, func(r kmsg.Response, err error) {
		if err != nil {
			p.after(p.soon(), "init again", func() { p.begin(ready) })
			return
		}
		resp := r.(*kmsg.InitProducerIDResponse)
		p.w.log("%s: init: %s %d/%d", p.name, word(resp.ErrorCode), resp.ProducerID, resp.ProducerEpoch)
		p.w.see("init " + word(resp.ErrorCode))
		if resp.ErrorCode != 0 {
			p.after(p.soon(), "init again", func() { p.begin(ready) })
			return
		}
		p.pid, p.epoch, p.next = resp.ProducerID, resp.ProducerEpoch, map[partitionOf]int32{}
		p.o.initialised(p.id, p.pid, p.epoch, p)
		ready()
	})
}

// open begins a transaction, which the broker does not hear of.
func (p *producer) open() {
	p.txn = &txn{id: p.id}
	p.added = map[partitionOf]bool{}
}

// send sends records to one partition as one batch. done hears what came of it; the batches behind one that failed fail too.
func (p *producer) send(to partitionOf, items []*item, done func(outcome)) {
	b := &batch{to: to, items: items, sequence: p.next[to], done: done}
	p.next[to] += int32(len(items))
	b.bytes = p.build(b)
	p.pending = append(p.pending, b)
	if p.txn != nil && !p.v2 && !p.added[to] {
		p.add(to)
		return
	}
	p.produce(b)
}

// build encodes a batch.
func (p *producer) build(b *batch) []byte {
	var builder record.Builder
	o := record.BuilderOptions{Transactional: p.txn != nil}
	if p.pid >= 0 {
		o.Producer = &record.Producer{ID: p.pid, Epoch: p.epoch, Sequence: b.sequence}
	}
	builder.Reset(o)
	for _, i := range b.items {
		key, value, headers := i.encode()
		builder.Append(written.UnixMilli(), key, value, headers)
	}
	out, err := builder.Batch()
	if err != nil {
		p.w.fail("%s: build a batch: %w", p.name, err)
	}
	return append([]byte(nil), out...)
}

// add adds a partition to a transaction of version 1, and then sends what waits for it.
func (p *producer) add(to partitionOf) {
	t := p.txn
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.Version = 3
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = p.id, p.pid, p.epoch
	rt := kmsg.NewAddPartitionsToTxnRequestTopic()
	rt.Topic, rt.Partitions = to.topic, []int32{to.index}
	req.Topics = append(req.Topics, rt)
	p.call(toCoordinator, req, 0, never, func(r kmsg.Response, err error) {
		if p.txn != t || len(p.pending) == 0 {
			return
		}
		what := unknown
		if err == nil {
			what = judge(r.(*kmsg.AddPartitionsToTxnResponse).Topics[0].Partitions[0].ErrorCode)
		}
		switch what {
		case again:
			if p.o.dropped[to.topic] {
				p.failed(abortable)
				return
			}
			fallthrough
		case unknown:
			p.after(p.soon(), "add again", func() {
				if p.txn == t && len(p.pending) > 0 {
					p.add(to)
				}
			})
		case good:
			p.added[to] = true
			for _, b := range p.pending {
				if b.to == to && !b.sent {
					p.produce(b)
				}
			}
		default:
			p.failed(what)
		}
	})
}

// produce sends one batch.
func (p *producer) produce(b *batch) {
	b.sent = true
	if l := &p.links[toData]; l.conn != nil && !l.conn.open {
		p.lost(l, l.conn, errDisconnected)
	}
	if p.stalled { // it goes with the others, in order
		return
	}
	req := kmsg.NewPtrProduceRequest()
	req.Version = 11
	if p.v2 || p.id == "" {
		req.Version = 12
	}
	if p.id != "" {
		req.TransactionID = &p.id
	}
	req.Acks, req.TimeoutMillis = p.acks, 1000
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic = b.to.topic
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Partition, rp.Records = b.to.index, b.bytes
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	if p.acks == none {
		p.unheard(b, req)
		return
	}
	twice := sameRun // what the broker knew of the producer may be lost with it, and it may begin anywhere then
	if p.v2 && p.id != "" {
		twice = always
	}
	sent := p.call(toData, req, 0, twice, func(r kmsg.Response, err error) {
		if len(p.pending) == 0 || p.pending[0] != b {
			if i := p.place(b); i < 0 {
				return // given up meanwhile
			}
		}
		if err != nil {
			p.resend()
			return
		}
		row := r.(*kmsg.ProduceResponse).Topics[0].Partitions[0]
		what := judge(row.ErrorCode)
		p.w.log("%s: produce to %s-%d sequence %d: %s, offset %d", p.name, b.to.topic, b.to.index, b.sequence, word(row.ErrorCode), row.BaseOffset)
		p.w.see("produce " + word(row.ErrorCode))
		if row.ErrorCode == kerr.OutOfOrderSequenceNumber.Code && p.id == "" && p.acks == all && b.to.topic != relaxed {
			p.w.fail("%s: sequence %d of %s-%d is out of order, and nothing before it is missing", p.name, b.sequence, b.to.topic, b.to.index)
			return
		}
		switch what {
		case good:
			i := p.place(b)
			p.pending = append(p.pending[:i], p.pending[i+1:]...)
			p.o.acknowledged(b.items, row.BaseOffset, p.asOf)
			b.done(good)
		case again, unknown:
			if p.o.dropped[b.to.topic] {
				p.failed(abortable)
				return
			}
			p.resend()
		default:
			p.failed(what)
		}
	})
	p.stalled = p.stalled || !sent
}

func (p *producer) place(b *batch) int {
	for i, have := range p.pending {
		if have == b {
			return i
		}
	}
	return -1
}

// resend sends everything again that is not acknowledged, in order, on a new connection: the sequences tell the broker what it
// has. Answers to what was sent before are forgotten with their connection.
func (p *producer) resend() {
	if c := p.links[toData].conn; c != nil {
		c.drop()
		calls := p.links[toData].calls
		for _, one := range calls {
			p.w.cancel(one.deadline)
		}
		p.links[toData] = link{}
	}
	p.tries++
	try := p.tries
	p.stalled = true
	p.after(p.soon(), "resend", func() {
		if p.tries != try {
			return
		}
		p.stalled = false
		for _, b := range p.pending {
			if b.sent {
				p.produce(b)
			}
		}
	})
}

// failed gives up everything that is not acknowledged.
func (p *producer) failed(what outcome) {
	p.tries++
	p.stalled = false
	pending := p.pending
	p.pending = nil
	for _, b := range pending {
		b.done(what)
	}
}

// end asks for the end of the transaction. done hears good when it is what was asked for, unknown when nobody can tell, else what
// to do.
func (p *producer) end(commit bool, done func(outcome)) {
	t := p.txn
	if commit {
		p.o.asks(t, p)
	}
	req := kmsg.NewPtrEndTxnRequest()
	req.Version = 4
	if p.v2 {
		req.Version = 5
	}
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = p.id, p.pid, p.epoch, commit
	p.call(toCoordinator, req, 1200*time.Millisecond, p.repeat(), func(r kmsg.Response, err error) {
		if err != nil {
			p.unsure(commit, done)
			return
		}
		resp := r.(*kmsg.EndTxnResponse)
		p.w.log("%s: end: %s %d/%d", p.name, word(resp.ErrorCode), resp.ProducerID, resp.ProducerEpoch)
		p.w.see("end " + word(resp.ErrorCode))
		switch what := judge(resp.ErrorCode); what {
		case good:
			f := aborted
			if commit {
				f = committed
			}
			p.o.told(t, f)
			if p.v2 {
				if resp.ProducerID != p.pid || resp.ProducerEpoch != p.epoch {
					p.next = map[partitionOf]int32{}
				}
				p.pid, p.epoch = resp.ProducerID, resp.ProducerEpoch
			}
			p.txn = nil
			done(good)
		case again:
			p.after(p.soon(), "end again", func() { p.end(commit, done) })
		case unknown:
			p.unsure(commit, done)
		default:
			done(what)
		}
	})
}

// unsure goes on after an end whose answer was lost. Version 2 may ask again, for the epoch names the transaction; version 1 may
// not (KAFKA-17754) and begins anew.
func (p *producer) unsure(commit bool, done func(outcome)) {
	if p.v2 {
		p.after(p.soon(), "end again", func() { p.end(commit, done) })
		return
	}
	done(unknown)
}
