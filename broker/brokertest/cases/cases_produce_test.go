package cases

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var produceCases = []testCase{
	{"P01", "KAFKA-7692, KAFKA-7693, KAFKA-5283, kafkajs#1310", speak, sequenceWraps},
	{"P03", "KAFKA-5793, krabka 0.6.0", speak, fiveBatchWindow},
	{"P06", "redpanda#4366", speak, retryWhileInFlight},
	{"P15", "KAFKA-10778, krabka 0.5.1", crash, diskFailsOnAppend},
	{"P16", "nisshi, krabka 0.6.0", speak, keylessOnCompacted},
	{"P18", "krabka#1190", speak, badChecksum},
}

func idempotent(pid int64, epoch int16, seq int32, n int) batch {
	b := batch{pid: pid, epoch: epoch, seq: seq, key: []byte("k")}
	for i := range n {
		b.values = append(b.values, fmt.Sprint(int(seq)+i))
	}
	return b
}

func sequenceWraps(tg *target) {
	topic := tg.topic("t", 1)
	w := tg.leader(topic, 0)
	pid, epoch := tg.newProducer()
	tg.mustProduce(w, topic, plain("foreign"))
	var sent []batch
	var bases []int64
	seq := int64(2147483640)
	for range 4 {
		b := idempotent(pid, epoch, int32(seq%(math.MaxInt32+1)), 16)
		bases = append(bases, tg.mustProduce(w, topic, b))
		sent = append(sent, b)
		seq += 16
	}
	end := tg.end(topic)
	for i, b := range sent {
		if got := tg.mustProduce(w, topic, b); got != bases[i] {
			tg.Fatalf("batch %d across the wrap: base offset %d at first, %d when sent again", i, bases[i], got)
		}
	}
	if now := tg.end(topic); now != end || end != 65 {
		tg.Fatalf("end %d, after the repeats %d; want 65 both times", end, now)
	}
}

func fiveBatchWindow(tg *target) {
	topic := tg.topic("t", 1)
	w := tg.leader(topic, 0)
	pid, epoch := tg.newProducer()
	var bases []int64
	for i := range int32(7) {
		bases = append(bases, tg.mustProduce(w, topic, idempotent(pid, epoch, i*2, 2)))
	}
	end := tg.end(topic)
	for i := range int32(7) {
		p := tg.produce(w, topic, idempotent(pid, epoch, i*2, 2))
		if i < 2 {
			want(tg, fmt.Sprintf("batch %d, older than the window", i), p.ErrorCode, kerr.OutOfOrderSequenceNumber)
			continue
		}
		want(tg, fmt.Sprintf("batch %d, in the window", i), p.ErrorCode, nil)
		if p.BaseOffset != bases[i] {
			tg.Fatalf("batch %d: repeat answered with base offset %d, the original has %d", i, p.BaseOffset, bases[i])
		}
	}
	if now := tg.end(topic); now != end {
		tg.Fatalf("repeats moved the end from %d to %d", end, now)
	}
}

func retryWhileInFlight(tg *target) {
	const rounds = 500
	topic := tg.topic("t", 1)
	ws := []*wire{tg.leader(topic, 0), tg.leader(topic, 0)}
	pid, epoch := tg.newProducer()
	for seq := range int32(rounds) {
		raw := idempotent(pid, epoch, seq, 1).bytes()
		var got [2]int64
		var codes [2]int16
		var wg sync.WaitGroup
		for i, w := range ws {
			wg.Go(func() {
				codes[i] = -2
				if r, err := w.try(produceRequest(9, "", -1, topic, 0, raw)); err == nil {
					p := r.(*kmsg.ProduceResponse).Topics[0].Partitions[0]
					got[i], codes[i] = p.BaseOffset, p.ErrorCode
				}
			})
		}
		wg.Wait()
		if codes != [2]int16{} || got[0] != int64(seq) || got[1] != int64(seq) {
			tg.Fatalf("the same batch at the same time: codes %v, base offsets %v, want %d twice", codes, got, seq)
		}
	}
	if end := tg.end(topic); end != rounds {
		tg.Fatalf("end is %d after %d batches sent twice each", end, rounds)
	}
}

// diskFailsOnAppend: a failed write or sync is never acknowledged, takes no acknowledged record with it, and leaves no
// half batch for the next start.
func diskFailsOnAppend(tg *target) {
	for _, kind := range []string{"write", "sync"} {
		topic := tg.topic("t-"+kind, 1)
		other := tg.topic("other-"+kind, 1)
		w := tg.leader(topic, 0)
		tg.mustProduce(w, topic, plain("acknowledged"))
		heal := tg.own.FailDisk(kind, topic)
		p := tg.produce(w, topic, plain("refused"))
		if p.ErrorCode == 0 {
			tg.Fatalf("%s fails, yet the batch was acknowledged", kind)
		}
		want(tg, kind+" error", p.ErrorCode, kerr.KafkaStorageError, kerr.NotLeaderForPartition)
		tg.mustProduce(tg.leader(other, 0), other, plain("elsewhere"))
		heal()
		tg.hangUp()
		tg.own.Crash(tg, 15)
		got := tg.values(topic, false)
		if len(got) == 0 || got[0] != "acknowledged" {
			tg.Fatalf("after the %s error and a power cut: %q, the acknowledged record is gone", kind, got)
		}
		w = tg.leader(topic, 0)
		tg.mustProduce(w, topic, plain("goes on"))
		if got := tg.values(topic, false); got[len(got)-1] != "goes on" {
			tg.Fatalf("after the restart: %q", got)
		}
	}
}

func keylessOnCompacted(tg *target) {
	topic := tg.topic("t", 1, "cleanup.policy", "compact")
	w := tg.leader(topic, 0)
	tg.mustProduce(w, topic, plain("keyed"))
	p := tg.produce(w, topic, batch{pid: -1, epoch: -1, seq: -1, values: []string{"a", "b"}})
	want(tg, "keyless records on a compacted topic", p.ErrorCode, kerr.InvalidRecord)
	if len(p.ErrorRecords) != 2 || p.ErrorRecords[0].RelativeOffset != 0 || p.ErrorRecords[1].RelativeOffset != 1 {
		tg.Fatalf("record errors %v, want one for each of the two records", p.ErrorRecords)
	}
	if end := tg.end(topic); end != 1 {
		tg.Fatalf("end is %d, the whole batch must be refused", end)
	}
}

func badChecksum(tg *target) {
	topic := tg.topic("t", 2)
	w := tg.leader(topic, 0)
	bad := plain("bad").bytes()
	bad[len(bad)-1] ^= 1
	req := produceRequest(9, "", -1, topic, 0, bad)
	good := kmsg.NewProduceRequestTopicPartition()
	good.Partition, good.Records = 1, plain("good").bytes()
	req.Topics[0].Partitions = append(req.Topics[0].Partitions, good)
	resp := w.do(req).(*kmsg.ProduceResponse)
	codes := map[int32]int16{}
	for _, p := range resp.Topics[0].Partitions {
		codes[p.Partition] = p.ErrorCode
	}
	want(tg, "the flipped bit", codes[0], kerr.CorruptMessage)
	want(tg, "the other partition", codes[1], nil)
	if end := tg.end(topic); end != 0 {
		tg.Fatalf("end is %d after a refused batch", end)
	}
	tg.mustProduce(w, topic, plain("still usable"))
	if got := tg.values(topic, false); !slices.Equal(got, []string{"still usable"}) {
		tg.Fatalf("log holds %q", got)
	}
}
