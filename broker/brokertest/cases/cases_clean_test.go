package cases

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The broker of these cases looks for something to clean many times a second (own_test.go), and their topics have tiny segments.
var cleanCases = []testCase{
	{"C01", "redpanda commit 4ce65523af, crabka#528, KAFKA-14055", restart, compactionKeepsIsolation},
	{"C02", "crabka#1177", restart, abortedRecordHidesNothing},
	{"C03", "KAFKA-13194", restart, both(compactionStopsAtOpenTransaction)},
	{"P12", "redpanda#3654, redpanda#3552, KAFKA-5490, kafkajs#562", crash, producerSurvivesCompaction},
	{"C09", "KAFKA-9133, KAFKA-8764", restart, compactionGoesOnBehindDeletedRecords},
	{"C15", "krabka 0.6.0", restart, compactedTopicIgnoresRetention},
	{"C16", "KAFKA-15047", crash, idleTopicEmpties},
	{"C00", "min.insync.replicas of one node", restart, tooFewReplicas},
	{"C18", "redpanda#9820, KAFKA-18929", restart, futureTimestamps},
}

// compacted creates a topic that is compacted at every chance.
func (tg *target) compacted(name string, config ...string) string {
	tg.Helper()
	return tg.topic(name, 1, append([]string{
		"cleanup.policy", "compact", "internal.segment.bytes", "300", "min.cleanable.dirty.ratio", "0"}, config...)...)
}

// filler ends the active segment, so that all before may be compacted.
func (tg *target) filler(topic string) {
	tg.Helper()
	w := tg.leader(topic, 0)
	for range 2 {
		tg.mustProduce(w, topic, batch{pid: -1, epoch: -1, seq: -1, key: []byte("filler"), values: []string{fmt.Sprintf("%0150d", 0)}})
	}
}

// stored are the values of partition 0 as they lie in the log, without fillers and markers.
func (tg *target) stored(topic string) (out []string) {
	tg.Helper()
	for _, b := range tg.log(topic) {
		if !b.control() {
			out = append(out, b.values...)
		}
	}
	return slices.DeleteFunc(out, func(v string) bool { return len(v) == 150 })
}

// awaitStored waits until compaction has left exactly these values.
func (tg *target) awaitStored(topic string, want ...string) {
	tg.Helper()
	tg.eventually("compaction of "+topic, func() (bool, string) {
		got := tg.stored(topic)
		return slices.Equal(got, want), fmt.Sprintf("the log has %q, want %q", got, want)
	})
}

func (tg *target) seen(topic string) []string {
	tg.Helper()
	return slices.DeleteFunc(tg.values(topic, true), func(v string) bool { return len(v) == 150 })
}

func compactionKeepsIsolation(tg *target) {
	topic := tg.compacted("t")
	x := tg.txn(2, "x").init()
	last := ""
	for i := range 30 {
		v := strconv.Itoa(i)
		x.produce(topic, v)
		if commit := i%3 != 2; commit {
			x.commit()
			last = v
		} else {
			x.abort()
		}
		tg.eventually("the last committed value", func() (bool, string) {
			got := tg.seen(topic)
			for _, v := range got {
				if n, err := strconv.Atoi(v); err != nil || n%3 == 2 {
					tg.Fatalf("aborted %q is seen", v)
				}
			}
			return len(got) > 0 && got[len(got)-1] == last, fmt.Sprintf("%q, want %s last", got, last)
		})
	}
	tg.filler(topic)
	tg.awaitStored(topic, last)
	if got := tg.seen(topic); !slices.Equal(got, []string{last}) {
		tg.Fatalf("a reader finds %q, want %s", got, last)
	}
	if lso, end := tg.lso(topic), tg.end(topic); lso != end {
		tg.Fatalf("last stable offset %d, log end %d", lso, end)
	}
}

func abortedRecordHidesNothing(tg *target) {
	topic := tg.compacted("t")
	x := tg.txn(2, "x").init()
	x.produce(topic, "1")
	x.commit()
	x.produce(topic, "2")
	x.abort()
	tg.filler(topic)
	tg.awaitStored(topic, "1")
	if got := tg.seen(topic); !slices.Equal(got, []string{"1"}) {
		tg.Fatalf("a reader finds %q", got)
	}
}

func compactionStopsAtOpenTransaction(tg *target, version int) {
	topic, canary := tg.compacted("t"), tg.compacted("u")
	w := tg.leader(topic, 0)
	tg.mustProduce(w, topic, plain("old"))
	tg.mustProduce(w, topic, plain("before"))
	tg.filler(topic)
	x := tg.txn(version, "x").init()
	x.produce(topic, "open")
	want := []string{"before", "open"}
	for i := range 10 {
		v := fmt.Sprint(i)
		want = append(want, v)
		tg.mustProduce(w, topic, plain(v))
		tg.filler(topic)
	}
	tg.awaitStored(topic, want...)
	for i := range 3 { // rounds that come and go
		for range 3 {
			tg.mustProduce(tg.leader(canary, 0), canary, plain(fmt.Sprint(i)))
		}
		tg.filler(canary)
		tg.awaitStored(canary, fmt.Sprint(i))
	}
	tg.awaitStored(topic, want...)
	x.commit()
	tg.filler(topic)
	tg.awaitStored(topic, "9")
}

// producerSurvivesCompaction is P12, C06 and F04: an overwritten batch goes but for its header, readers pass it, and its producer is
// known on.
func producerSurvivesCompaction(tg *target) {
	topic := tg.compacted("t")
	w := tg.leader(topic, 0)
	a, epoch := tg.newProducer()
	var last batch
	var base int64
	for i := range 3 {
		last = idempotent(a, epoch, int32(2*i), 2)
		last.key = []byte("k")
		base = tg.mustProduce(w, topic, last)
	}
	tg.mustProduce(w, topic, plain("overwritten"))
	tg.filler(topic)
	tg.awaitStored(topic, "overwritten")
	bs := tg.log(topic)
	if bs[0].ProducerID != a || bs[0].NumRecords != 0 || bs[0].last() != base+1 {
		tg.Fatalf("the log begins with producer %d, %d records, up to offset %d; want the emptied last batch of %d, up to %d",
			bs[0].ProducerID, bs[0].NumRecords, bs[0].last(), a, base+1)
	}
	for i, again := range []func(){func() {}, func() { tg.own.Restart(tg) }, func() { tg.own.Crash(tg, 12) }} {
		tg.hangUp()
		again()
		w = tg.leader(topic, 0)
		if got := tg.mustProduce(w, topic, last); got != base {
			tg.Fatalf("the last batch sent again went to %d, it is at %d", got, base)
		}
		for from := range tg.end(topic) { // from every offset a reader goes on
			p := tg.fetch(w, topic, from, true, 1)
			if bs := decode(p.RecordBatches); len(bs) == 0 || bs[0].last() < from {
				tg.Fatalf("round %d: a fetch from %d gets nowhere: %d batches, %s", i, from, len(bs), code(p.ErrorCode))
			}
		}
	}
	next := idempotent(a, epoch, 6, 2)
	next.key = []byte("k")
	if got := tg.mustProduce(w, topic, next); got < base {
		tg.Fatalf("the next batch went to %d", got)
	}
}

func compactionGoesOnBehindDeletedRecords(tg *target) {
	topic := tg.compacted("t", "cleanup.policy", "compact,delete")
	w := tg.leader(topic, 0)
	for round := range 3 {
		for i := range 10 {
			tg.mustProduce(w, topic, plain(fmt.Sprintf("%d/%d", round, i)))
		}
		tg.filler(topic)
		tg.deleteRecords(topic, tg.end(topic)-1)
	}
	for i := range 5 {
		tg.mustProduce(w, topic, plain(fmt.Sprint(i)))
	}
	tg.filler(topic)
	tg.awaitStored(topic, "4")
}

func (tg *target) deleteRecords(topic string, before int64) {
	tg.Helper()
	del := kmsg.NewPtrDeleteRecordsRequest()
	del.Version = 2
	del.TimeoutMillis = 30000
	rt := kmsg.NewDeleteRecordsRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewDeleteRecordsRequestTopicPartition()
	rp.Offset = before
	rt.Partitions = append(rt.Partitions, rp)
	del.Topics = append(del.Topics, rt)
	row := tg.leader(topic, 0).do(del).(*kmsg.DeleteRecordsResponse).Topics[0].Partitions[0]
	want(tg, "DeleteRecords", row.ErrorCode, nil)
}

// compactedTopicIgnoresRetention: next to a topic whose records expire at once, those of a compacted one stay.
func compactedTopicIgnoresRetention(tg *target) {
	kept := tg.compacted("t", "retention.ms", "1", "retention.bytes", "1")
	expires := tg.topic("u", 1, "internal.segment.bytes", "300", "retention.ms", "1")
	for _, topic := range []string{kept, expires} {
		tg.mustProduce(tg.leader(topic, 0), topic, plain("v"))
		tg.filler(topic)
	}
	tg.awaitEmpty(expires)
	if got := tg.seen(kept); !slices.Equal(got, []string{"v"}) {
		tg.Fatalf("the compacted topic has %q", got)
	}
}

func (tg *target) awaitEmpty(topic string) {
	tg.Helper()
	tg.eventually(topic+" expires", func() (bool, string) {
		first, _ := tg.offset(topic, 0, -2, false)
		return first == tg.end(topic), fmt.Sprintf("earliest %d, end %d", first, tg.end(topic))
	})
}

func idleTopicEmpties(tg *target) {
	topic := tg.topic("t", 1, "retention.ms", "50")
	for i := range 5 {
		tg.mustProduce(tg.leader(topic, 0), topic, plain(fmt.Sprint(i)))
	}
	tg.awaitEmpty(topic)
	if end := tg.end(topic); end != 5 {
		tg.Fatalf("the log ends at %d", end)
	}
	tg.hangUp()
	tg.own.Crash(tg, 16)
	tg.awaitEmpty(topic)
	if at := tg.mustProduce(tg.leader(topic, 0), topic, plain("next")); at != 5 {
		tg.Fatalf("the next record went to %d", at)
	}
}

func futureTimestamps(tg *target) {
	far := time.Now().AddDate(10, 0, 0).UnixMilli()
	topic := tg.topic("t", 1, "retention.ms", "50")
	b := plain("dated ahead")
	b.timeMs = far
	want(tg, "a record of the year after next", tg.produce(tg.leader(topic, 0), topic, b).ErrorCode, kerr.InvalidTimestamp)
	allowed := tg.topic("u", 1, "retention.ms", "50", "message.timestamp.after.max.ms", "9223372036854775807")
	tg.mustProduce(tg.leader(allowed, 0), allowed, b)
	tg.mustProduce(tg.leader(topic, 0), topic, plain("now"))
	tg.awaitEmpty(topic)
	if first, _ := tg.offset(allowed, 0, -2, false); first != 0 {
		tg.Fatalf("a record dated ahead has expired, earliest is %d", first)
	}
}

// tooFewReplicas: as in Kafka, one replica can't give acks=all where two are asked for, and takes acks=1.
func tooFewReplicas(tg *target) {
	topic := tg.topic("t", 1, "min.insync.replicas", "2")
	w := tg.leader(topic, 0)
	want(tg, "acks=all", tg.produce(w, topic, plain("all")).ErrorCode, kerr.NotEnoughReplicas)
	resp := w.do(produceRequest(9, "", 1, topic, 0, plain("one").bytes())).(*kmsg.ProduceResponse)
	want(tg, "acks=1", resp.Topics[0].Partitions[0].ErrorCode, nil)
	tg.eventually("the record", func() (bool, string) {
		got := tg.values(topic, false)
		return slices.Equal(got, []string{"one"}), fmt.Sprint(got)
	})
}
