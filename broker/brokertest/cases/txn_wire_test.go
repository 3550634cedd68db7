package cases

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// txn is a transactional producer that speaks either version of the protocol: 1 announces partitions and keeps its
// epoch; 2 (KIP-890) lets the broker add them and takes the new epoch from EndTxn's answer.
type txn struct {
	tg      *target
	id      string
	version int
	timeout int32
	pid     int64
	epoch   int16
	seq     map[string]int32
	coord   *wire
	leaders map[string]*wire
}

func (tg *target) txn(version int, name string) *txn {
	tg.Helper()
	x := &txn{tg: tg, id: tg.name(name), version: version, timeout: 60000, leaders: map[string]*wire{}}
	x.coord = tg.coordinator(1, x.id)
	return x
}

// both runs a case once for each version of the transaction protocol.
func both(f func(tg *target, version int)) func(*target) {
	return func(tg *target) {
		for _, v := range []int{1, 2} {
			tg.Run(fmt.Sprintf("V%d", v), func(t *testing.T) { f(newTarget(t, tg.cluster, tg.own), v) })
		}
	}
}

func initRequest(version int16, id string, timeout int32, pid int64, epoch int16) *kmsg.InitProducerIDRequest {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version = version
	req.TransactionalID = &id
	req.TransactionTimeoutMillis = timeout
	req.ProducerID, req.ProducerEpoch = pid, epoch
	return req
}

// tryInit asks for the producer id once.
func (x *txn) tryInit() int16 {
	x.tg.Helper()
	resp := x.coord.do(initRequest(4, x.id, x.timeout, -1, -1)).(*kmsg.InitProducerIDResponse)
	if resp.ErrorCode == 0 {
		x.pid, x.epoch, x.seq = resp.ProducerID, resp.ProducerEpoch, map[string]int32{}
	}
	return resp.ErrorCode
}

func (x *txn) init() *txn {
	x.tg.Helper()
	x.retry("InitProducerId", x.tryInit)
	return x
}

// retry repeats a request while its answer is one that clients repeat on, and demands NONE in the end.
func (x *txn) retry(what string, f func() int16) {
	x.tg.Helper()
	x.tg.eventually(what, func() (bool, string) {
		c := f()
		if c != 0 && !retriable(c) {
			x.tg.Fatalf("%s of %s: %s", what, x.id, code(c))
		}
		return c == 0, code(c)
	})
}

func (x *txn) tryAdd(topic string, partitions ...int32) int16 {
	x.tg.Helper()
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.Version = 3
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = x.id, x.pid, x.epoch
	rt := kmsg.NewAddPartitionsToTxnRequestTopic()
	rt.Topic, rt.Partitions = topic, partitions
	req.Topics = append(req.Topics, rt)
	return x.coord.do(req).(*kmsg.AddPartitionsToTxnResponse).Topics[0].Partitions[0].ErrorCode
}

func (x *txn) add(topic string, partitions ...int32) {
	x.tg.Helper()
	if len(partitions) == 0 {
		partitions = []int32{0}
	}
	x.retry("AddPartitionsToTxn", func() int16 { return x.tryAdd(topic, partitions...) })
}

// data makes the producer's next batch for a partition without advancing its sequence.
func (x *txn) data(topic string, partition int32, values ...string) batch {
	return batch{pid: x.pid, epoch: x.epoch, seq: x.seq[key(topic, partition)], txn: true, values: values, key: []byte("k")}
}

func key(topic string, partition int32) string { return fmt.Sprintf("%s/%d", topic, partition) }

func (x *txn) request(topic string, partition int32, raw []byte) *kmsg.ProduceRequest {
	v := int16(11)
	if x.version == 2 {
		v = 12
	}
	return produceRequest(v, x.id, -1, topic, partition, raw)
}

func (x *txn) leader(topic string, partition int32) *wire {
	k := key(topic, partition)
	if x.leaders[k] == nil {
		x.leaders[k] = x.tg.leader(topic, partition)
	}
	return x.leaders[k]
}

// tryProduce sends one batch once; the sequence moves only when it was taken.
func (x *txn) tryProduce(topic string, partition int32, values ...string) (int16, int64) {
	x.tg.Helper()
	b := x.data(topic, partition, values...)
	p := x.leader(topic, partition).do(x.request(topic, partition, b.bytes())).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
	if p.ErrorCode == 0 {
		x.seq[key(topic, partition)] += int32(len(values))
	}
	return p.ErrorCode, p.BaseOffset
}

// produce writes to partition 0 inside the transaction, announcing the partition first under version 1.
func (x *txn) produce(topic string, values ...string) {
	x.tg.Helper()
	x.produceTo(topic, 0, values...)
}

func (x *txn) produceTo(topic string, partition int32, values ...string) {
	x.tg.Helper()
	if x.version == 1 {
		x.add(topic, partition)
	}
	x.retry("Produce", func() int16 { c, _ := x.tryProduce(topic, partition, values...); return c })
}

func (x *txn) endRequest(commit bool) *kmsg.EndTxnRequest {
	req := kmsg.NewPtrEndTxnRequest()
	req.Version = 4
	if x.version == 2 {
		req.Version = 5
	}
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = x.id, x.pid, x.epoch, commit
	return req
}

// took applies an EndTxn answer as a client does.
func (x *txn) took(resp *kmsg.EndTxnResponse) int16 {
	if resp.ErrorCode == 0 && x.version == 2 {
		if resp.ProducerID != x.pid || resp.ProducerEpoch != x.epoch {
			x.seq = map[string]int32{}
		}
		x.pid, x.epoch = resp.ProducerID, resp.ProducerEpoch
	}
	return resp.ErrorCode
}

func (x *txn) tryEnd(commit bool) int16 {
	x.tg.Helper()
	return x.took(x.coord.do(x.endRequest(commit)).(*kmsg.EndTxnResponse))
}

func (x *txn) end(commit bool) {
	x.tg.Helper()
	x.retry("EndTxn", func() int16 { return x.tryEnd(commit) })
}

func (x *txn) commit() { x.tg.Helper(); x.end(true) }
func (x *txn) abort()  { x.tg.Helper(); x.end(false) }
