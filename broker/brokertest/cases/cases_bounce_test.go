package cases

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// bounceCases stop the broker in order, with work under way, and start it again. On one node this is what a change of
// leaders is on several.
var bounceCases = []testCase{
	{"P28", "krabka 1.0 (Kafka ReplicationTest)", restart, bouncesUnderIdempotentProducer},
	{"S12", "KAFKA-13315", restart, stopWithWorkUnderWay},
	{"S15", "redpanda commit 78a97495dc", speak, segmentsRollUnderLoad},
	{"T40", "redpanda#8486", restart, both(abortAcrossBounces)},
}

// bouncesUnderIdempotentProducer: a batch whose answer the stop may have taken is sent again after it. No value is at two
// offsets.
func bouncesUnderIdempotentProducer(tg *target) {
	topic := tg.topic("t", 1)
	pid, epoch := tg.newProducer()
	seq := int32(0)
	send := func(w *wire) error {
		b := batch{pid: pid, epoch: epoch, seq: seq, values: []string{strconv.Itoa(int(seq))}, key: []byte("k")}
		resp, err := w.try(produceRequest(9, "", -1, topic, 0, b.bytes()))
		if err != nil {
			return err
		}
		if c := resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode; c != 0 {
			return errors.New(code(c)) // a broker that is about to stop leads no more
		}
		seq++
		return nil
	}
	for range 10 {
		w, before := tg.leader(topic, 0), tg.end(topic)
		over := make(chan struct{})
		go func() {
			defer close(over)
			for send(w) == nil {
				continue
			}
		}()
		tg.eventually("some batches", func() (bool, string) { end := tg.end(topic); return end >= before+5, fmt.Sprint("the end is ", end) })
		tg.own.Restart(tg)
		<-over
		tg.hangUp()
		w = tg.leader(topic, 0)
		tg.eventually("the batch sent again", func() (bool, string) { err := send(w); return err == nil, fmt.Sprint(err) })
	}
	got := tg.values(topic, false)
	for i, v := range got {
		if v != strconv.Itoa(i) {
			tg.Fatalf("%q at offset %d", v, i)
		}
	}
	if len(got) != int(seq) {
		tg.Fatalf("%d values, %d were acknowledged", len(got), seq)
	}
}

// stopWithWorkUnderWay: open transactions and parked fetches do not keep a broker from stopping in order, and all is there
// afterwards; after a full disk it is as well.
func stopWithWorkUnderWay(tg *target) {
	topic := tg.topic("t", 1)
	x := tg.txn(2, "x").init()
	x.produce(topic, "open")
	for range 3 {
		parked := tg.leader(topic, 0)
		if err := parked.send(parked.frame(fetchRequest(topic, tg.end(topic), false, 1<<20, 25_000, 1))); err != nil {
			tg.Fatal(err)
		}
	}
	tg.restarted(x)
	if n := tg.open(topic, 0); n != 1 {
		tg.Fatalf("%d open transactions after the restart, want the one", n)
	}
	x.commit()
	x.settled()
	heal := tg.own.FailDisk("full", "")
	p := tg.produce(tg.leader(topic, 0), topic, plain("no room"))
	if p.ErrorCode == 0 {
		tg.Fatal("a write to a full disk is acknowledged")
	}
	heal()
	tg.restarted(x)
	x.produce(topic, "afterwards")
	x.commit()
	x.settled()
	if got := tg.values(topic, true); !slices.Equal(got, []string{"open", "afterwards"}) {
		tg.Fatalf("the log shows %q", got)
	}
}

// segmentsRollUnderLoad: segments that are old at once roll with every append. There is no gap, and nothing twice.
func segmentsRollUnderLoad(tg *target) {
	const writers, each = 4, 150
	topic := tg.topic("t", 1, "segment.ms", "10")
	results := make(chan error, writers)
	for i := range writers {
		w := tg.leader(topic, 0)
		go func() {
			for n := range each {
				resp, err := w.try(produceRequest(9, "", -1, topic, 0, plain(fmt.Sprintf("%d/%d", i, n)).bytes()))
				if err == nil {
					if c := resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode; c != 0 {
						err = fmt.Errorf("produce: %s", code(c))
					}
				}
				if err != nil {
					results <- err
					return
				}
			}
			results <- nil
		}()
	}
	for range writers {
		if err := <-results; err != nil {
			tg.Fatal(err)
		}
	}
	at, next := int64(0), make([]int, writers)
	for _, b := range tg.log(topic) {
		if b.FirstOffset != at {
			tg.Fatalf("a batch begins at %d, the one before ends at %d", b.FirstOffset, at)
		}
		at = b.last() + 1
		for _, v := range b.values {
			var i, n int
			if _, err := fmt.Sscanf(v, "%d/%d", &i, &n); err != nil || n != next[i] {
				tg.Fatalf("%q at offset %d, want record %d of writer %d", v, b.FirstOffset, next[i], i)
			}
			next[i]++
		}
	}
	if at != writers*each {
		tg.Fatalf("the log ends at %d, %d records were acknowledged", at, writers*each)
	}
}

// abortAcrossBounces: a transaction on three partitions outlives two bounces, and its abort ends it everywhere.
func abortAcrossBounces(tg *target, version int) {
	topic := tg.topic("t", 3)
	x := tg.txn(version, "x").init()
	for p := range int32(3) {
		x.produceTo(topic, p, "aborted")
	}
	tg.restarted(x)
	tg.restarted(x)
	x.abort()
	x.settled()
	for p := range int32(3) {
		end, _ := tg.offset(topic, p, -1, false)
		lso, _ := tg.offset(topic, p, -1, true)
		if n := tg.open(topic, p); n != 0 || lso != end || end != 2 {
			tg.Fatalf("partition %d: %d open transactions, last stable offset %d, end %d; want none, 2 and 2", p, n, lso, end)
		}
	}
}
