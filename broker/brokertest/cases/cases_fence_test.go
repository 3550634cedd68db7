package cases

import (
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// fenceCases are about epochs: who may go on, who is fenced, and what happens at the last one.
var fenceCases = []testCase{
	{"T03", "KAFKA-19690", speak, staleEpochAfterTimeout},
	{"T06", "KAFKA-19367", speak, initOverOpenAtLastEpoch},
	{"T09", "KAFKA-18575", speak, nextTransactionAtOnce},
	{"T10", "KAFKA-18464", speak, emptyAbortAfterCommit},
	{"T13", "KAFKA-9600", speak, both(endWithLargerEpoch)},
	{"T24", "KAFKA-8710", speak, recoverByEpoch},
	{"T30", "redpanda#3232", speak, both(newerEpochClosesOlder)},
	{"T42", "redpanda commits 18c457f907, 632e6d9ae5", speak, both(repeatedEnd)},
	{"T48", "librdkafka 1.6.1, kafkajs#1388", speak, both(emptyTransactions)},
	{"T54", "krabka#1180", speak, manyOfVersionOne},
}

// staleEpochAfterTimeout: a V2 producer whose transaction was aborted by its timeout hears a code that it recovers from.
func staleEpochAfterTimeout(tg *target) {
	x, topic := timedOut(tg, 2)
	c, _ := x.tryProduce(topic, 0, "late")
	want(tg, "Produce with the stale epoch", c, kerr.InvalidProducerEpoch)
	if end := tg.end(topic); end != 2 {
		tg.Fatalf("end is %d after a refused write, want 2", end)
	}
}

// climb raises the epoch of x by InitProducerId with its own epoch (KIP-360).
func (x *txn) climb(to int16) {
	x.tg.Helper()
	first := x.pid
	for x.epoch < to && x.pid == first {
		resp := x.coord.do(initRequest(4, x.id, x.timeout, x.pid, x.epoch)).(*kmsg.InitProducerIDResponse)
		if retriable(resp.ErrorCode) {
			continue
		}
		want(x.tg, fmt.Sprintf("InitProducerId at epoch %d", x.epoch), resp.ErrorCode, nil)
		x.pid, x.epoch, x.seq = resp.ProducerID, resp.ProducerEpoch, map[string]int32{}
	}
}

// initOverOpenAtLastEpoch: InitProducerId over a transaction that is open at the last epoch aborts it and gives a new
// producer id.
func initOverOpenAtLastEpoch(tg *target) {
	topic := tg.topic("t", 1)
	x := tg.txn(2, "x").init()
	x.climb(32766)
	x.produce(topic, "open")
	y := tg.txn(2, "x").init()
	// Apache Kafka 4.4 raises the new id's epoch once more for the retry that its CONCURRENT_TRANSACTIONS asked for.
	if y.pid == x.pid || y.epoch < 0 || y.epoch > 1 || tg.own != nil && y.epoch != 0 {
		tg.Fatalf("producer id %d epoch %d after epoch %d of id %d was fenced, want a new id at 0", y.pid, y.epoch, x.epoch, x.pid)
	}
	y.produce(topic, "next")
	y.commit()
	y.settled()
	if got := tg.values(topic, true); !slices.Equal(got, []string{"next"}) {
		tg.Fatalf("read committed %q, want only what was committed", got)
	}
}

// nextTransactionAtOnce: the first write with the epoch that EndTxn gave does not wait for the markers of the last one.
func nextTransactionAtOnce(tg *target) {
	const rounds = 300
	topic := tg.topic("t", 1)
	x := tg.txn(2, "x").init()
	for i := range rounds {
		x.retry("Produce", func() int16 { c, _ := x.tryProduce(topic, 0, fmt.Sprint(i)); return c })
		x.retry("EndTxn", func() int16 { return x.tryEnd(true) })
	}
	x.settled()
	if got := tg.values(topic, true); len(got) != rounds || got[rounds-1] != fmt.Sprint(rounds-1) {
		tg.Fatalf("%d records of %d transactions", len(got), rounds)
	}
}

// emptyAbortAfterCommit: a client that is not sure whether it began anything may abort.
func emptyAbortAfterCommit(tg *target) {
	topic := tg.topic("t", 1)
	x := tg.txn(2, "x").init()
	x.produce(topic, "a")
	x.commit()
	if tg.own == nil {
		x.settled() // Apache Kafka 4.4 fences the abort while the commit is carried out
	}
	x.abort()
	x.produce(topic, "b")
	x.commit()
	x.settled()
	if got := tg.values(topic, true); !slices.Equal(got, []string{"a", "b"}) {
		tg.Fatalf("read committed %q", got)
	}
}

// endWithLargerEpoch: an epoch that nobody was given ends nothing.
func endWithLargerEpoch(tg *target, version int) {
	topic := tg.topic("t", 1)
	x := tg.txn(version, "x").init()
	x.produce(topic, "a")
	for _, v := range []int16{0, 1, 2, 4, 5} {
		if (v == 5) != (version == 2) {
			continue
		}
		req := x.endRequest(true)
		req.Version, req.ProducerEpoch = v, x.epoch+int16(version)
		c := x.coord.do(req).(*kmsg.EndTxnResponse).ErrorCode
		if v < 2 {
			want(tg, fmt.Sprintf("EndTxn v%d with a larger epoch", v), c, kerr.InvalidProducerEpoch)
		} else {
			want(tg, fmt.Sprintf("EndTxn v%d with a larger epoch", v), c, kerr.ProducerFenced)
		}
	}
	if d := tg.describe(x.id); d.State != "Ongoing" || d.ProducerEpoch != x.epoch {
		tg.Fatalf("the transaction is %s at epoch %d, it was Ongoing at %d", d.State, d.ProducerEpoch, x.epoch)
	}
	x.commit()
}

// recoverByEpoch: KIP-360, who may go on with what it has.
func recoverByEpoch(tg *target) {
	x := tg.txn(1, "x").init()
	ask := func(pid int64, epoch int16) *kmsg.InitProducerIDResponse {
		tg.Helper()
		return x.coord.do(initRequest(4, x.id, x.timeout, pid, epoch)).(*kmsg.InitProducerIDResponse)
	}
	bumped := ask(x.pid, x.epoch)
	want(tg, "the current epoch", bumped.ErrorCode, nil)
	if bumped.ProducerID != x.pid || bumped.ProducerEpoch != x.epoch+1 {
		tg.Fatalf("from %d/%d to %d/%d, want the next epoch", x.pid, x.epoch, bumped.ProducerID, bumped.ProducerEpoch)
	}
	again := ask(x.pid, x.epoch)
	want(tg, "the previous epoch, a repeat", again.ErrorCode, nil)
	if again.ProducerID != bumped.ProducerID || again.ProducerEpoch != bumped.ProducerEpoch {
		tg.Fatalf("the repeat gave %d/%d, the first %d/%d", again.ProducerID, again.ProducerEpoch, bumped.ProducerID, bumped.ProducerEpoch)
	}
	want(tg, "once more", ask(x.pid, bumped.ProducerEpoch).ErrorCode, nil)
	want(tg, "an older epoch", ask(x.pid, x.epoch).ErrorCode, kerr.ProducerFenced)
	want(tg, "a wrong producer id", ask(x.pid+1_000_000, x.epoch).ErrorCode, kerr.ProducerFenced, kerr.InvalidProducerIDMapping)
	want(tg, "an epoch without an id", ask(-1, 0).ErrorCode, kerr.InvalidRequest)
}

// newerEpochClosesOlder: InitProducerId ends the older epoch's transaction everywhere, and nothing else.
func newerEpochClosesOlder(tg *target, version int) {
	topic := tg.topic("t", 2)
	a := tg.txn(version, "x").init()
	a.produceTo(topic, 0, "old")
	a.produceTo(topic, 1, "old")
	b := tg.txn(version, "x").init()
	b.produceTo(topic, 0, "new")
	b.commit()
	b.settled()
	for p := range int32(2) {
		if n := tg.open(topic, p); n != 0 {
			tg.Fatalf("partition %d has %d open transactions", p, n)
		}
	}
	if got := tg.values(topic, true); !slices.Equal(got, []string{"new"}) {
		tg.Fatalf("read committed %q, want only the newer epoch", got)
	}
	if log := tg.logOf(topic, 1); len(log) != 2 || !log[1].control() || log[1].commits() {
		tg.Fatalf("the other partition has %d batches, want the data and its abort marker", len(log))
	}
}

// repeatedEnd: the same decision again is no error, the opposite one is.
func repeatedEnd(tg *target, version int) {
	topic := tg.topic("t", 1)
	for _, commit := range []bool{true, false} {
		x := tg.txn(version, fmt.Sprint("x-", commit)).init()
		x.produce(topic, "v")
		same, opposite := x.endRequest(commit), x.endRequest(!commit)
		x.end(commit)
		x.settled()
		want(tg, "the same decision again", x.coord.do(same).(*kmsg.EndTxnResponse).ErrorCode, nil)
		want(tg, "the opposite one", x.coord.do(opposite).(*kmsg.EndTxnResponse).ErrorCode, kerr.InvalidTxnState)
		if version == 2 {
			want(tg, "a commit of nothing", x.tryEnd(true), kerr.InvalidTxnState)
		}
	}
}

// emptyTransactions: ending a transaction without records, as clients do, leaves the producer usable.
func emptyTransactions(tg *target, version int) {
	topic := tg.topic("t", 1)
	x := tg.txn(version, "x").init()
	for _, commit := range []bool{true, false} {
		x.add(topic)
		x.end(commit)
		x.settled()
	}
	if version == 2 {
		x.abort() // nothing was added at all
	}
	x.produce(topic, "v")
	x.commit()
	x.settled()
	if got := tg.values(topic, true); !slices.Equal(got, []string{"v"}) {
		tg.Fatalf("read committed %q", got)
	}
}

// manyOfVersionOne: on a cluster of transaction version 2, a client of version 1 runs one transaction after the other.
func manyOfVersionOne(tg *target) {
	topic := tg.topic("t", 1)
	x := tg.txn(1, "x").init()
	pid, epoch := x.pid, x.epoch
	for i := range 100 {
		x.produce(topic, fmt.Sprint(i))
		x.commit()
	}
	x.settled()
	if got := tg.values(topic, true); len(got) != 100 || x.pid != pid || x.epoch != epoch {
		tg.Fatalf("%d records of 100 transactions", len(got))
	}
}
