package cases

import (
	"fmt"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// openCases are about what may open a transaction on a partition, and that all of it ends.
var openCases = []testCase{
	{"T18", "KAFKA-14402, KAFKA-14561, krabka 0.6.0", speak, writeWithoutAnnouncing},
	{"T19", "KAFKA-14884, KAFKA-14904", speak, both(abortRacesFirstWrite)},
	{"T21", "KAFKA-15449, krabka#1228", speak, offsetsWithoutAnnouncing},
	{"T25", "KAFKA-10702", speak, abortsWithoutData},
	{"T31", "redpanda#5026", speak, both(valuesAfterAbort)},
	{"T39", "redpanda#7438", restart, stableOffsetOfNothing},
	{"T46", "librdkafka 1.6.2", speak, both(abortOfAnEmptyPartition)},
	{"T55", "krabka#882, krabka#883, krabka 0.6.1", speak, both(oneTopicOfManyDeleted)},
}

// writeWithoutAnnouncing: a V1 write to a partition that is not in the transaction opens nothing.
func writeWithoutAnnouncing(tg *target) {
	topic := tg.topic("t", 2)
	x := tg.txn(1, "x").init()
	x.produceTo(topic, 1, "announced")
	b := x.data(topic, 0, "stray")
	w := tg.leader(topic, 0)
	for version, code := range map[int16]*kerr.Error{9: kerr.InvalidTxnState, 10: kerr.InvalidTxnState, 11: kerr.TransactionAbortable} {
		p := w.do(produceRequest(version, x.id, -1, topic, 0, b.bytes())).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
		want(tg, fmt.Sprintf("Produce v%d to a partition that was not added", version), p.ErrorCode, code)
	}
	if n, end, lso := tg.open(topic, 0), tg.end(topic), tg.lso(topic); n != 0 || end != 0 || lso != 0 {
		tg.Fatalf("%d open transactions, end %d, last stable offset %d; want nothing", n, end, lso)
	}
	x.abort()
}

// abortRacesFirstWrite: an abort that comes at the same time as the first write leaves no transaction open.
func abortRacesFirstWrite(tg *target, version int) {
	const rounds = 150
	topic := tg.topic("t", 2)
	x := tg.txn(version, "x").init()
	second := tg.coordinator(1, x.id)
	w := tg.leader(topic, 0)
	for range rounds {
		x.produceTo(topic, 1, "opens")
		if version == 1 {
			x.add(topic, 0)
		}
		b := x.data(topic, 0, "races").bytes()
		var wg sync.WaitGroup
		var end *kmsg.EndTxnResponse
		var written int16 = -2
		wg.Go(func() {
			if r, err := w.try(x.request(topic, 0, b)); err == nil {
				written = r.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode
			}
		})
		wg.Go(func() {
			if r, err := second.try(x.endRequest(false)); err == nil {
				end = r.(*kmsg.EndTxnResponse)
			}
		})
		wg.Wait()
		if end == nil || written == -2 {
			tg.Fatal("a connection broke")
		}
		switch {
		case end.ErrorCode == 0 && version == 1:
			if written == 0 {
				x.seq[key(topic, 0)]++
			}
		case end.ErrorCode == 0:
			x.took(end)
		default:
			if written == 0 {
				x.seq[key(topic, 0)]++
			}
			want(tg, "EndTxn", end.ErrorCode, kerr.ConcurrentTransactions)
			x.abort()
		}
	}
	x.settled()
	for p := range int32(2) {
		if n := tg.open(topic, p); n != 0 {
			tg.Fatalf("partition %d has %d open transactions at rest", p, n)
		}
	}
	if lso, end := tg.lso(topic), tg.end(topic); lso != end {
		tg.Fatalf("last stable offset %d, end %d at rest", lso, end)
	}
	if got := tg.values(topic, true); len(got) != 0 {
		tg.Fatalf("%d aborted records are visible", len(got))
	}
}

// offsetsRequest makes TxnOffsetCommit of one partition.
func (x *txn) offsetsRequest(version int16, group, topic string, offset int64) *kmsg.TxnOffsetCommitRequest {
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.Version = version
	req.TransactionalID, req.Group, req.ProducerID, req.ProducerEpoch, req.Generation = x.id, group, x.pid, x.epoch, -1
	rt := kmsg.NewTxnOffsetCommitRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	rp.Offset = offset
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return req
}

// offsets sends TxnOffsetCommit of one partition.
func (x *txn) offsets(version int16, group, topic string, offset int64) int16 {
	x.tg.Helper()
	return x.tg.coordinator(0, group).do(x.offsetsRequest(version, group, topic, offset)).(*kmsg.TxnOffsetCommitResponse).Topics[0].Partitions[0].ErrorCode
}

// stableOffset asks OffsetFetch with RequireStable.
func (tg *target) stableOffset(group, topic string) (offset int64, c int16) {
	tg.Helper()
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version, req.RequireStable = 8, true
	rg := kmsg.NewOffsetFetchRequestGroup()
	rg.Group = group
	rt := kmsg.NewOffsetFetchRequestGroupTopic()
	rt.Topic, rt.Partitions = topic, []int32{0}
	rg.Topics = append(rg.Topics, rt)
	req.Groups = append(req.Groups, rg)
	tg.eventually("OffsetFetch", func() (bool, string) {
		g := tg.coordinator(0, group).do(req).(*kmsg.OffsetFetchResponse).Groups[0]
		if retriable(g.ErrorCode) {
			return false, code(g.ErrorCode)
		}
		want(tg, "OffsetFetch", g.ErrorCode, nil)
		offset, c = g.Topics[0].Partitions[0].Offset, g.Topics[0].Partitions[0].ErrorCode
		return true, ""
	})
	return offset, c
}

// offsetsWithoutAnnouncing: V1 offsets of a group that is not in the transaction leave nothing pending.
func offsetsWithoutAnnouncing(tg *target) {
	topic, group := tg.topic("t", 1), tg.name("g")
	x := tg.txn(1, "x").init()
	x.produce(topic, "v")
	var c int16
	tg.eventually("TxnOffsetCommit", func() (bool, string) {
		c = x.offsets(3, group, topic, 5)
		return !retriable(c), code(c)
	})
	want(tg, "TxnOffsetCommit without AddOffsetsToTxn", c, kerr.InvalidTxnState, kerr.TransactionAbortable)
	x.commit()
	if offset, c := tg.stableOffset(group, topic); offset != -1 || c != 0 {
		tg.Fatalf("offset %d, %s; want none, and stable", offset, code(c))
	}
}

// abortsWithoutData: aborts of partitions that got no record are not listed as aborted.
func abortsWithoutData(tg *target) {
	topic := tg.topic("t", 1)
	x := tg.txn(1, "x").init()
	for range 200 {
		x.add(topic)
		x.abort()
	}
	x.settled()
	w := tg.leader(topic, 0)
	for at := int64(0); at < tg.lso(topic); {
		p := tg.fetch(w, topic, at, true, 1<<20)
		if n := len(p.AbortedTransactions); n != 0 {
			tg.Fatalf("%d aborted transactions are listed, none had a record", n)
		}
		bs := decode(p.RecordBatches)
		at = bs[len(bs)-1].last() + 1
	}
	if n := len(tg.producers(topic, 0)); n != 1 {
		tg.Fatalf("%d producers are remembered, there was one", n)
	}
}

// valuesAfterAbort: the sequence numbers of an aborted transaction do not make the next one a duplicate.
func valuesAfterAbort(tg *target, version int) {
	topic := tg.topic("t", 1)
	x := tg.txn(version, "x").init()
	var wanted []string
	for i := range 10 {
		x.produce(topic, fmt.Sprint("aborted-", i))
	}
	x.abort()
	for i := range 10 {
		wanted = append(wanted, fmt.Sprint("committed-", i))
		x.produce(topic, wanted[i])
	}
	x.commit()
	x.settled()
	if got := tg.values(topic, true); !slices.Equal(got, wanted) {
		tg.Fatalf("read committed %q", got)
	}
}

// stableOffsetOfNothing: the last stable offset is never below the log start.
func stableOffsetOfNothing(tg *target) {
	topic := tg.topic("t", 1)
	if lso := tg.lso(topic); lso != 0 {
		tg.Fatalf("last stable offset %d of an empty partition", lso)
	}
	x := tg.txn(2, "x").init()
	x.produce(topic, "v")
	if lso := tg.lso(topic); lso != 0 {
		tg.Fatalf("last stable offset %d of an open transaction at 0", lso)
	}
	x.commit()
	x.settled()
	for range 3 {
		tg.hangUp()
		tg.own.Restart(tg)
		if lso := tg.lso(topic); lso != 2 {
			tg.Fatalf("last stable offset %d right after a restart, want 2", lso)
		}
	}
}

// abortOfAnEmptyPartition: a marker without records before it hides nothing that comes later.
func abortOfAnEmptyPartition(tg *target, version int) {
	topic := tg.topic("t", 1)
	x := tg.txn(version, "x").init()
	x.add(topic)
	x.abort()
	x.settled()
	x.produce(topic, "v")
	x.commit()
	x.settled()
	p := tg.fetch(tg.leader(topic, 0), topic, 0, true, 1<<20)
	if len(p.AbortedTransactions) != 0 {
		tg.Fatalf("the empty abort is listed: %v", p.AbortedTransactions)
	}
	if got := tg.values(topic, true); !slices.Equal(got, []string{"v"}) {
		tg.Fatalf("read committed %q", got)
	}
}

// oneTopicOfManyDeleted: a partition that is gone does not hold up the others, nor the completion.
func oneTopicOfManyDeleted(tg *target, version int) {
	topic, gone := tg.topic("t", 9), tg.topic("gone", 1)
	x := tg.txn(version, "x").init()
	for p := range int32(9) {
		x.produceTo(topic, p, "v")
	}
	x.produceTo(gone, 0, "v")
	tg.deleteTopic(gone)
	x.commit()
	if d := x.settled(); d.State != "CompleteCommit" {
		tg.Fatalf("the transaction is %s", d.State)
	}
	for p := range int32(9) {
		if log := tg.logOf(topic, p); len(log) != 2 || !log[1].control() || !log[1].commits() {
			tg.Fatalf("partition %d has %d batches, want data and marker", p, len(log))
		}
	}
}
