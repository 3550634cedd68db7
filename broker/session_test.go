package broker_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
)

// fetchSession is a client of fetch sessions (KIP-227), version 11.
type fetchSession struct {
	t     *testing.T
	p     *pipe
	id    int32
	epoch int32
}

// fetch sends the partitions with their offsets and gives what the answer names:
// "topic-partition:bytes" or "topic-partition!error".
func (s *fetchSession) fetch(wait int32, at map[string]int64, forget ...string) (int16, []string) {
	s.t.Helper()
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.ReplicaID, req.MaxWaitMillis, req.MinBytes, req.MaxBytes = 11, -1, wait, 1, 1<<20
	req.SessionID, req.SessionEpoch = s.id, s.epoch
	for name, offset := range at {
		topic, index := splitName(name)
		rt := kmsg.NewFetchRequestTopic()
		rt.Topic = topic
		rp := kmsg.NewFetchRequestTopicPartition()
		rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes, rp.CurrentLeaderEpoch = index, offset, 1<<20, -1
		rt.Partitions = append(rt.Partitions, rp)
		req.Topics = append(req.Topics, rt)
	}
	for _, name := range forget {
		topic, index := splitName(name)
		ft := kmsg.NewFetchRequestForgottenTopic()
		ft.Topic, ft.Partitions = topic, []int32{index}
		req.ForgottenTopics = append(req.ForgottenTopics, ft)
	}
	body, err := s.p.roundTrip(format(req))
	resp := req.ResponseKind().(*kmsg.FetchResponse)
	if err == nil {
		err = decodeAnswer(resp, body)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	if resp.ErrorCode == 0 {
		s.id = resp.SessionID
		s.epoch++
	}
	var out []string
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 {
				out = append(out, fmt.Sprintf("%s-%d!%d", t.Topic, p.Partition, p.ErrorCode))
			} else {
				out = append(out, fmt.Sprintf("%s-%d:%d", t.Topic, p.Partition, len(p.RecordBatches)))
			}
		}
	}
	slices.Sort(out)
	return resp.ErrorCode, out
}

func splitName(name string) (string, int32) {
	i := strings.LastIndexByte(name, '-')
	return name[:i], int32(name[i+1] - '0')
}

func TestFetchSession(t *testing.T) {
	b := brokertest.Start(t, brokertest.OnTCP())
	createTopic(t, b, "a", 2)
	createTopic(t, b, "b", 1)
	s := &fetchSession{t: t, p: openPipe(t, b)}
	step := func(what string, wait int32, at map[string]int64, forget []string, want ...string) {
		t.Helper()
		code, got := s.fetch(wait, at, forget...)
		if code != 0 || !slices.Equal(got, want) {
			t.Errorf("%s: error %d, %v, want %v", what, code, got, want)
		}
	}
	one := len(batchOf("v"))
	data := func(name string) string { return fmt.Sprintf("%s:%d", name, one) }

	step("the first answer names all", 0, map[string]int64{"a-0": 0, "a-1": 0, "b-0": 0}, nil, "a-0:0", "a-1:0", "b-0:0")
	if s.id == 0 {
		t.Fatal("no session was made")
	}
	step("nothing changed", 0, nil, nil)
	produce(t, b, "a", 1, batchOf("v"))
	step("one partition changed", 1000, nil, nil, data("a-1"))
	step("the client moved on", 0, map[string]int64{"a-1": 1}, nil)
	step("an error is told", 0, map[string]int64{"b-0": 7}, nil, "b-0!1")
	step("and told again", 0, nil, nil, "b-0!1")
	step("its end too", 0, map[string]int64{"b-0": 0}, nil, "b-0:0")
	produce(t, b, "b", 0, batchOf("v"))
	step("a forgotten partition is not told", 0, nil, []string{"b-0"})
	step("a partition that is not there", 0, map[string]int64{"c-0": 0}, nil, "c-0!3")
	createTopic(t, b, "c", 1)
	step("it came", 0, nil, nil, "c-0:0")

	again := *s
	again.epoch--
	if code, _ := again.fetch(0, nil); code != 71 {
		t.Errorf("a repeated epoch: error %d, want INVALID_FETCH_SESSION_EPOCH", code)
	}
	other := &fetchSession{t: t, p: s.p, id: s.id + 1, epoch: 1}
	if code, _ := other.fetch(0, nil); code != 70 {
		t.Errorf("an unknown session: error %d, want FETCH_SESSION_ID_NOT_FOUND", code)
	}
	last := &fetchSession{t: t, p: s.p, id: s.id, epoch: -1}
	if code, _ := last.fetch(0, map[string]int64{"a-0": 0}); code != 0 || last.id != 0 {
		t.Errorf("the end of the session: error %d, session %d", code, last.id)
	}
	if code, _ := s.fetch(0, nil); code != 70 {
		t.Errorf("after its end: error %d, want FETCH_SESSION_ID_NOT_FOUND", code)
	}
}

// An incremental fetch without news waits, and wakes on the first.
func TestFetchSessionWaits(t *testing.T) {
	b := brokertest.Start(t, brokertest.OnTCP())
	createTopic(t, b, "a", 1)
	s := &fetchSession{t: t, p: openPipe(t, b)}
	s.fetch(0, map[string]int64{"a-0": 0})
	began := time.Now()
	if _, got := s.fetch(100, nil); len(got) != 0 || time.Since(began) < 50*time.Millisecond {
		t.Errorf("a fetch without news gave %v after %v", got, time.Since(began))
	}
	go produceLater(b)
	began = time.Now()
	if _, got := s.fetch(20_000, nil); len(got) != 1 || time.Since(began) > patience {
		t.Errorf("the fetch that waits gave %v after %v", got, time.Since(began))
	}
}

func produceLater(b *broker.Broker) {
	c, err := b.Dial(context.Background(), "", b.Seeds()[0])
	if err != nil {
		return // the waiting fetch will tell
	}
	defer c.Close()
	if _, err := c.Write(format(produceRequest(9, -1, "a", 0, batchOf("v")))); err == nil {
		_, _ = readAnswer(c) // as above
	}
}

// A hot partition does not keep the others from being served.
func TestFetchIsFair(t *testing.T) {
	b := brokertest.Start(t, brokertest.OnTCP())
	const n = 10
	createTopic(t, b, "t", n)
	for i := range n {
		for range 3 {
			produce(t, b, "t", int32(i), manyRecords(100, 100))
		}
	}
	req := fetchRequest("t", 0, 0, 1000)
	req.MaxBytes = 1000 // less than one batch
	for i := 1; i < n; i++ {
		rp := req.Topics[0].Partitions[0]
		rp.Partition = int32(i)
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, rp)
	}
	p := openPipe(t, b)
	served := map[int32]bool{}
	for range 5 * n {
		body, err := p.roundTrip(format(req))
		resp := req.ResponseKind().(*kmsg.FetchResponse)
		if err == nil {
			err = decodeAnswer(resp, body)
		}
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for _, rp := range resp.Topics[0].Partitions {
			if len(rp.RecordBatches) > 0 {
				served[rp.Partition] = true
				got++
			}
		}
		if got != 1 || len(resp.Topics[0].Partitions) != n {
			t.Fatalf("%d partitions with records of %d, want one of %d", got, len(resp.Topics[0].Partitions), n)
		}
	}
	if len(served) != n {
		t.Errorf("%d of %d partitions were served", len(served), n)
	}
}

// Who asks a node that does not lead the partition is told who does.
func TestWrongNodeIsToldTheLeader(t *testing.T) {
	b := brokertest.Start(t, brokertest.OnTCP())
	createTopic(t, b, "t", 1)
	meta := kmsg.NewPtrMetadataRequest()
	meta.Version = 12
	meta.Topics = append(meta.Topics, kmsg.MetadataRequestTopic{Topic: kmsg.StringPtr("t")})
	id := call(t, b, meta).(*kmsg.MetadataResponse).Topics[0].TopicID
	req := fetchRequest("t", 0, 0, 1000)
	req.Version, req.ReplicaState.ID = 17, 5 // a replica that is none
	req.Topics[0].TopicID = id
	resp := call(t, b, req).(*kmsg.FetchResponse)
	p := resp.Topics[0].Partitions[0]
	if p.ErrorCode != 6 || p.CurrentLeader.LeaderID != 1 || p.CurrentLeader.LeaderEpoch != 0 {
		t.Errorf("error %d, leader %+v", p.ErrorCode, p.CurrentLeader)
	}
	if want := b.Addr().String(); len(resp.Brokers) != 1 || fmt.Sprintf("%s:%d", resp.Brokers[0].Host, resp.Brokers[0].Port) != want {
		t.Errorf("brokers %+v, want %s", resp.Brokers, want)
	}
}
