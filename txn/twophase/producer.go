package twophase

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/core/partition"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/txn/session"
)

const (
	// batchBytes is the size at which a batch is closed, well below what brokers take.
	batchBytes = 256 << 10
	// bufferBytes is how much may wait until it is sent without being asked for.
	bufferBytes = 4 << 20
	// produceTimeout bounds the wait of the broker for its replicas.
	produceTimeout = 10 * time.Second
)

// producer writes the records of one transaction after the other. Each transaction has an epoch of its own, in which every
// partition's sequence begins with 0.
type producer struct {
	*client
	// now is the identity of the open transaction, or of the next one.
	now    PreparedState
	sent   bool // something may be in the log, or in a group's offsets
	topics map[string]topic
	lanes  map[session.TopicPartition]*lane
	order  []*lane // as they were first used, so that the same program sends the same bytes
	size   int
	next   int // partition of the next record without a key
}

// lane is what goes to one partition.
type lane struct {
	to       session.TopicPartition
	sequence int32
	records  []session.Record
	batch    record.Batch // on its way; nil for none
	count    int32        // records in batch
}

func newProducer(c *client, now PreparedState) *producer {
	return &producer{client: c, now: now, topics: map[string]topic{}, lanes: map[session.TopicPartition]*lane{}}
}

// begin starts the next transaction.
func (p *producer) begin(now PreparedState) {
	p.now, p.sent, p.size = now, false, 0
	clear(p.lanes)
	p.order = nil
}

// abort ends the transaction, of which the log may have something.
func (p *producer) abort(ctx context.Context) (next PreparedState, err error) {
	if !p.sent {
		return p.now, nil
	}
	return p.endTxn(ctx, p.now, false)
}

// send takes a record; its bytes must stay as they are until flush.
func (p *producer) send(ctx context.Context, r session.Record) error {
	t, ok := p.topics[r.Topic]
	if !ok {
		var err error
		if t, err = p.lookUp(ctx, r.Topic); err != nil {
			return err
		}
		p.topics[r.Topic] = t
	}
	n := int32(len(t.leaders))
	switch {
	case n == 0:
		return fmt.Errorf("twophase: topic %s has no partition", r.Topic)
	case r.Partition >= n:
		return fmt.Errorf("twophase: topic %s has no partition %d, it has %d", r.Topic, r.Partition, n)
	case r.Partition < 0 && r.Key == nil:
		r.Partition = int32(p.next) % n
		p.next = (p.next + 1) % (1 << 20)
	case r.Partition < 0:
		r.Partition = partition.ForKey(r.Key, n)
	}
	to := session.TopicPartition{Topic: r.Topic, Partition: r.Partition}
	l := p.lanes[to]
	if l == nil {
		l = &lane{to: to}
		p.lanes[to] = l
		p.order = append(p.order, l)
	}
	l.records = append(l.records, r)
	if p.size += len(r.Key) + len(r.Value) + 64; p.size >= bufferBytes {
		return p.flush(ctx)
	}
	return nil
}

// flush returns when all records are acknowledged by all replicas, which on Millrace means that they are synced.
func (p *producer) flush(ctx context.Context) error {
	err := p.retry(ctx, "produce", func() error {
		for {
			byLeader, err := p.ready(ctx)
			if err != nil || len(byLeader) == 0 {
				return err
			}
			if err := p.round(ctx, byLeader); err != nil {
				clear(p.topics) // the leaders may have changed
				return err
			}
		}
	})
	if err == nil {
		p.size = 0
	}
	return err
}

// ready closes the next batch of each partition, and returns what each broker has to get.
func (p *producer) ready(ctx context.Context) (map[int32][]*lane, error) {
	byLeader := map[int32][]*lane{}
	for _, l := range p.order {
		if l.batch == nil && len(l.records) == 0 {
			continue
		}
		if l.batch == nil {
			if err := l.close(p.now); err != nil {
				return nil, permanent{err}
			}
		}
		t, ok := p.topics[l.to.Topic]
		if !ok {
			var err error
			if t, err = p.lookUp(ctx, l.to.Topic); err != nil {
				return nil, err
			}
			p.topics[l.to.Topic] = t
		}
		if int(l.to.Partition) >= len(t.leaders) || t.leaders[l.to.Partition] < 0 {
			delete(p.topics, l.to.Topic)
			return nil, kerr.LeaderNotAvailable
		}
		leader := t.leaders[l.to.Partition]
		byLeader[leader] = append(byLeader[leader], l)
	}
	return byLeader, nil
}

// close makes a batch of the first records.
func (l *lane) close(now PreparedState) error {
	var b record.Builder
	b.Reset(record.BuilderOptions{
		LeaderEpoch: -1, Transactional: true,
		Producer: &record.Producer{ID: now.ProducerID(), Epoch: now.Epoch(), Sequence: l.sequence},
	})
	n := 0
	for ; n < len(l.records) && (n == 0 || b.Size() < batchBytes); n++ {
		r := &l.records[n]
		at := r.Time
		if at.IsZero() {
			at = time.Now()
		}
		var headers []record.Header
		for _, h := range r.Headers {
			headers = append(headers, record.Header{Key: []byte(h.Key), Value: h.Value})
		}
		b.Append(at.UnixMilli(), r.Key, r.Value, headers)
	}
	batch, err := b.Batch()
	if err != nil {
		return fmt.Errorf("batch of %s-%d: %w", l.to.Topic, l.to.Partition, err)
	}
	l.batch, l.count = batch, int32(n)
	l.records = l.records[n:]
	return nil
}

// round sends one batch to each partition. What was not acknowledged stays for the next one, with the same sequence.
func (p *producer) round(ctx context.Context, byLeader map[int32][]*lane) error {
	p.sent = true
	type result struct {
		resp *kmsg.ProduceResponse
		err  error
	}
	results := make(chan result)
	for leader, lanes := range byLeader {
		go func() {
			resp, err := p.kgo.Broker(int(leader)).Request(ctx, p.request(lanes))
			if err != nil {
				results <- result{err: err}
				return
			}
			results <- result{resp: resp.(*kmsg.ProduceResponse)}
		}()
	}
	var errs []error
	for range byLeader {
		r := <-results
		if r.err != nil {
			errs = append(errs, r.err)
			continue
		}
		errs = append(errs, p.acknowledge(r.resp))
	}
	return errors.Join(errs...)
}

func (p *producer) request(lanes []*lane) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.TransactionID, req.Acks, req.TimeoutMillis = &p.id, -1, int32(produceTimeout.Milliseconds())
	for _, l := range lanes {
		rt := kmsg.NewProduceRequestTopic()
		rt.Topic, rt.TopicID = l.to.Topic, p.topics[l.to.Topic].id
		rp := kmsg.NewProduceRequestTopicPartition()
		rp.Partition, rp.Records = l.to.Partition, l.batch
		rt.Partitions = append(rt.Partitions, rp)
		req.Topics = append(req.Topics, rt)
	}
	return req
}

// acknowledge takes the answer of one broker.
func (p *producer) acknowledge(resp *kmsg.ProduceResponse) error {
	if resp.Version < 12 {
		return permanent{fmt.Errorf("%w: Produce goes up to version %d, 12 is needed", ErrUnsupported, resp.Version)}
	}
	var errs []error
	for _, rt := range resp.Topics {
		name := rt.Topic
		if resp.Version >= 13 {
			for n, t := range p.topics {
				if t.id == rt.TopicID {
					name = n
				}
			}
		}
		for _, rp := range rt.Partitions {
			l := p.lanes[session.TopicPartition{Topic: name, Partition: rp.Partition}]
			if l == nil || l.batch == nil {
				return permanent{fmt.Errorf("an answer for %s-%d, to which nothing was sent", name, rp.Partition)}
			}
			if err := who(rp.ErrorCode); err != nil && rp.ErrorCode != kerr.DuplicateSequenceNumber.Code {
				errs = append(errs, fmt.Errorf("%s-%d: %w", name, rp.Partition, err))
				continue
			}
			l.sequence += l.count
			l.batch, l.count = nil, 0
		}
	}
	return errors.Join(errs...)
}
