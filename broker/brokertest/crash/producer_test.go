package crash

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// group is the consumer group of the stories.
const group = "g"

// producer is an idempotent producer, or with an id a transactional one, that speaks version 1 or 2 of transactions.
type producer struct {
	w       *wire
	id      string
	version int
	pid     int64
	epoch   int16
	seq     map[string]int32
	frames  func([]byte) // when set, sees every request of a transaction
}

func initRequest(id string, pid int64, epoch int16) *kmsg.InitProducerIDRequest {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = 4, 60000, pid, epoch
	if id != "" {
		req.TransactionalID = &id
	}
	return req
}

func newProducer(w *wire, id string, version int) *producer {
	w.t.Helper()
	p := &producer{w: w, id: id, version: version}
	w.must("InitProducerId of "+id, p.init)
	return p
}

// ask sends a request and lets frames see its bytes.
func (p *producer) ask(req kmsg.Request) kmsg.Response {
	p.w.t.Helper()
	frame := p.w.frame(req)
	if p.frames != nil {
		p.frames(frame)
	}
	err := p.w.send(frame)
	if err == nil {
		var resp kmsg.Response
		if resp, err = p.w.receive(req); err == nil {
			return resp
		}
	}
	p.w.t.Fatalf("%s: %v", kmsg.NameForKey(req.Key()), err)
	return nil
}

func (p *producer) init() int16 {
	r := p.ask(initRequest(p.id, -1, -1)).(*kmsg.InitProducerIDResponse)
	if r.ErrorCode == 0 {
		p.pid, p.epoch, p.seq = r.ProducerID, r.ProducerEpoch, map[string]int32{}
	}
	return r.ErrorCode
}

func partitionName(topic string, partition int32) string {
	return fmt.Sprintf("%s-%d", topic, partition)
}

// send writes one batch; the sequence moves when it is taken.
func (p *producer) send(topic string, partition int32, values ...string) (base int64, c int16) {
	p.w.t.Helper()
	at := partitionName(topic, partition)
	raw := batch(p.pid, p.epoch, p.seq[at], p.id != "", values...)
	version := int16(9)
	switch {
	case p.id != "" && p.version == 1:
		version = 11
		if c := p.w.until(func() int16 { return p.add(topic, partition) }); c != 0 {
			return -1, c
		}
	case p.id != "":
		version = 12
	}
	c = p.w.until(func() int16 {
		row := p.ask(produceRequest(version, p.id, topic, partition, raw)).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
		base = row.BaseOffset
		return row.ErrorCode
	})
	if c == 0 {
		p.seq[at] += int32(len(values))
	}
	return base, c
}

func (p *producer) add(topic string, partitions ...int32) int16 {
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.Version, req.TransactionalID, req.ProducerID, req.ProducerEpoch = 3, p.id, p.pid, p.epoch
	rt := kmsg.NewAddPartitionsToTxnRequestTopic()
	rt.Topic, rt.Partitions = topic, partitions
	req.Topics = append(req.Topics, rt)
	return p.ask(req).(*kmsg.AddPartitionsToTxnResponse).Topics[0].Partitions[0].ErrorCode
}

// commitOffset puts an offset of the group into the transaction.
func (p *producer) commitOffset(topic string, partition int32, offset int64) int16 {
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.Version = 5
	if p.version == 1 {
		req.Version = 3
		add := kmsg.NewPtrAddOffsetsToTxnRequest()
		add.Version, add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = 3, p.id, p.pid, p.epoch, group
		if c := p.w.until(func() int16 { return p.ask(add).(*kmsg.AddOffsetsToTxnResponse).ErrorCode }); c != 0 {
			return c
		}
	}
	req.TransactionalID, req.Group, req.ProducerID, req.ProducerEpoch, req.Generation = p.id, group, p.pid, p.epoch, -1
	rt := kmsg.NewTxnOffsetCommitRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	rp.Partition, rp.Offset = partition, offset
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return p.w.until(func() int16 {
		return p.ask(req).(*kmsg.TxnOffsetCommitResponse).Topics[0].Partitions[0].ErrorCode
	})
}

// end ends the transaction; under version 2 the answer brings the next epoch.
func (p *producer) end(commit bool) int16 {
	return p.w.until(func() int16 {
		req := kmsg.NewPtrEndTxnRequest()
		req.Version = 5
		if p.version == 1 {
			req.Version = 4
		}
		req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = p.id, p.pid, p.epoch, commit
		r := p.ask(req).(*kmsg.EndTxnResponse)
		if r.ErrorCode == 0 && p.version == 2 {
			if r.ProducerID != p.pid || r.ProducerEpoch != p.epoch {
				p.seq = map[string]int32{}
			}
			p.pid, p.epoch = r.ProducerID, r.ProducerEpoch
		}
		return r.ErrorCode
	})
}
