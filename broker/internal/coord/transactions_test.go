package coord

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/core/clock"
	"github.com/millrace/millrace/core/vfs"
	"github.com/millrace/millrace/txn/coordinator"
	"github.com/millrace/millrace/txn/producer"
)

func freshNode(t testing.TB) *node {
	n := newNode(t, vfs.NewMem(), clock.System(), new(atomic.Int64))
	t.Cleanup(n.close)
	return n
}

// TestTransactionsBackToBack: a client that goes on at once is never sent away with
// CONCURRENT_TRANSACTIONS (T09, KAFKA-18575), under either version, and each
// transaction leaves one marker on each of its partitions (T34).
func TestTransactionsBackToBack(t *testing.T) {
	for _, version := range []int16{5, 4} {
		t.Run(fmt.Sprint("EndTxn", version), func(t *testing.T) {
			n := freshNode(t)
			c := n.client("x", version).init()
			const rounds = 300
			for round := range rounds {
				for i := range int32(2) {
					if version < 5 {
						if code := c.add(TopicPartition{Topic: "t", Partition: i}); code != 0 {
							t.Fatalf("round %d: add: code %d", round, code)
						}
					}
					if code := c.produce(i, fmt.Sprint(round)); code != 0 {
						t.Fatalf("round %d: produce to %d: code %d", round, i, code)
					}
				}
				r := c.end(round%3 > 0)
				if r.Code != 0 {
					t.Fatalf("round %d: end: code %d", round, r.Code)
				}
				c.ended(r)
			}
			n.atRest()
			for i := range int32(2) {
				log := n.log("t", i)
				if len(log) != 2*rounds {
					t.Fatalf("t-%d has %d batches, want %d", i, len(log), 2*rounds)
				}
				for k, l := range log {
					if l.marker != (k%2 == 1) || l.marker && l.commit != (k/2%3 > 0) || !l.marker && l.value != fmt.Sprint(k/2) {
						t.Fatalf("t-%d batch %d: %+v", i, k, l)
					}
				}
			}
		})
	}
}

// TestSameEndTwice is T12 (KAFKA-9777, KAFKA-10080): the same EndTxn twice at the same
// instant.
func TestSameEndTwice(t *testing.T) {
	n := freshNode(t)
	c := n.client("x", 5).init()
	rounds := 1000
	if testing.Short() {
		rounds = 100
	}
	for round := range rounds {
		for i := range int32(dataPartitions) {
			if code := c.produce(i, "v"); code != 0 {
				t.Fatalf("round %d: produce: code %d", round, code)
			}
		}
		var wg sync.WaitGroup
		var replies [2]coordinator.EndReply
		for k := range replies {
			wg.Go(func() { replies[k] = c.end(true) })
		}
		wg.Wait()
		slices.SortFunc(replies[:], func(a, b coordinator.EndReply) int { return int(a.Code) - int(b.Code) })
		if replies[0].Code != 0 || replies[1].Code != 0 && replies[1].Code != coordinator.CodeConcurrentTransactions {
			t.Fatalf("round %d: %v", round, replies)
		}
		c.ended(replies[0])
	}
	n.atRest()
	for i := range int32(dataPartitions) {
		log := n.log("t", i)
		for k, l := range log {
			if l.marker != (k%2 == 1) {
				t.Fatalf("t-%d batch %d: %+v", i, k, l)
			}
		}
		if len(log) != 2*rounds {
			t.Fatalf("t-%d has %d batches, want %d", i, len(log), 2*rounds)
		}
	}
}

// TestAbortRacesProduce is T19 (KAFKA-14884): an abort between verification and append
// leaves nothing open.
func TestAbortRacesProduce(t *testing.T) {
	n := freshNode(t)
	c := n.client("x", 5).init()
	rounds := 2000
	if testing.Short() {
		rounds = 200
	}
	for round := range rounds {
		late := *c
		late.seq = map[int32]int32{}
		var wg sync.WaitGroup
		wg.Go(func() { late.produce(0, "v") })
		var r coordinator.EndReply
		wg.Go(func() {
			for r = c.end(false); retriable(r.Code); {
				r = c.end(false)
			}
		})
		wg.Wait()
		if r.Code != 0 {
			t.Fatalf("round %d: abort: code %d", round, r.Code)
		}
		c.ended(r)
	}
	// The last abort ends what may be open; the late produce has an older epoch.
	r := c.end(false)
	if r.Code != 0 {
		t.Fatalf("last abort: code %d", r.Code)
	}
	n.atRest()
	for _, l := range n.log("t", 0) {
		if l.marker && l.commit {
			t.Fatalf("a commit: %+v", l)
		}
	}
}

// TestPartitionThatTakesNoMarker: the answer of EndTxn leaves a second after the first
// try, Complete… waits for the marker.
func TestPartitionThatTakesNoMarker(t *testing.T) {
	manual := clock.NewManual(time.UnixMilli(1_700_000_000_000))
	n := newNode(t, vfs.NewMem(), manual, new(atomic.Int64))
	t.Cleanup(n.close)
	c := n.client("x", 5).init()
	for i := range int32(3) {
		if code := c.produce(i, "v"); code != 0 {
			t.Fatalf("produce: code %d", code)
		}
	}
	var tries atomic.Int32
	n.breakData(func(_ string, i int32) error {
		if i == 1 {
			tries.Add(1)
			return errors.New("not now")
		}
		return nil
	})
	answer := make(chan coordinator.EndReply, 1)
	go func() { answer <- c.end(true) }()
	n.eventually("the first try", func() bool { return tries.Load() > 0 })
	select {
	case r := <-answer:
		t.Fatalf("answered %v before all markers", r)
	default:
	}
	var r coordinator.EndReply
	start := manual.Now()
	n.eventually("the answer", func() bool {
		manual.Advance(50 * time.Millisecond)
		select {
		case r = <-answer:
			return true
		default:
			return false
		}
	})
	if waited := manual.Now().Sub(start); r.Code != 0 || waited < answerAfter {
		t.Fatalf("answer %v after %v", r, waited)
	}
	if log := n.log("t", 1); len(log) != 1 {
		t.Fatalf("t-1 has %v", log)
	}
	if dump := n.dump("x"); !strings.Contains(dump, "PrepareCommit") {
		t.Fatalf("complete without a marker: %s", dump)
	}
	n.breakData(nil)
	n.eventually("all markers", func() bool {
		manual.Advance(100 * time.Millisecond)
		return strings.Contains(n.dump("x"), "CompleteCommit")
	})
	n.atRest()
	for i := range int32(3) {
		if log := n.log("t", i); len(log) != 2 || !log[1].marker || !log[1].commit || log[1].epoch != 1 {
			t.Fatalf("t-%d has %v", i, log)
		}
	}
}

// dump is the state of the shard of an id.
func (n *node) dump(id string) string {
	n.t.Helper()
	ch := make(chan string, 1)
	n.txns.Dump(n.txns.PartitionFor(id), func(s string, err error) {
		if err != nil {
			s = err.Error()
		}
		ch <- s
	})
	return <-ch
}

// TestDeletedPartition is T55: a topic that is deleted in mid-transaction does not hold
// up the others.
func TestDeletedPartition(t *testing.T) {
	n := freshNode(t)
	c := n.client("x", 4).init()
	tps := []TopicPartition{{Topic: "gone", Partition: 0}}
	for i := range int32(dataPartitions) {
		tps = append(tps, TopicPartition{Topic: "t", Partition: i})
	}
	if code := c.add(tps...); code != 0 {
		t.Fatalf("add: code %d", code)
	}
	for i := range int32(dataPartitions) {
		if code := c.produce(i, "v"); code != 0 {
			t.Fatalf("produce: code %d", code)
		}
	}
	if r := c.end(true); r.Code != 0 {
		t.Fatalf("commit: %v", r)
	}
	n.atRest()
	if dump := n.dump("x"); !strings.Contains(dump, "CompleteCommit") {
		t.Fatal(dump)
	}
	for i := range int32(dataPartitions) {
		if log := n.log("t", i); len(log) != 2 || !log[1].commit {
			t.Fatalf("t-%d has %v", i, log)
		}
	}
}

// TestGroupPartition: the marker of a transaction with offsets goes through the group
// coordinator's shard, which is told in the same step.
func TestGroupPartition(t *testing.T) {
	n := freshNode(t)
	c := n.client("x", 4).init()
	tp := n.txns.GroupPartition("g")
	if tp.Topic != GroupTopic || tp.Partition != 0 {
		t.Fatal(tp)
	}
	if code := c.add(tp); code != 0 {
		t.Fatalf("add: code %d", code)
	}
	said := make(chan any, 1)
	n.groups.ForKey("g").Do(func(r any) { said <- r }, func(_ *words, _ int64, to Token) Output {
		return Output{Records: say("offset"), Txn: &Txn{ProducerID: c.pid, Epoch: c.epoch}, Replies: []Reply{{To: to, Response: "said"}}}
	})
	if r := got(t, said); r != "said" {
		t.Fatal(r)
	}
	if r := c.end(true); r.Code != 0 {
		t.Fatalf("commit: %v", r)
	}
	n.atRest()
	s := n.groups.Shard(0)
	s.mu.Lock()
	state := s.machine.state.String()
	s.mu.Unlock()
	if state != "offset.!" {
		t.Fatalf("group state %q", state)
	}
}

// TestMarkersOfAClient: WriteTxnMarkers is obeyed without the coordinator.
func TestMarkersOfAClient(t *testing.T) {
	n := freshNode(t)
	c := n.client("x", 5).init()
	if code := c.produce(0, "v"); code != 0 {
		t.Fatalf("produce: code %d", code)
	}
	write := func(topic string, i int32, m producer.Marker) int16 {
		ch := make(chan int16, 1)
		n.txns.WriteMarker(TopicPartition{Topic: topic, Partition: i}, m, func(code int16) { ch <- code })
		return <-ch
	}
	m := producer.Marker{ProducerID: c.pid, Epoch: c.epoch}
	for _, tc := range []struct {
		topic string
		index int32
		m     producer.Marker
		want  int16
	}{
		{"t", 99, m, codeUnknownTopicOrPartition},
		{GroupTopic, 9, m, codeUnknownTopicOrPartition},
		{GroupTopic, 0, m, 0},
		{"t", 0, producer.Marker{ProducerID: c.pid, Epoch: c.epoch, TxnVersion: 2}, codeInvalidProducerEpoch},
		{"t", 0, m, 0},
		{"t", 0, producer.Marker{ProducerID: c.pid, Epoch: c.epoch - 1}, codeInvalidProducerEpoch},
	} {
		if got := write(tc.topic, tc.index, tc.m); got != tc.want {
			t.Errorf("marker %+v on %s-%d: code %d, want %d", tc.m, tc.topic, tc.index, got, tc.want)
		}
	}
	if marks := n.part("t", 0).Marks(); marks.LastStable != marks.LogEnd {
		t.Errorf("still open: %+v", marks)
	}
}

// TestTimeoutThenGoOn is T02 to T04 with partitions: the client of a transaction that
// was aborted for its time can abort and go on.
func TestTimeoutThenGoOn(t *testing.T) {
	manual := clock.NewManual(time.UnixMilli(1_700_000_000_000))
	n := newNode(t, vfs.NewMem(), manual, new(atomic.Int64))
	t.Cleanup(n.close)
	c := n.client("x", 5).init()
	if code := c.produce(0, "late"); code != 0 {
		t.Fatalf("produce: code %d", code)
	}
	manual.Advance(time.Minute)
	n.atRest()
	if code := c.produce(0, "zombie"); code != coordinator.CodeTransactionAbortable {
		t.Fatalf("produce after the timeout: code %d", code)
	}
	if r := c.end(true); r.Code != coordinator.CodeTransactionAbortable {
		t.Fatalf("commit after the timeout: %v", r)
	}
	r := c.end(false)
	if r.Code != 0 {
		t.Fatalf("abort after the timeout: %v", r)
	}
	c.ended(r)
	if code := c.produce(0, "next"); code != 0 {
		t.Fatalf("produce in the next transaction: code %d", code)
	}
	if r := c.end(true); r.Code != 0 {
		t.Fatalf("commit of the next transaction: %v", r)
	}
	n.atRest()
	var got []string
	for _, l := range n.log("t", 0) {
		got = append(got, fmt.Sprint(l.value, map[bool]string{true: fmt.Sprint("marker ", l.commit)}[l.marker]))
	}
	if want := []string{"late", "marker false", "next", "marker true"}; !slices.Equal(got, want) {
		t.Fatalf("log %q, want %q", got, want)
	}
}

func TestTransactionsOptionsValidate(t *testing.T) {
	n := freshNode(t)
	good := n.txns.o
	for field, break1 := range map[string]func(*TransactionsOptions){
		"Data":        func(o *TransactionsOptions) { o.Data = nil },
		"Groups":      func(o *TransactionsOptions) { o.Groups = nil },
		"ProducerIDs": func(o *TransactionsOptions) { o.ProducerIDs = nil },
		"MaxTimeout":  func(o *TransactionsOptions) { o.MaxTimeout = -1 },
		"Partitions":  func(o *TransactionsOptions) { o.Partitions = 0 },
		"Open":        func(o *TransactionsOptions) { o.Open = nil },
	} {
		o := good
		break1(&o)
		if _, err := NewTransactions(o); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: error %v", field, err)
		}
	}
}
