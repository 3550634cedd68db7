package cases

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/core/seedtest"
)

var storageCases = []testCase{
	{"S01", "NATS#7564 (Jepsen)", crash, powerCutLosesNothingAcknowledged},
	{"S10", "KAFKA-12520, KAFKA-9892, KAFKA-5829, KAFKA-5249", crash, windowSurvivesCrashes},
	{"S13", "krabka 0.5.4", crash, deletedRecordsStayDeleted},
}

// powerCutLosesNothingAcknowledged: the disk keeps what was synced and a random share of the rest; what was
// acknowledged with acks=all is there, in order, once.
func powerCutLosesNothingAcknowledged(tg *target) {
	seed := seedtest.New(tg)
	rng := rand.New(rand.NewPCG(seed, 1))
	topic := tg.topic("t", 1)
	var acked []string
	for round := range 8 {
		w := tg.leader(topic, 0)
		for i := range 1 + rng.IntN(20) {
			v := fmt.Sprintf("%d/%d", round, i)
			tg.mustProduce(w, topic, plain(v))
			acked = append(acked, v)
		}
		// One more batch whose answer nobody waits for: it may be there or not.
		if err := w.send(w.frame(produceRequest(9, "", -1, topic, 0, plain("?").bytes()))); err != nil {
			tg.Fatal(err)
		}
		tg.hangUp()
		tg.own.Crash(tg, rng.Uint64())
		got := slices.DeleteFunc(tg.values(topic, false), func(v string) bool { return v == "?" })
		if !slices.Equal(got, acked) {
			tg.Fatalf("after power cut %d: %d records, %d were acknowledged", round, len(got), len(acked))
		}
	}
}

// windowSurvivesCrashes: after each crash the last five batches are recognised as duplicates and the next is taken.
func windowSurvivesCrashes(tg *target) {
	topic := tg.topic("t", 1)
	pid, epoch := tg.newProducer()
	var bases []int64
	seq := int32(0)
	for round := range uint64(5) {
		w := tg.leader(topic, 0)
		for range 7 {
			bases = append(bases, tg.mustProduce(w, topic, idempotent(pid, epoch, seq, 2)))
			seq += 2
		}
		tg.hangUp()
		if round%2 == 0 {
			tg.own.Crash(tg, round)
		} else {
			tg.own.Restart(tg)
		}
		w, end := tg.leader(topic, 0), tg.end(topic)
		for i := len(bases) - 5; i < len(bases); i++ {
			if got := tg.mustProduce(w, topic, idempotent(pid, epoch, int32(2*i), 2)); got != bases[i] {
				tg.Fatalf("round %d: batch %d sent again got base offset %d, had %d", round, i, got, bases[i])
			}
		}
		if now := tg.end(topic); now != end {
			tg.Fatalf("round %d: repeats after the crash moved the end from %d to %d", round, end, now)
		}
	}
}

func deletedRecordsStayDeleted(tg *target) {
	topic := tg.topic("t", 1)
	w := tg.leader(topic, 0)
	for i := range 10 {
		tg.mustProduce(w, topic, plain(fmt.Sprint(2*i), fmt.Sprint(2*i+1)))
	}
	del := kmsg.NewPtrDeleteRecordsRequest()
	del.Version = 2
	del.TimeoutMillis = 30000
	rt := kmsg.NewDeleteRecordsRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewDeleteRecordsRequestTopicPartition()
	rp.Offset = 7
	rt.Partitions = append(rt.Partitions, rp)
	del.Topics = append(del.Topics, rt)
	row := w.do(del).(*kmsg.DeleteRecordsResponse).Topics[0].Partitions[0]
	want(tg, "DeleteRecords(7)", row.ErrorCode, nil)
	check := func(when string) {
		if first, _ := tg.offset(topic, 0, -2, false); first != 7 {
			tg.Fatalf("%s: earliest is %d, want 7", when, first)
		}
		if got := tg.values(topic, false); len(got) != 13 || got[0] != "7" {
			tg.Fatalf("%s: %d values from %q, want 13 from 7", when, len(got), got[0])
		}
	}
	check("at once")
	tg.hangUp()
	tg.own.Restart(tg)
	check("after a clean restart")
	tg.hangUp()
	tg.own.Crash(tg, 13)
	check("after a crash")
}
