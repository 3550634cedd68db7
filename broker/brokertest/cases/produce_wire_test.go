package cases

import (
	"cmp"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// produceRequest makes a Produce request for one partition.
func produceRequest(version int16, txnID string, acks int16, topic string, partition int32, raw []byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Version = version
	req.Acks = acks
	req.TimeoutMillis = 30000
	if txnID != "" {
		req.TransactionID = &txnID
	}
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Partition, rp.Records = partition, raw
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return req
}

// produce sends one batch with acks=all and returns the answer's row.
func (tg *target) produce(w *wire, topic string, b batch) kmsg.ProduceResponseTopicPartition {
	tg.Helper()
	return tg.produceRaw(w, topic, b.bytes())
}

func (tg *target) produceRaw(w *wire, topic string, raw []byte) kmsg.ProduceResponseTopicPartition {
	tg.Helper()
	resp := w.do(produceRequest(9, "", -1, topic, 0, raw)).(*kmsg.ProduceResponse)
	return resp.Topics[0].Partitions[0]
}

// mustProduce is produce for batches that have to be taken.
func (tg *target) mustProduce(w *wire, topic string, b batch) int64 {
	tg.Helper()
	p := tg.produce(w, topic, b)
	want(tg, "produce to "+topic, p.ErrorCode, nil)
	return p.BaseOffset
}

// newProducer asks for a producer id without a transactional id.
func (tg *target) newProducer() (int64, int16) {
	tg.Helper()
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version = 4
	req.ProducerID, req.ProducerEpoch = -1, -1
	var resp *kmsg.InitProducerIDResponse
	w := tg.seed()
	tg.eventually("InitProducerId", func() (bool, string) {
		resp = w.do(req).(*kmsg.InitProducerIDResponse)
		return resp.ErrorCode == 0, code(resp.ErrorCode)
	})
	return resp.ProducerID, resp.ProducerEpoch
}

// fetchRequest makes a Fetch of one partition.
func fetchRequest(topic string, offset int64, committed bool, maxBytes, waitMs, minBytes int32) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version = 12
	req.ReplicaID = -1
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = waitMs, minBytes, 50<<20
	req.SessionEpoch = -1
	if committed {
		req.IsolationLevel = 1
	}
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.FetchOffset, rp.PartitionMaxBytes, rp.CurrentLeaderEpoch = offset, maxBytes, -1
	rp.LastFetchedEpoch, rp.LogStartOffset = -1, -1
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return req
}

func (tg *target) fetch(w *wire, topic string, offset int64, committed bool, maxBytes int32) kmsg.FetchResponseTopicPartition {
	tg.Helper()
	resp := w.do(fetchRequest(topic, offset, committed, maxBytes, 0, 1)).(*kmsg.FetchResponse)
	want(tg, "Fetch", resp.ErrorCode, nil)
	return resp.Topics[0].Partitions[0]
}

// log reads every batch of partition 0 from its start, control batches included.
func (tg *target) log(topic string) []stored { tg.Helper(); return tg.logOf(topic, 0) }

func (tg *target) logOf(topic string, partition int32) []stored {
	tg.Helper()
	w := tg.leader(topic, partition)
	at, _ := tg.offset(topic, partition, -2, false)
	end, _ := tg.offset(topic, partition, -1, false)
	var all []stored
	for at < end {
		req := fetchRequest(topic, at, false, 1<<20, 0, 1)
		req.Topics[0].Partitions[0].Partition = partition
		p := w.do(req).(*kmsg.FetchResponse).Topics[0].Partitions[0]
		want(tg, "fetch "+topic, p.ErrorCode, nil)
		bs := decode(p.RecordBatches)
		if len(bs) == 0 {
			tg.Fatalf("fetch of %s-%d at %d below its end %d gave nothing", topic, partition, at, end)
		}
		all = append(all, bs...)
		at = bs[len(bs)-1].last() + 1
	}
	return all
}

// values reads partition 0 as a consumer does at the isolation level, with the client's own rule for aborted batches
// (at each batch, entries that begin at or before its last offset become active; an abort marker ends its producer's).
func (tg *target) values(topic string, committed bool) []string {
	tg.Helper()
	w := tg.leader(topic, 0)
	at, _ := tg.offset(topic, 0, -2, false)
	end, _ := tg.offset(topic, 0, -1, committed)
	var out []string
	for at < end {
		p := tg.fetch(w, topic, at, committed, 1<<20)
		want(tg, "fetch "+topic, p.ErrorCode, nil)
		bs := decode(p.RecordBatches)
		if len(bs) == 0 {
			tg.Fatalf("fetch of %s at %d below its end %d gave nothing (committed=%v)", topic, at, end, committed)
		}
		out = append(out, visible(bs, p.AbortedTransactions, at)...)
		at = bs[len(bs)-1].last() + 1
	}
	return out
}

func visible(bs []stored, aborted []kmsg.FetchResponseTopicPartitionAbortedTransaction, from int64) []string {
	pending := slices.Clone(aborted)
	slices.SortStableFunc(pending, func(a, b kmsg.FetchResponseTopicPartitionAbortedTransaction) int {
		return cmp.Compare(a.FirstOffset, b.FirstOffset)
	})
	active := map[int64]bool{}
	var out []string
	for _, b := range bs {
		for len(pending) > 0 && pending[0].FirstOffset <= b.last() {
			active[pending[0].ProducerID] = true
			pending = pending[1:]
		}
		switch {
		case b.control():
			if !b.commits() {
				delete(active, b.ProducerID)
			}
		case b.txn() && active[b.ProducerID]:
		default:
			for i, v := range b.values {
				if b.FirstOffset+int64(i) >= from {
					out = append(out, v)
				}
			}
		}
	}
	return out
}

// retriable says whether a client would simply send the request again.
func retriable(c int16) bool {
	switch c {
	case kerr.ConcurrentTransactions.Code, kerr.CoordinatorLoadInProgress.Code, kerr.CoordinatorNotAvailable.Code,
		kerr.NotCoordinator.Code, kerr.NotEnoughReplicas.Code, kerr.NotLeaderForPartition.Code:
		return true
	}
	return false
}
