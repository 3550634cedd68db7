package cases

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/core/seedtest"
)

var fetchCases = []testCase{
	{"F01", "nisshi", speak, fetchInsideBatch},
	{"F02", "krabka 1.0 (ThrottlingTest)", speak, fetchesConcatenateToLog},
	{"F05", "redpanda#4181", speak, fetchOutOfRange},
	{"F10", "KAFKA-5355, KAFKA-5376, KAFKA-5378", speak, both(parkedFetchKeepsIsolation)},
}

func fetchInsideBatch(tg *target) {
	topic := tg.topic("t", 1)
	w := tg.leader(topic, 0)
	tg.mustProduce(w, topic, plain("a0", "a1"))
	tg.mustProduce(w, topic, plain("b2", "b3"))
	for offset, first := range map[int64]int64{0: 0, 1: 0, 2: 2, 3: 2} {
		bs := decode(tg.fetch(w, topic, offset, false, 1<<20).RecordBatches)
		if len(bs) == 0 || bs[0].FirstOffset != first || bs[len(bs)-1].last() != 3 {
			tg.Fatalf("fetch at %d: %d batches, want whole batches from the one that holds it (%d) to offset 3", offset, len(bs), first)
		}
	}
}

// fetchesConcatenateToLog: over many small segments, fetches with any limit from any start join up without gaps.
func fetchesConcatenateToLog(tg *target) {
	seed := seedtest.New(tg)
	rng := rand.New(rand.NewPCG(seed, 2))
	// 1 MiB is the smallest segment.bytes that Kafka takes.
	topic := tg.topic("t", 1, "segment.bytes", "1048576")
	w := tg.leader(topic, 0)
	for i := range 60 {
		n := 1 + rng.IntN(3)
		values := make([]string, n)
		for j := range values {
			values[j] = fmt.Sprintf("%d/%d:%s", i, j, strings.Repeat("x", rng.IntN(60_000)))
		}
		tg.mustProduce(w, topic, plain(values...))
	}
	whole, end := tg.log(topic), tg.end(topic)
	offsets := make([]int64, len(whole))
	for i, b := range whole {
		offsets[i] = b.FirstOffset
	}
	for range 25 {
		at := rng.Int64N(end)
		for steps := 0; at < end && steps < 15; steps++ {
			limit := int32(1 + rng.IntN(64<<10))
			bs := decode(tg.fetch(w, topic, at, false, limit).RecordBatches)
			if len(bs) == 0 {
				tg.Fatalf("fetch at %d with limit %d gave no whole batch", at, limit)
			}
			i, found := slices.BinarySearch(offsets, at)
			if !found {
				i--
			}
			for k, b := range bs {
				if b.FirstOffset != offsets[i+k] || !slices.Equal(b.values, whole[i+k].values) {
					tg.Fatalf("fetch at %d with limit %d: batch %d begins at %d, the log has %d", at, limit, k, b.FirstOffset, offsets[i+k])
				}
			}
			at = bs[len(bs)-1].last() + 1
		}
	}
}

func fetchOutOfRange(tg *target) {
	topic := tg.topic("t", 1)
	w := tg.leader(topic, 0)
	tg.mustProduce(w, topic, plain("0", "1", "2", "3", "4"))
	del := kmsg.NewPtrDeleteRecordsRequest()
	del.Version = 2
	del.TimeoutMillis = 30000
	rt := kmsg.NewDeleteRecordsRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewDeleteRecordsRequestTopicPartition()
	rp.Partition, rp.Offset = 0, 2
	rt.Partitions = append(rt.Partitions, rp)
	del.Topics = append(del.Topics, rt)
	row := w.do(del).(*kmsg.DeleteRecordsResponse).Topics[0].Partitions[0]
	want(tg, "DeleteRecords", row.ErrorCode, nil)
	if row.LowWatermark != 2 {
		tg.Fatalf("low watermark %d after DeleteRecords(2)", row.LowWatermark)
	}
	for _, offset := range []int64{0, 1, 6, 1 << 40} {
		p := tg.fetch(w, topic, offset, false, 1<<20)
		want(tg, fmt.Sprintf("fetch at %d of [2,5)", offset), p.ErrorCode, kerr.OffsetOutOfRange)
		if p.HighWatermark != -1 {
			tg.Fatalf("error row has high watermark %d, want -1", p.HighWatermark)
		}
	}
	// At the high watermark a fetch waits, and gets the next record.
	req := fetchRequest(topic, 5, false, 1<<20, 20_000, 1)
	waiting := tg.leader(topic, 0)
	if err := waiting.send(waiting.frame(req)); err != nil {
		tg.Fatal(err)
	}
	tg.mustProduce(w, topic, plain("5"))
	resp, err := waiting.receive(req)
	if err != nil {
		tg.Fatal(err)
	}
	bs := decode(resp.(*kmsg.FetchResponse).Topics[0].Partitions[0].RecordBatches)
	if len(bs) != 1 || bs[0].values[0] != "5" {
		tg.Fatalf("the waiting fetch got %d batches", len(bs))
	}
}

// parkedFetchKeepsIsolation: a read_committed fetch that waits from before the data answers with the aborted list and
// the right last stable offset.
func parkedFetchKeepsIsolation(tg *target, version int) {
	topic := tg.topic("t", 1)
	x := tg.txn(version, "x").init()
	waiting := tg.leader(topic, 0)
	// Data, abort marker, data, commit marker: only what both together have to say satisfies the minimum.
	req := fetchRequest(topic, 0, true, 1<<20, 20_000, 300)
	if err := waiting.send(waiting.frame(req)); err != nil {
		tg.Fatal(err)
	}
	pid := x.pid
	x.produce(topic, "aborted")
	x.abort()
	x.produce(topic, "committed")
	x.commit()
	resp, err := waiting.receive(req)
	if err != nil {
		tg.Fatal(err)
	}
	p := resp.(*kmsg.FetchResponse).Topics[0].Partitions[0]
	if len(p.AbortedTransactions) != 1 || p.AbortedTransactions[0].ProducerID != pid || p.AbortedTransactions[0].FirstOffset != 0 {
		tg.Fatalf("aborted list %v, want producer %d from offset 0", p.AbortedTransactions, pid)
	}
	bs := decode(p.RecordBatches)
	if len(bs) == 0 || p.LastStableOffset < bs[len(bs)-1].last()+1 {
		tg.Fatalf("served %d batches with last stable offset %d", len(bs), p.LastStableOffset)
	}
	for _, v := range visible(bs, p.AbortedTransactions, 0) {
		if v != "committed" {
			tg.Fatalf("visible: %q", v)
		}
	}
}
