package cases

import (
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// sessionCases are about fetches of many partitions, and fetch sessions (KIP-227).
var sessionCases = []testCase{
	{"F06", "redpanda#1115", speak, quietSessionWaits},
	{"F07", "redpanda#3336", speak, sessionServesEveryPartition},
	{"F09", "KAFKA-4172", speak, everyPartitionIsAnswered},
	{"F21", "redpanda#6630", speak, both(uncommittedReaderSeesEverything)},
	{"F22", "krabka#1189", speak, errorsOfWhatIsNotThere},
}

// sessionFetch makes a fetch within a session; epoch 0 makes the session.
func sessionFetch(session, epoch int32, waitMs, maxBytes int32) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.ReplicaID = 12, -1
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = waitMs, 1, maxBytes
	req.SessionID, req.SessionEpoch = session, epoch
	return req
}

// ask adds a partition to a fetch.
func ask(req *kmsg.FetchRequest, topic string, partition int32, offset int64) {
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes = partition, offset, 1<<20
	rp.CurrentLeaderEpoch, rp.LastFetchedEpoch, rp.LogStartOffset = -1, -1, -1
	for i := range req.Topics {
		if req.Topics[i].Topic == topic {
			req.Topics[i].Partitions = append(req.Topics[i].Partitions, rp)
			return
		}
	}
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic, rt.Partitions = topic, append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
}

// quietSessionWaits: an incremental fetch without news takes its maximal wait, and comes back at once when there is some.
func quietSessionWaits(tg *target) {
	topic := tg.topic("t", 1)
	w := tg.leader(topic, 0)
	first := sessionFetch(0, 0, 0, 1<<20)
	ask(first, topic, 0, 0)
	resp := w.do(first).(*kmsg.FetchResponse)
	want(tg, "the fetch that makes a session", resp.ErrorCode, nil)
	if resp.SessionID == 0 {
		tg.Fatal("no session was made")
	}
	const wait = 400
	began := time.Now()
	quiet := w.do(sessionFetch(resp.SessionID, 1, wait, 1<<20)).(*kmsg.FetchResponse)
	want(tg, "the quiet fetch", quiet.ErrorCode, nil)
	if took := time.Since(began); took < wait*time.Millisecond*9/10 {
		tg.Fatalf("a fetch without news came back after %v, its wait is %d ms: clients ask in a busy loop", took, wait)
	}
	if len(quiet.Topics) != 0 {
		tg.Fatalf("a fetch without news names %d topics", len(quiet.Topics))
	}
	req := sessionFetch(resp.SessionID, 2, 25_000, 1<<20)
	if err := w.send(w.frame(req)); err != nil {
		tg.Fatal(err)
	}
	tg.mustProduce(tg.leader(topic, 0), topic, plain("news"))
	got, err := w.receive(req)
	if err != nil {
		tg.Fatal(err)
	}
	woken := got.(*kmsg.FetchResponse)
	if len(woken.Topics) != 1 || !slices.Equal(decode(woken.Topics[0].Partitions[0].RecordBatches)[0].values, []string{"news"}) {
		tg.Fatalf("the fetch that was woken has %d topics", len(woken.Topics))
	}
}

// sessionServesEveryPartition: when an answer has room for one batch only, a partition that always has one does not keep
// the others waiting.
func sessionServesEveryPartition(tg *target) {
	const partitions = 50
	topic := tg.topic("t", partitions)
	w := tg.leader(topic, 0)
	for p := range int32(partitions) {
		n := 1
		if p == 0 {
			n = 2 * partitions
		}
		for i := range n {
			r := w.do(produceRequest(9, "", -1, topic, p, plain(fmt.Sprint(i)).bytes())).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
			want(tg, "produce", r.ErrorCode, nil)
		}
	}
	req := sessionFetch(0, 0, 1000, 1)
	for p := range int32(partitions) {
		ask(req, topic, p, 0)
	}
	served := map[int32]int{}
	for epoch := int32(1); epoch <= 2*partitions && len(served) < partitions; epoch++ {
		resp := w.do(req).(*kmsg.FetchResponse)
		want(tg, "fetch", resp.ErrorCode, nil)
		req = sessionFetch(resp.SessionID, epoch, 1000, 1)
		for _, rt := range resp.Topics {
			for _, rp := range rt.Partitions {
				if bs := decode(rp.RecordBatches); len(bs) > 0 {
					served[rp.Partition]++
					ask(req, topic, rp.Partition, bs[len(bs)-1].last()+1)
				}
			}
		}
	}
	if len(served) < partitions {
		tg.Fatalf("%d of %d partitions were served in %d fetches, the busy one %d times", len(served), partitions, 2*partitions, served[0])
	}
}

// everyPartitionIsAnswered: what is asked is in the answer once, with its own error.
func everyPartitionIsAnswered(tg *target) {
	const partitions = 100
	topic, unknown := tg.topic("t", partitions), tg.name("nothing")
	w := tg.leader(topic, 0)
	req := sessionFetch(0, -1, 0, 1<<20)
	code := map[string]int16{}
	for p := range int32(2 * partitions) {
		offset, c := int64(0), int16(0)
		switch {
		case p >= partitions:
			c = kerr.UnknownTopicOrPartition.Code
		case p%3 == 1:
			offset, c = 7, kerr.OffsetOutOfRange.Code
		}
		ask(req, topic, p, offset)
		code[key(topic, p)] = c
	}
	ask(req, unknown, 0, 0)
	code[key(unknown, 0)] = kerr.UnknownTopicOrPartition.Code
	seen := map[string]int{}
	for _, rt := range w.do(req).(*kmsg.FetchResponse).Topics {
		for _, rp := range rt.Partitions {
			k := key(rt.Topic, rp.Partition)
			seen[k]++
			if rp.ErrorCode != code[k] {
				tg.Errorf("%s: got %d, want %d", k, rp.ErrorCode, code[k])
			}
		}
	}
	for k := range code {
		if seen[k] != 1 {
			tg.Errorf("%s is in the answer %d times", k, seen[k])
		}
	}
}

// uncommittedReaderSeesEverything: a reader of uncommitted data sees that of an open transaction, and of an aborted one.
func uncommittedReaderSeesEverything(tg *target, version int) {
	topic := tg.topic("t", 1)
	x := tg.txn(version, "x").init()
	x.produce(topic, "a", "b")
	if got := tg.values(topic, false); !slices.Equal(got, []string{"a", "b"}) {
		tg.Fatalf("an open transaction shows %q to a reader of uncommitted data", got)
	}
	if got := tg.values(topic, true); len(got) != 0 {
		tg.Fatalf("an open transaction shows %q to a committed reader", got)
	}
	x.abort()
	x.settled()
	if got := tg.values(topic, false); len(got) < 2 || !slices.Equal(got[:2], []string{"a", "b"}) {
		tg.Fatalf("an aborted transaction shows %q to a reader of uncommitted data", got)
	}
	if got := tg.values(topic, true); len(got) != 0 {
		tg.Fatalf("an aborted transaction shows %q to a committed reader", got)
	}
}

// errorsOfWhatIsNotThere: a partition or a topic that does not exist, by name and by id.
func errorsOfWhatIsNotThere(tg *target) {
	topic := tg.topic("t", 1)
	w := tg.leader(topic, 0)
	for _, name := range []string{topic, tg.name("nothing")} {
		p := w.do(produceRequest(9, "", -1, name, 9, plain("v").bytes())).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
		want(tg, "Produce", p.ErrorCode, kerr.UnknownTopicOrPartition)
		l := w.do(offsetRequest(name, 9, -1, false)).(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
		want(tg, "ListOffsets", l.ErrorCode, kerr.UnknownTopicOrPartition)
		req := sessionFetch(0, -1, 0, 1<<20)
		ask(req, name, 9, 0)
		want(tg, "Fetch", w.do(req).(*kmsg.FetchResponse).Topics[0].Partitions[0].ErrorCode, kerr.UnknownTopicOrPartition)
	}
	byID := sessionFetch(0, -1, 0, 1<<20)
	byID.Version = 13
	ask(byID, "", 0, 0)
	byID.Topics[0].TopicID = [16]byte{1, 2, 3, 4}
	want(tg, "Fetch of an unknown id", w.do(byID).(*kmsg.FetchResponse).Topics[0].Partitions[0].ErrorCode, kerr.UnknownTopicID)
	produce := produceRequest(13, "", -1, "", 0, plain("v").bytes())
	produce.Topics[0].TopicID = [16]byte{1, 2, 3, 4}
	want(tg, "Produce to an unknown id", w.do(produce).(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode, kerr.UnknownTopicID)
}
