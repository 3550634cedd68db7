package cases

import (
	"fmt"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var transactionCases = []testCase{
	{"T01", "KAFKA-17754", speak, lateEndTxn},
	{"T02", "KAFKA-20785", speak, both(commitAfterTimeoutAbort)},
	{"T04", "KAFKA-6119", speak, both(writeAfterTimeoutAbort)},
	{"T05", "KAFKA-5231", speak, both(initOverOpenTransaction)},
	{"T07", "KAFKA-18660", speak, epochOverflowAtEnd},
	{"T12", "KAFKA-9777, KAFKA-10080", speak, both(sameEndTwice)},
	{"T28", "KAFKA-9911", speak, fencedCodeByVersion},
}

// lateEndTxn: a delayed repeat of transaction 1's commit must not commit transaction 2.
func lateEndTxn(tg *target) {
	topic := tg.topic("t", 1)
	x := tg.txn(2, "x").init()
	x.produce(topic, "first")
	late := x.endRequest(true)
	x.commit()
	x.produce(topic, "a")
	resp := tg.coordinator(1, x.id).do(late).(*kmsg.EndTxnResponse)
	// The repeat carries the epoch before the last bump: transaction 2 is Ongoing under a newer one.
	want(tg, "late EndTxn(commit)", resp.ErrorCode, kerr.ProducerFenced, kerr.InvalidProducerEpoch)
	x.produce(topic, "b")
	x.abort()
	if got := tg.values(topic, true); !slices.Equal(got, []string{"first"}) {
		tg.Fatalf("read committed %q, want only the first transaction", got)
	}
}

// timedOut opens a transaction of one second with one record and waits until the coordinator has aborted it.
func timedOut(tg *target, version int) (*txn, string) {
	topic := tg.topic("t", 1)
	x := tg.txn(version, "x")
	x.timeout = 1000
	x.init()
	x.produce(topic, "lost")
	tg.eventually("abort of the timed-out transaction", func() (bool, string) {
		lso, end := tg.lso(topic), tg.end(topic)
		return lso == end && end == 2, fmt.Sprintf("LSO %d, end %d", lso, end)
	})
	return x, topic
}

// commitAfterTimeoutAbort: the commit that comes too late is refused by a code from which a client can abort and go
// on. Apache Kafka 4.4 answers INVALID_TXN_STATE under version 2 and a fencing code under version 1, both of which its
// own clients take for fatal; its fix answers INVALID_PRODUCER_EPOCH under version 2. The embedded broker answers what
// the clients of each version abort on (see package txn).
func commitAfterTimeoutAbort(tg *target, version int) {
	x, topic := timedOut(tg, version)
	c := x.tryEnd(true)
	switch {
	case tg.own != nil && version == 1:
		want(tg, "late commit", c, kerr.UnknownProducerID)
	case tg.own != nil:
		want(tg, "late commit", c, kerr.TransactionAbortable)
	case version == 1:
		want(tg, "late commit", c, kerr.ProducerFenced, kerr.InvalidProducerEpoch)
	default:
		want(tg, "late commit", c, kerr.InvalidTxnState, kerr.InvalidProducerEpoch, kerr.TransactionAbortable)
	}
	y := tg.txn(version, "x").init()
	y.produce(topic, "next")
	late := y.endRequest(true)
	y.commit()
	if version == 2 {
		second := tg.coordinator(1, y.id)
		x.retry("plain retry of its own completed commit", func() int16 { return second.do(late).(*kmsg.EndTxnResponse).ErrorCode })
	}
	if got := tg.values(topic, true); !slices.Equal(got, []string{"next"}) {
		tg.Fatalf("read committed %q, want only what was committed", got)
	}
}

// writeAfterTimeoutAbort: a write into the transaction that its timeout ended is refused and leaves nothing behind.
// Under version 1 the embedded broker answers UNKNOWN_PRODUCER_ID to the one whom nobody has replaced, because
// INVALID_PRODUCER_EPOCH, which Apache Kafka answers, ends a librdkafka producer.
func writeAfterTimeoutAbort(tg *target, version int) {
	x, topic := timedOut(tg, version)
	c, _ := x.tryProduce(topic, 0, "zombie")
	if tg.own != nil && version == 1 {
		want(tg, "write into the aborted transaction", c, kerr.UnknownProducerID)
	} else {
		want(tg, "write into the aborted transaction", c, kerr.InvalidProducerEpoch, kerr.ProducerFenced)
	}
	if lso, end := tg.lso(topic), tg.end(topic); lso != end || end != 2 {
		tg.Fatalf("LSO %d, end %d; want both 2: nothing appended, nothing open", lso, end)
	}
}

func initOverOpenTransaction(tg *target, version int) {
	topic := tg.topic("t", 1)
	a := tg.txn(version, "x").init()
	a.produce(topic, "open")
	b := tg.txn(version, "x").init()
	if b.pid == a.pid && b.epoch <= a.epoch {
		tg.Fatalf("second client got epoch %d, the first had %d", b.epoch, a.epoch)
	}
	c, _ := a.tryProduce(topic, 0, "late")
	want(tg, "late write of the fenced client", c, kerr.InvalidProducerEpoch, kerr.ProducerFenced)
	if got := tg.values(topic, true); len(got) != 0 {
		tg.Fatalf("read committed %q, want nothing", got)
	}
	log := tg.log(topic)
	if n := len(log); n != 2 || !log[1].control() || log[1].commits() {
		tg.Fatalf("log has %d batches, want one of data and its abort marker", n)
	}
	if m := log[1]; m.ProducerID != a.pid || m.ProducerEpoch <= a.epoch {
		tg.Fatalf("marker has epoch %d, data had %d: it must be greater", m.ProducerEpoch, a.epoch)
	}
}

// epochOverflowAtEnd: at the end of the epochs EndTxn gives a new producer id with epoch 0, and that one works. The
// epoch is driven by InitProducerId with the current id and epoch (KIP-360), two requests a step would take hours.
func epochOverflowAtEnd(tg *target) {
	topic := tg.topic("t", 1)
	x := tg.txn(2, "x").init()
	first := x.pid
	x.climb(32765)
	var wanted []string
	for i := range 6 {
		v := fmt.Sprint(i)
		x.produce(topic, v)
		x.commit()
		wanted = append(wanted, v)
	}
	x.settled()
	if x.pid == first || x.epoch < 0 || x.epoch > 8 {
		tg.Fatalf("producer id %d epoch %d after the end of the epochs of id %d", x.pid, x.epoch, first)
	}
	if got := tg.values(topic, true); !slices.Equal(got, wanted) {
		tg.Fatalf("read committed %q, want %q", got, wanted)
	}
}

// sameEndTwice: the same EndTxn at the same instant on two connections ends the transaction once.
func sameEndTwice(tg *target, version int) {
	const partitions, rounds = 5, 200
	topic := tg.topic("t", partitions)
	x := tg.txn(version, "x").init()
	second := tg.coordinator(1, x.id)
	for range rounds {
		for p := range int32(partitions) {
			x.produceTo(topic, p, "v")
		}
		req := x.endRequest(true)
		var answers [2]*kmsg.EndTxnResponse
		var wg sync.WaitGroup
		for i, w := range []*wire{x.coord, second} {
			wg.Go(func() {
				if r, err := w.try(req); err == nil {
					answers[i] = r.(*kmsg.EndTxnResponse)
				}
			})
		}
		wg.Wait()
		for i, r := range answers {
			if r == nil {
				tg.Fatalf("connection %d broke", i)
			}
			want(tg, "EndTxn", r.ErrorCode, nil, kerr.ConcurrentTransactions)
		}
		switch {
		case answers[0].ErrorCode == 0:
			x.took(answers[0])
		case answers[1].ErrorCode == 0:
			x.took(answers[1])
		default:
			x.commit()
		}
	}
	tg.eventually("markers", func() (bool, string) {
		lso, end := tg.lso(topic), tg.end(topic)
		return lso == end, fmt.Sprintf("LSO %d, end %d", lso, end)
	})
	if end := tg.end(topic); end != 2*rounds {
		tg.Fatalf("partition 0 ends at %d after %d transactions of one record, want %d: one marker each", end, rounds, 2*rounds)
	}
}

// fencedCodeByVersion: old request versions know only INVALID_PRODUCER_EPOCH.
func fencedCodeByVersion(tg *target) {
	topic := tg.topic("t", 1)
	old := tg.txn(1, "x").init()
	tg.txn(1, "x").init()
	coord := tg.coordinator(1, old.id)
	for _, c := range []struct {
		version int16
		code    *kerr.Error
	}{{0, kerr.InvalidProducerEpoch}, {1, kerr.InvalidProducerEpoch}, {2, kerr.ProducerFenced}, {3, kerr.ProducerFenced}} {
		add := kmsg.NewPtrAddPartitionsToTxnRequest()
		add.Version = c.version
		add.TransactionalID, add.ProducerID, add.ProducerEpoch = old.id, old.pid, old.epoch
		rt := kmsg.NewAddPartitionsToTxnRequestTopic()
		rt.Topic, rt.Partitions = topic, []int32{0}
		add.Topics = append(add.Topics, rt)
		want(tg, fmt.Sprintf("AddPartitionsToTxn v%d", c.version),
			coord.do(add).(*kmsg.AddPartitionsToTxnResponse).Topics[0].Partitions[0].ErrorCode, c.code)

		offsets := kmsg.NewPtrAddOffsetsToTxnRequest()
		offsets.Version = c.version
		offsets.TransactionalID, offsets.ProducerID, offsets.ProducerEpoch, offsets.Group = old.id, old.pid, old.epoch, tg.name("g")
		want(tg, fmt.Sprintf("AddOffsetsToTxn v%d", c.version), coord.do(offsets).(*kmsg.AddOffsetsToTxnResponse).ErrorCode, c.code)

		end := old.endRequest(true)
		end.Version = c.version
		want(tg, fmt.Sprintf("EndTxn v%d", c.version), coord.do(end).(*kmsg.EndTxnResponse).ErrorCode, c.code)
	}
	for version, k := range map[int16]*kerr.Error{3: kerr.InvalidProducerEpoch, 4: kerr.ProducerFenced} {
		resp := coord.do(initRequest(version, old.id, 60000, old.pid, old.epoch)).(*kmsg.InitProducerIDResponse)
		want(tg, fmt.Sprintf("InitProducerId v%d", version), resp.ErrorCode, k)
	}
	fresh := tg.txn(1, "x").init()
	fresh.produce(topic, "v")
	c, _ := old.tryProduce(topic, 0, "late")
	want(tg, "Produce", c, kerr.InvalidProducerEpoch)
}
