package twophase

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/txn/wire"
)

// identity is a producer id and epoch as clients have them.
type identity struct {
	id    int64
	epoch int16
}

var nobody = identity{-1, -1}

// player sends the requests of one case under a transactional id of its own, and writes down the answers. Producer ids are
// written as P, Q, … in the order of their appearance, so that answers of different brokers can be compared.
type player struct {
	*testing.T
	ctx   context.Context
	cl    *kgo.Client
	txn   string
	topic string
	names map[int64]string
	said  []string
	// last is what the last InitProducerId or EndTxn gave; began is what the open transaction began with.
	last, began identity
	sequence    [2]int32
}

// limit bounds a case; only a fault reaches it.
const limit = time.Minute

func newPlayer(t *testing.T, opts ...kgo.Opt) *player {
	t.Helper()
	cl, err := kgo.NewClient(append(opts, kgo.MaxVersions(wire.AllowInitProducerID6(kversion.Stable())))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	p := &player{T: t, ctx: ctx, cl: cl, names: map[int64]string{}, last: nobody, began: nobody}
	p.txn = "two-phase-" + strings.ToLower(rand.Text()[:10])
	p.topic = p.txn
	adm := kadm.NewClient(cl)
	if _, err := adm.CreateTopic(ctx, 2, 1, nil, p.topic); err != nil {
		t.Fatal(err)
	}
	if _, err := adm.BrokerMetadata(ctx); err != nil { // so that the client knows the brokers by number
		t.Fatal(err)
	}
	return p
}

func (p *player) name(i identity) string {
	if i == nobody {
		return "-"
	}
	if p.names[i.id] == "" {
		p.names[i.id] = string(rune('P' + len(p.names)))
	}
	return fmt.Sprintf("%s:%d", p.names[i.id], i.epoch)
}

func code(c int16) string {
	if c == 0 {
		return "NONE"
	}
	return kerr.TypedErrorForCode(c).Message
}

// say notes an answer.
func (p *player) say(format string, args ...any) {
	p.said = append(p.said, fmt.Sprintf(format, args...))
}

// again repeats a request while the answer asks for it.
func (p *player) again(f func() (int16, error)) int16 {
	p.Helper()
	for {
		c, err := f()
		if err != nil {
			p.Fatal(err)
		}
		switch kerr.ErrorForCode(c) {
		case kerr.ConcurrentTransactions, kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable, kerr.NotCoordinator:
			select {
			case <-p.ctx.Done():
				p.Fatalf("it stays at %s", code(c))
			case <-time.After(5 * time.Millisecond):
			}
			continue
		}
		return c
	}
}

// coordinator asks the coordinator of the transactional id.
func (p *player) coordinator(req kmsg.Request) (kmsg.Response, error) {
	var node int32
	p.again(func() (int16, error) {
		find := kmsg.NewPtrFindCoordinatorRequest()
		find.CoordinatorType, find.CoordinatorKeys = 1, []string{p.txn}
		found, err := find.RequestWith(p.ctx, p.cl)
		if err != nil {
			return 0, err
		}
		node = found.Coordinators[0].NodeID
		return found.Coordinators[0].ErrorCode, nil
	})
	return p.cl.Broker(int(node)).RetriableRequest(p.ctx, req)
}

// initial describes an InitProducerId.
type initial struct {
	from      identity
	timeoutMs int32
	twoPhase  bool
	keep      bool
}

func (p *player) init(q initial) {
	p.Helper()
	if q.timeoutMs == 0 {
		q.timeoutMs = 60000
	}
	var resp *wire.InitProducerIDResponse
	c := p.again(func() (int16, error) {
		req := wire.NewInitProducerIDRequest()
		req.TransactionalID, req.TransactionTimeoutMillis = &p.txn, q.timeoutMs
		req.ProducerID, req.ProducerEpoch, req.Enable2PC, req.KeepPreparedTxn = q.from.id, q.from.epoch, q.twoPhase, q.keep
		r, err := p.coordinator(req)
		if err != nil {
			return 0, err
		}
		resp = r.(*wire.InitProducerIDResponse)
		if resp.GetVersion() != 6 {
			p.Fatalf("InitProducerId version %d, the case needs 6", resp.GetVersion())
		}
		return resp.ErrorCode, nil
	})
	if c != 0 {
		p.say("%s", code(c))
		return
	}
	p.last = identity{resp.ProducerID, resp.ProducerEpoch}
	p.sequence = [2]int32{}
	p.say("%s, ongoing %s", p.name(p.last), p.name(identity{resp.OngoingTxnProducerID, resp.OngoingTxnProducerEpoch}))
}

// produce writes one record to a partition in a transaction of version 2.
func (p *player) produce(as identity, partition int32) {
	p.Helper()
	var b record.Builder
	b.Reset(record.BuilderOptions{LeaderEpoch: -1, Transactional: true, Producer: &record.Producer{ID: as.id, Epoch: as.epoch, Sequence: p.sequence[partition]}})
	b.Append(time.Now().UnixMilli(), nil, []byte("v"), nil)
	batch, err := b.Batch()
	if err != nil {
		p.Fatal(err)
	}
	c := p.again(func() (int16, error) {
		md, err := kadm.NewClient(p.cl).Metadata(p.ctx, p.topic)
		if err != nil {
			return 0, err
		}
		topic := md.Topics[p.topic]
		if d, ok := topic.Partitions[partition]; !ok || d.Leader < 0 { // it is new
			return kerr.ConcurrentTransactions.Code, nil
		}
		req := kmsg.NewPtrProduceRequest()
		req.TransactionID, req.Acks, req.TimeoutMillis = &p.txn, -1, 10000
		rt := kmsg.NewProduceRequestTopic()
		rt.Topic, rt.TopicID = p.topic, topic.ID
		rp := kmsg.NewProduceRequestTopicPartition()
		rp.Partition, rp.Records = partition, batch
		rt.Partitions = append(rt.Partitions, rp)
		req.Topics = append(req.Topics, rt)
		r, err := p.cl.Broker(int(topic.Partitions[partition].Leader)).RetriableRequest(p.ctx, req)
		if err != nil {
			return 0, err
		}
		c := r.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode
		if c == kerr.UnknownTopicOrPartition.Code || c == kerr.NotLeaderForPartition.Code || c == kerr.UnknownTopicID.Code {
			c = kerr.ConcurrentTransactions.Code // the leader of a new topic does not know it yet
		}
		return c, nil
	})
	if c == 0 {
		p.began = as
		p.sequence[partition]++
	}
	p.say("%s", code(c))
}

func (p *player) end(as identity, commit bool) {
	p.Helper()
	var resp *kmsg.EndTxnResponse
	c := p.again(func() (int16, error) {
		req := kmsg.NewPtrEndTxnRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = p.txn, as.id, as.epoch, commit
		r, err := p.coordinator(req)
		if err != nil {
			return 0, err
		}
		resp = r.(*kmsg.EndTxnResponse)
		return resp.ErrorCode, nil
	})
	if c != 0 {
		p.say("%s", code(c))
		return
	}
	p.last = identity{resp.ProducerID, resp.ProducerEpoch}
	p.sequence = [2]int32{}
	p.say("then %s", p.name(p.last))
}

// describe notes state and timeout of the transaction.
func (p *player) describe() {
	p.Helper()
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = []string{p.txn}
	r, err := p.coordinator(req)
	if err != nil {
		p.Fatal(err)
	}
	s := r.(*kmsg.DescribeTransactionsResponse).TransactionStates[0]
	p.say("%s %s timeout %d", s.State, p.name(identity{s.ProducerID, s.ProducerEpoch}), s.TimeoutMillis)
}
