package cases

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/core/seedtest"
)

// transactionLogCases look at what transactions leave in a partition, and at what a crash may take from them.
var transactionLogCases = []testCase{
	{"T32", "redpanda#6018", crash, both(crashWithOpenTransaction)},
	{"T34", "redpanda#13364", speak, both(oneMarkerPerPartition)},
	{"T43", "redpanda#30003", crash, both(crashAfterAddWithoutData)},
	{"T44", "nisshi PR#689", speak, both(readCommittedStopsAtLSO)},
	{"T51", "franz-go 1.21.4, krabka 0.6.1", speak, abortedListSortedCompleteLimited},
	{"T52", "quixstreams#1017, KAFKA-12980", speak, both(readerReachesEndBehindMarker)},
}

// crashWithOpenTransaction: after a power cut in an open transaction whose records were acknowledged, the commit
// succeeds with everything visible, or fails; nothing between.
func crashWithOpenTransaction(tg *target, version int) {
	topic := tg.topic("t", 1)
	x := tg.txn(version, "x").init()
	x.produce(topic, "a")
	x.produce(topic, "b")
	tg.hangUp()
	tg.own.Crash(tg, 32)
	x.coord, x.leaders = tg.coordinator(1, x.id), map[string]*wire{}
	var c int16
	tg.eventually("EndTxn after the crash", func() (bool, string) {
		c = x.tryEnd(true)
		return !retriable(c), code(c)
	})
	tg.eventually("LSO", func() (bool, string) {
		lso, end := tg.lso(topic), tg.end(topic)
		return lso == end || c != 0, fmt.Sprintf("LSO %d, end %d", lso, end)
	})
	got := tg.values(topic, true)
	switch {
	case c == 0 && !slices.Equal(got, []string{"a", "b"}):
		tg.Fatalf("committed, but read committed gives %q", got)
	case c != 0 && len(got) != 0:
		tg.Fatalf("commit failed with %s, but read committed gives %q", code(c), got)
	}
}

func oneMarkerPerPartition(tg *target, version int) {
	topic := tg.topic("t", 1)
	x := tg.txn(version, "x").init()
	x.produce(topic, "1", "2", "3")
	x.produce(topic, "4")
	x.abort()
	tg.eventually("end", func() (bool, string) { e := tg.end(topic); return e >= 5, fmt.Sprint(e) })
	if end, lso := tg.end(topic), tg.lso(topic); end != 5 || lso != 5 {
		tg.Fatalf("after 4 aborted records end is %d and LSO %d, want 5: one marker", end, lso)
	}
}

// crashAfterAddWithoutData: a partition is added, the broker restarts, then data comes and a crash: the transaction can
// be ended, and the last stable offset moves.
func crashAfterAddWithoutData(tg *target, version int) {
	topic := tg.topic("t", 1)
	x := tg.txn(version, "x").init()
	x.add(topic)
	again := func(f func()) {
		tg.hangUp()
		f()
		x.coord, x.leaders = tg.coordinator(1, x.id), map[string]*wire{}
	}
	again(func() { tg.own.Restart(tg) })
	x.retry("Produce", func() int16 { c, _ := x.tryProduce(topic, 0, "v"); return c })
	again(func() { tg.own.Crash(tg, 43) })
	x.commit()
	tg.eventually("LSO", func() (bool, string) {
		lso, end := tg.lso(topic), tg.end(topic)
		return lso == end, fmt.Sprintf("LSO %d, end %d", lso, end)
	})
	if got := tg.values(topic, true); !slices.Equal(got, []string{"v"}) {
		tg.Fatalf("read committed %q", got)
	}
}

func readCommittedStopsAtLSO(tg *target, version int) {
	topic := tg.topic("t", 1)
	w := tg.leader(topic, 0)
	tg.mustProduce(w, topic, plain("before"))
	x := tg.txn(version, "x").init()
	x.produce(topic, "open")
	tg.mustProduce(w, topic, plain("after"))
	p := tg.fetch(w, topic, 0, true, 1<<20)
	if p.LastStableOffset != 1 || p.HighWatermark != 3 {
		tg.Fatalf("last stable offset %d, high watermark %d; want 1 and 3", p.LastStableOffset, p.HighWatermark)
	}
	if bs := decode(p.RecordBatches); len(bs) != 1 || bs[0].values[0] != "before" {
		tg.Fatalf("read committed was served %d batches past the last stable offset", len(bs)-1)
	}
	if p := tg.fetch(w, topic, 1, true, 1<<20); len(p.RecordBatches) != 0 {
		tg.Fatal("a fetch at the last stable offset was served data")
	}
	x.commit()
	if got := tg.values(topic, true); !slices.Equal(got, []string{"before", "open", "after"}) {
		tg.Fatalf("read committed after the commit: %q", got)
	}
}

// abortedListSortedCompleteLimited: interleaved producers with random outcomes, random windows.
func abortedListSortedCompleteLimited(tg *target) {
	seed := seedtest.New(tg)
	rng := rand.New(rand.NewPCG(seed, 51))
	topic := tg.topic("t", 1)
	type span struct{ pid, first, marker int64 }
	var aborted []span
	open := map[*txn]int64{}
	var producers []*txn
	for i := range 12 {
		producers = append(producers, tg.txn(2, fmt.Sprintf("x%d", i)).init())
	}
	end := func(x *txn) {
		commit := rng.IntN(2) == 0
		pid := x.pid
		x.end(commit)
		if !commit {
			aborted = append(aborted, span{pid: pid, first: open[x]})
		}
		delete(open, x)
	}
	for range 150 {
		x := producers[rng.IntN(len(producers))]
		if _, is := open[x]; is && rng.IntN(3) == 0 {
			end(x)
			continue
		}
		var base int64
		x.retry("Produce", func() int16 { c, b := x.tryProduce(topic, 0, "v"); base = b; return c })
		if _, is := open[x]; !is {
			open[x] = base
		}
	}
	for _, x := range producers {
		if _, is := open[x]; is {
			end(x)
		}
	}
	tg.eventually("LSO", func() (bool, string) { a, b := tg.lso(topic), tg.end(topic); return a == b, fmt.Sprint(a, b) })
	for _, b := range tg.log(topic) {
		if b.control() && !b.commits() {
			for i := range aborted {
				if aborted[i].pid == b.ProducerID && aborted[i].marker == 0 && aborted[i].first < b.FirstOffset {
					aborted[i].marker = b.FirstOffset
					break
				}
			}
		}
	}
	w, last := tg.leader(topic, 0), tg.end(topic)
	for range 60 {
		from := rng.Int64N(last)
		p := tg.fetch(w, topic, from, true, int32(1+rng.IntN(4000)))
		bs := decode(p.RecordBatches)
		upto := bs[len(bs)-1].last() + 1
		got := map[span]bool{}
		for i, a := range p.AbortedTransactions {
			got[span{pid: a.ProducerID, first: a.FirstOffset}] = true
			// Apache Kafka 4.4 lists them by marker, which old franz-go clients misread, and counts a batch that it cut
			// short; the embedded broker sorts, and serves whole batches.
			if tg.own != nil && i > 0 && a.FirstOffset < p.AbortedTransactions[i-1].FirstOffset {
				tg.Fatalf("aborted list of [%d,%d) is not sorted by first offset", from, upto)
			}
			if tg.own != nil && a.FirstOffset >= upto {
				tg.Fatalf("aborted list of [%d,%d) names first offset %d", from, upto, a.FirstOffset)
			}
		}
		for _, a := range aborted {
			if a.first < upto && a.marker >= from && !got[span{pid: a.pid, first: a.first}] {
				tg.Fatalf("aborted list of [%d,%d) lacks producer %d from %d to %d", from, upto, a.pid, a.first, a.marker)
			}
		}
	}
}

// readerReachesEndBehindMarker: the last thing in the log is a marker; a read_committed client gets its position to
// the end, so whoever waits for "everything up to the end" ends.
func readerReachesEndBehindMarker(tg *target, version int) {
	topic := tg.topic("t", 1)
	x := tg.txn(version, "x").init()
	x.produce(topic, "v")
	x.commit()
	tg.eventually("marker", func() (bool, string) { e := tg.lso(topic); return e == 2, fmt.Sprint(e) })
	w := tg.leader(topic, 0)
	bs := decode(tg.fetch(w, topic, 1, true, 1<<20).RecordBatches)
	if len(bs) != 1 || !bs[0].control() || bs[0].last()+1 != tg.lso(topic) {
		tg.Fatalf("a fetch at the marker gave %d batches; the marker itself must be served", len(bs))
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(tg.cluster.Seeds()...), kgo.Dialer(tg.cluster.Dial), kgo.KeepControlRecords(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		tg.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), answerLimit)
	defer cancel()
	for position := int64(0); position < 2; {
		fs := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			tg.Fatalf("the client's position stays at %d, the end is 2", position)
		}
		fs.EachRecord(func(r *kgo.Record) { position = r.Offset + 1 })
	}
}
