package cases

import (
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// rebornCases end the broker in the midst of transactions, or fail its disk.
var rebornCases = []testCase{
	{"T15", "KAFKA-7519", crash, failedExpiryIsTriedAgain},
	{"T22", "KAFKA-15784", crash, failedOffsetsLeaveNothing},
	{"T33", "redpanda#9571", crash, both(offsetsMoveWithRecords)},
	{"T36", "redpanda#10669, krabka 1.0", restart, statesOutliveRestart},
	{"T37", "redpanda#6311, redpanda#8236, redpanda#14624", crash, both(openTransactionOutlivesCrash)},
	{"T57", "kfake", crash, both(epochAndSequenceOutliveCrash)},
}

// reborn ends the broker and starts it again, and gives the producers connections to the new one.
func (tg *target) reborn(how func(), producers ...*txn) {
	tg.Helper()
	tg.hangUp()
	how()
	for _, x := range producers {
		x.coord, x.leaders = tg.coordinator(1, x.id), map[string]*wire{}
	}
}

func (tg *target) restarted(producers ...*txn) {
	tg.Helper()
	tg.reborn(func() { tg.own.Restart(tg) }, producers...)
}

func (tg *target) crashed(seed uint64, producers ...*txn) {
	tg.Helper()
	tg.reborn(func() { tg.own.Crash(tg, seed) }, producers...)
}

// failedExpiryIsTriedAgain: while its log takes no writes the coordinator can not abort what timed out; afterwards it does,
// and the producer can go on.
func failedExpiryIsTriedAgain(tg *target) {
	topic := tg.topic("t", 1)
	x := tg.txn(2, "x")
	x.timeout = 300
	x.init()
	x.produce(topic, "v")
	heal := tg.own.FailDisk("full", "__transaction_state")
	tg.eventually("the deadline, and some tries behind it", func() (bool, string) {
		d := tg.describe(x.id)
		if retriable(d.ErrorCode) {
			return false, code(d.ErrorCode)
		}
		if d.State != "Ongoing" || tg.lso(topic) != 0 {
			tg.Fatalf("the transaction is %s while no decision can be written", d.State)
		}
		late := time.Now().UnixMilli() - d.StartTimestamp - int64(x.timeout)
		return late > 700, fmt.Sprintf("%d ms behind the deadline", late)
	})
	if c := tg.txn(2, "y").tryInit(); c == 0 {
		tg.Fatal("the log of the coordinator takes writes, the case shows nothing")
	}
	heal()
	tg.eventually("abort of the timed-out transaction", func() (bool, string) {
		lso, end := tg.lso(topic), tg.end(topic)
		return lso == end && end == 2, fmt.Sprintf("LSO %d, end %d", lso, end)
	})
	tg.txn(2, "x").init()
}

// failedOffsetsLeaveNothing: offsets of a transaction that the group's log did not take are not there, not even for a while.
func failedOffsetsLeaveNothing(tg *target) {
	topic, group := tg.topic("t", 1), tg.name("g")
	x := tg.txn(2, "x").init()
	x.retry("TxnOffsetCommit", func() int16 { return x.offsets(5, group, topic, 1) })
	x.commit()
	x.settled()
	heal := tg.own.FailDisk("full", "__consumer_offsets")
	if c := x.offsets(5, group, topic, 2); c == 0 {
		tg.Fatal("offsets were taken on a full disk")
	}
	heal()
	tg.eventually("EndTxn(abort)", func() (bool, string) { c := x.tryEnd(false); return c == 0, code(c) })
	x.settled()
	if offset, c := tg.stableOffset(group, topic); offset != 1 || c != 0 {
		tg.Fatalf("offset %d, %s; want 1, and stable", offset, code(c))
	}
}

// offsetsMoveWithRecords: records and group offset of a transaction are there together or not at all, whatever is lost.
func offsetsMoveWithRecords(tg *target, version int) {
	topic, group := tg.topic("t", 1), tg.name("g")
	x := tg.txn(version, "x").init()
	for round := range 6 {
		x.produce(topic, fmt.Sprint(round))
		if version == 1 {
			req := kmsg.NewPtrAddOffsetsToTxnRequest()
			req.Version, req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = 3, x.id, x.pid, x.epoch, group
			x.retry("AddOffsetsToTxn", func() int16 { return x.coord.do(req).(*kmsg.AddOffsetsToTxnResponse).ErrorCode })
		}
		x.retry("TxnOffsetCommit", func() int16 { return x.offsets(int16(1+2*version), group, topic, int64(round+1)) })
		end := x.endRequest(round%3 != 2)
		if err := x.coord.send(x.coord.frame(end)); err != nil { // nobody waits for the answer
			tg.Fatal(err)
		}
		tg.crashed(uint64(round))
		x = tg.txn(version, "x").init() // ends what was open
		x.settled()
		var offset int64
		tg.eventually("stable offset", func() (bool, string) {
			var c int16
			offset, c = tg.stableOffset(group, topic)
			return c == 0, code(c)
		})
		got := tg.values(topic, true)
		last := int64(0)
		if len(got) > 0 {
			if _, err := fmt.Sscan(got[len(got)-1], &last); err != nil {
				tg.Fatal(err)
			}
			last++
		}
		if max(offset, 0) != last {
			tg.Fatalf("round %d: the group is at %d, the last record that is visible is of round %d", round, offset, last-1)
		}
	}
}

// statesOutliveRestart: ids in every state are after a restart as they were, or further, and can all go on.
func statesOutliveRestart(tg *target) {
	const ids = 60
	topic := tg.topic("t", 1)
	var xs []*txn
	before := map[string]kmsg.DescribeTransactionsResponseTransactionState{}
	for i := range ids {
		x := tg.txn(1+i%2, fmt.Sprint("x", i)).init()
		if i%5 > 0 {
			x.produce(topic, fmt.Sprint(i))
		}
		if i%5 > 2 {
			x.end(i%5 == 3)
		}
		xs = append(xs, x)
	}
	for i, x := range xs {
		if i%5 > 2 {
			x.settled()
		}
		before[x.id] = tg.describe(x.id)
	}
	tg.restarted(xs...)
	for i, x := range xs {
		var d kmsg.DescribeTransactionsResponseTransactionState
		tg.eventually("DescribeTransactions", func() (bool, string) {
			d = tg.describe(x.id)
			return !retriable(d.ErrorCode), code(d.ErrorCode)
		})
		b := before[x.id]
		if d.State != b.State || d.ProducerID != b.ProducerID || d.ProducerEpoch != b.ProducerEpoch || d.StartTimestamp != b.StartTimestamp ||
			fmt.Sprint(d.Topics) != fmt.Sprint(b.Topics) {
			tg.Fatalf("%s was %+v, after the restart it is %+v", x.id, b, d)
		}
		if i%5 == 0 || i%5 > 2 {
			x.produce(topic, "next")
		}
		x.commit()
	}
	tg.eventually("LSO", func() (bool, string) { a, b := tg.lso(topic), tg.end(topic); return a == b, fmt.Sprint(a, b) })
}

// openTransactionOutlivesCrash: after a crash an open transaction neither blocks InitProducerId nor outlives its timeout.
func openTransactionOutlivesCrash(tg *target, version int) {
	topic := tg.topic("t", 2)
	x, y := tg.txn(version, "x").init(), tg.txn(version, "y")
	y.timeout = 1000
	y.init()
	x.produceTo(topic, 0, "x")
	y.produceTo(topic, 1, "y")
	tg.crashed(37, x)
	again := tg.txn(version, "x").init()
	if again.pid == x.pid && again.epoch <= x.epoch {
		tg.Fatalf("the new client has epoch %d, the old one had %d", again.epoch, x.epoch)
	}
	tg.eventually("abort by timeout", func() (bool, string) { n := tg.open(topic, 1); return n == 0, fmt.Sprint(n, " open") })
	if n := tg.open(topic, 0); n != 0 {
		tg.Fatalf("%d transactions are open where InitProducerId has ended one", n)
	}
	for p := range int32(2) {
		for _, b := range tg.logOf(topic, p) {
			if b.control() && b.commits() {
				tg.Fatalf("partition %d: the transaction was committed, nobody said so", p)
			}
		}
	}
}

// epochAndSequenceOutliveCrash: an open transaction is still open after a clean restart and after a crash; a repeat is known,
// a gap is refused, and both decisions work.
func epochAndSequenceOutliveCrash(tg *target, version int) {
	topic := tg.topic("t", 1)
	var wanted []string
	for round, commit := range []bool{true, false, true} {
		x := tg.txn(version, fmt.Sprint("x", round)).init()
		x.produce(topic, "a", "b")
		repeat := x.data(topic, 0, "a", "b")
		repeat.seq = 0
		base := tg.end(topic) - 2
		if round == 1 {
			tg.restarted(x)
		} else {
			tg.crashed(uint64(57+round), x)
		}
		p := x.leader(topic, 0).do(x.request(topic, 0, repeat.bytes())).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
		want(tg, "the repeat", p.ErrorCode, nil)
		if p.BaseOffset != base {
			tg.Fatalf("the repeat is at %d, the first was at %d", p.BaseOffset, base)
		}
		gap := x.data(topic, 0, "gap")
		gap.seq++
		p = x.leader(topic, 0).do(x.request(topic, 0, gap.bytes())).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
		want(tg, "a gap", p.ErrorCode, kerr.OutOfOrderSequenceNumber)
		x.produce(topic, "c")
		x.end(commit)
		x.settled()
		if commit {
			wanted = append(wanted, "a", "b", "c")
		}
	}
	if got := tg.values(topic, true); !slices.Equal(got, wanted) {
		tg.Fatalf("read committed %q, want %q", got, wanted)
	}
}
