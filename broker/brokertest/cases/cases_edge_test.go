package cases

import (
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// edgeCases are the edges of Produce: what is remembered of a producer, and what is refused.
var edgeCases = []testCase{
	{"P04", "KAFKA-7190, KAFKA-7298", speak, producerOutlivesRecords},
	{"P07", "KAFKA-14359, KAFKA-15591", speak, unknownProducerStartsAnywhere},
	{"P13", "KAFKA-5494", speak, repeatBehindMarker},
	{"P19", "redpanda#5685, redpanda#6570", speak, clientIDs},
	{"P21", "krabka 0.6.1", speak, requestRules},
	{"P22", "krabka 0.5.3", speak, numbersInRows},
	{"P24", "kfake", speak, controlBatchOfClient},
	{"P25", "krabka 0.6.1, KIP-937", speak, recordsOfTheFuture},
	{"P27", "KAFKA-13488, librdkafka#4970, kop#530, franz-go#908, franz-go#1426", speak, topicMadeAnew},
	{"P30", "franz-go#1281", speak, idThatNobodyGave},
}

// producerOutlivesRecords: deleting the records of a producer does not forget its sequence numbers.
func producerOutlivesRecords(tg *target) {
	topic := tg.topic("t", 1)
	w := tg.leader(topic, 0)
	pid, epoch := tg.newProducer()
	last := tg.mustProduce(w, topic, idempotent(pid, epoch, 0, 3))
	tg.deleteRecords(topic, 3)
	if at := tg.mustProduce(w, topic, idempotent(pid, epoch, 0, 3)); at != last {
		tg.Fatalf("the repeat of the last batch is at %d, the first was at %d", at, last)
	}
	if at := tg.mustProduce(w, topic, idempotent(pid, epoch, 3, 1)); at != 3 {
		tg.Fatalf("the next sequence is at %d, want 3", at)
	}
}

// unknownProducerStartsAnywhere: a partition that knows nothing of a producer takes any first sequence, as Apache Kafka up to
// 4.4 does; what was left out can not come later.
func unknownProducerStartsAnywhere(tg *target) {
	topic := tg.topic("t", 1)
	w := tg.leader(topic, 0)
	pid, epoch := tg.newProducer()
	tg.mustProduce(w, topic, idempotent(pid, epoch, 1, 1))
	want(tg, "sequence 0 after 1", tg.produce(w, topic, idempotent(pid, epoch, 0, 1)).ErrorCode, kerr.OutOfOrderSequenceNumber)
	if end := tg.end(topic); end != 1 {
		tg.Fatalf("end is %d, want 1", end)
	}
}

// repeatBehindMarker: under V1 a batch that comes again after its transaction was committed opens nothing. Since KIP-890 the
// coordinator is asked first, and knows of no transaction; without that it is a repeat, and answered with its first offset.
func repeatBehindMarker(tg *target) {
	topic := tg.topic("t", 1)
	x := tg.txn(1, "x").init()
	b := x.data(topic, 0, "a", "b", "c").bytes()
	x.produce(topic, "a", "b", "c")
	x.commit()
	x.settled()
	p := tg.leader(topic, 0).do(x.request(topic, 0, b)).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
	want(tg, "the repeat behind the marker", p.ErrorCode, kerr.TransactionAbortable, nil)
	if p.ErrorCode == 0 && p.BaseOffset != 0 || tg.end(topic) != 4 || tg.open(topic, 0) != 0 {
		tg.Fatalf("base offset %d, end %d, %d open transactions; want 0, 4 and none", p.BaseOffset, tg.end(topic), tg.open(topic, 0))
	}
}

// clientIDs: headers of both kinds with no, an empty, and a short client id are served.
func clientIDs(tg *target) {
	topic := tg.topic("t", 1)
	w := tg.leader(topic, 0)
	sent := 0
	for _, version := range []int16{8, 9} {
		for what, f := range map[string]*kmsg.RequestFormatter{
			"null":  kmsg.NewRequestFormatter(),
			"empty": kmsg.NewRequestFormatter(kmsg.FormatterClientID("")),
			"short": kmsg.NewRequestFormatter(kmsg.FormatterClientID("c")),
		} {
			req := produceRequest(version, "", -1, topic, 0, plain("v").bytes())
			if err := w.send(f.AppendRequest(nil, req, w.id.Add(1))); err != nil {
				tg.Fatal(err)
			}
			resp, err := w.receive(req)
			if err != nil {
				tg.Fatalf("Produce v%d with %s client id: %v", version, what, err)
			}
			want(tg, "Produce with client id "+what, resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode, nil)
			sent++
		}
	}
	if end := tg.end(topic); end != int64(sent) {
		tg.Fatalf("end is %d after %d records", end, sent)
	}
}

// requestRules: acks that do not exist, acks=0 to a partition that does not exist, an old request with a new codec, a base
// offset that a client may not choose.
func requestRules(tg *target) {
	topic := tg.topic("t", 1)
	w := tg.leader(topic, 0)
	p := w.do(produceRequest(9, "", 2, topic, 0, plain("v").bytes())).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
	want(tg, "acks=2", p.ErrorCode, kerr.InvalidRequiredAcks)

	zstd := plain("v").bytes()
	zstd[22] = 4
	p = w.do(produceRequest(6, "", -1, topic, 0, seal(zstd))).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
	want(tg, "zstd in Produce v6", p.ErrorCode, kerr.UnsupportedCompressionType)
	if end := tg.end(topic); end != 0 {
		tg.Fatalf("end is %d after refused batches", end)
	}

	b := plain("v")
	b.baseSkip = 77
	p = tg.produce(w, topic, b)
	want(tg, "base offset 77", p.ErrorCode, kerr.InvalidRecord, nil)
	if log := tg.log(topic); p.ErrorCode == 0 && (len(log) != 1 || log[0].FirstOffset != 0) {
		tg.Fatalf("a batch with base offset 77 was stored as it came: %v", log)
	}

	lost := tg.leader(topic, 0)
	if err := lost.send(lost.frame(produceRequest(9, "", 0, topic, 7, plain("v").bytes()))); err != nil {
		tg.Fatal(err)
	}
	if _, err := lost.receive(offsetRequest(topic, 0, -1, false)); err == nil {
		tg.Fatal("acks=0 to a partition that does not exist: the connection must be closed, it is the only way to say so")
	}
}

// numbersInRows: a refused partition has no offset, a good one tells the log start.
func numbersInRows(tg *target) {
	topic := tg.topic("t", 1)
	small := tg.topic("small", 1, "max.message.bytes", "200")
	w := tg.leader(topic, 0)
	for i := range 8 {
		tg.mustProduce(w, topic, plain(fmt.Sprint(i)))
	}
	tg.deleteRecords(topic, 5)
	req := produceRequest(9, "", -1, topic, 0, plain("good").bytes())
	bad := produceRequest(9, "", -1, small, 0, plain(string(make([]byte, 500))).bytes())
	req.Topics = append(req.Topics, bad.Topics[0])
	for _, t := range w.do(req).(*kmsg.ProduceResponse).Topics {
		p := t.Partitions[0]
		if t.Topic == topic {
			want(tg, "the good row", p.ErrorCode, nil)
			if p.BaseOffset != 8 || p.LogStartOffset != 5 {
				tg.Fatalf("good row: base offset %d, log start %d; want 8 and 5", p.BaseOffset, p.LogStartOffset)
			}
			continue
		}
		want(tg, "the oversize row", p.ErrorCode, kerr.MessageTooLarge)
		if p.BaseOffset != -1 {
			tg.Fatalf("refused row: base offset %d, want -1", p.BaseOffset)
		}
	}
}

// controlBatchOfClient: only brokers write markers.
func controlBatchOfClient(tg *target) {
	topic := tg.topic("t", 1)
	b := plain("v")
	b.control = true
	want(tg, "a control batch", tg.produce(tg.leader(topic, 0), topic, b).ErrorCode, kerr.InvalidRecord)
	if end := tg.end(topic); end != 0 {
		tg.Fatalf("end is %d", end)
	}
}

// recordsOfTheFuture: a time further ahead than message.timestamp.after.max.ms, an hour by default, is refused.
func recordsOfTheFuture(tg *target) {
	topic := tg.topic("t", 1)
	w := tg.leader(topic, 0)
	b := plain("a", "b")
	b.timeMs = time.Now().Add(2 * time.Hour).UnixMilli()
	p := tg.produce(w, topic, b)
	want(tg, "two hours ahead", p.ErrorCode, kerr.InvalidTimestamp)
	if len(p.ErrorRecords) == 0 || p.ErrorRecords[0].RelativeOffset != 0 {
		tg.Fatalf("record errors %v, want the first named", p.ErrorRecords)
	}
	b.timeMs = time.Now().Add(30 * time.Minute).UnixMilli()
	tg.mustProduce(w, topic, b)
}

// topicMadeAnew: a topic of the same name is another topic: another id, none of the old records, sequence numbers or offsets.
func topicMadeAnew(tg *target) {
	topic := tg.topic("t", 1)
	pid, epoch := tg.newProducer()
	tg.mustProduce(tg.leader(topic, 0), topic, idempotent(pid, epoch, 0, 5))
	old := tg.metadata(topic).Topics[0].TopicID
	tg.deleteTopic(topic)
	tg.topic("t", 1)
	if id := tg.metadata(topic).Topics[0].TopicID; id == old || id == [16]byte{} {
		tg.Fatalf("the new topic has id %x, the old had %x", id, old)
	}
	if end := tg.end(topic); end != 0 {
		tg.Fatalf("the new topic ends at %d", end)
	}
	w := tg.leader(topic, 0)
	stale := produceRequest(13, "", -1, "", 0, idempotent(pid, epoch, 5, 1).bytes())
	stale.Topics[0].TopicID = old
	want(tg, "Produce by the old id", w.do(stale).(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode,
		kerr.UnknownTopicID, kerr.UnknownTopicOrPartition)
	if at := tg.mustProduce(w, topic, idempotent(pid, epoch, 0, 1)); at != 0 {
		tg.Fatalf("the first batch of the new topic is at %d: its producer is remembered from the old one", at)
	}
	if got := tg.values(topic, false); !slices.Equal(got, []string{"0"}) {
		tg.Fatalf("the new topic holds %q", got)
	}
}

// idThatNobodyGave: nobody checks where an idempotent producer has its id from; a transactional one must be known.
func idThatNobodyGave(tg *target) {
	topic := tg.topic("t", 1)
	w := tg.leader(topic, 0)
	const pid = int64(999_999_999)
	tg.mustProduce(w, topic, idempotent(pid, 0, 0, 1))
	b := idempotent(pid+1, 0, 0, 1)
	b.txn = true
	for _, version := range []int16{9, 11, 12} {
		p := w.do(produceRequest(version, tg.name("nobody"), -1, topic, 0, b.bytes())).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
		want(tg, fmt.Sprintf("transactional Produce v%d", version), p.ErrorCode,
			kerr.InvalidProducerIDMapping, kerr.InvalidTxnState, kerr.TransactionAbortable)
	}
	if end, lso := tg.end(topic), tg.lso(topic); end != 1 || lso != 1 {
		tg.Fatalf("end %d, last stable offset %d; want 1", end, lso)
	}
}
