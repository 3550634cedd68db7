package api

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/listener"
	"github.com/millrace/millrace/broker/internal/replicas"
	"github.com/millrace/millrace/core/record"
)

func bareServer() *Server { return &Server{Replicas: replicas.New(replicas.Options{})} }

func randomID(rng *rand.Rand) (id [16]byte) {
	for i := range id {
		id[i] = byte(rng.Uint32())
	}
	return id
}

// The hand-written decoders read what kmsg writes, in every version, and refuse it
// when it is cut short.
func TestProduceRequestsDecode(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for version := int16(3); version <= 13; version++ {
		req := kmsg.NewPtrProduceRequest()
		req.Version, req.Acks = version, -1
		id := "txn"
		req.TransactionID = &id
		for i := range 3 {
			rt := kmsg.NewProduceRequestTopic()
			rt.Topic, rt.TopicID = fmt.Sprint("topic", i), randomID(rng)
			for p := range int32(2) {
				rp := kmsg.NewProduceRequestTopicPartition()
				rp.Partition, rp.Records = p, []byte(fmt.Sprintf("records %d of %d", p, i))
				rt.Partitions = append(rt.Partitions, rp)
			}
			req.Topics = append(req.Topics, rt)
		}
		body := req.AppendTo(nil)
		p := &produce{s: bareServer(), c: &Call{Version: version}}
		if err := p.decode(body); err != nil {
			t.Fatalf("version %d: %v", version, err)
		}
		if string(p.txnID) != id || p.acks != -1 || len(p.topics) != 3 || len(p.rows) != 6 {
			t.Fatalf("version %d: id %q, acks %d, %d topics, %d rows", version, p.txnID, p.acks, len(p.topics), len(p.rows))
		}
		for i, r := range p.rows {
			want, got := req.Topics[i/2], p.topics[r.topic]
			if version < 13 && got.name != want.Topic || version >= 13 && got.id != want.TopicID {
				t.Errorf("version %d, row %d: topic %q %x", version, i, got.name, got.id)
			}
			if r.index != int32(i%2) || string(r.records) != string(want.Partitions[i%2].Records) {
				t.Errorf("version %d, row %d: partition %d, records %q", version, i, r.index, r.records)
			}
		}
		for n := range body {
			p := &produce{s: bareServer(), c: &Call{Version: version}}
			if err := p.decode(body[:n]); !errors.Is(err, errMalformed) {
				t.Fatalf("version %d cut to %d of %d bytes: %v", version, n, len(body), err)
			}
		}
	}
}

func TestFetchRequestsDecode(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for version := int16(4); version <= 18; version++ {
		req := kmsg.NewPtrFetchRequest()
		req.Version, req.ReplicaID, req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.IsolationLevel = version, -1, 500, 2, 3000, 1
		req.SessionID, req.SessionEpoch, req.Rack = 7, 9, "rack"
		for i := range 2 {
			rt := kmsg.NewFetchRequestTopic()
			rt.Topic, rt.TopicID = fmt.Sprint("topic", i), randomID(rng)
			for p := range int32(3) {
				rp := kmsg.NewFetchRequestTopicPartition()
				rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes = p%2, int64(p)*100, 4000 // the third repeats the first
				rp.CurrentLeaderEpoch, rp.LastFetchedEpoch = 5, 4
				rt.Partitions = append(rt.Partitions, rp)
			}
			req.Topics = append(req.Topics, rt)
		}
		ft := kmsg.NewFetchRequestForgottenTopic()
		ft.Topic, ft.TopicID, ft.Partitions = "gone", randomID(rng), []int32{1, 2}
		req.ForgottenTopics = append(req.ForgottenTopics, ft)
		body := req.AppendTo(nil)
		f := newFetch(version)
		if err := f.decode(body); err != nil {
			t.Fatalf("version %d: %v", version, err)
		}
		if f.replica != -1 || f.maxWait != 500*time.Millisecond || f.minBytes != 2 || f.maxBytes != 3000 || f.isolation != 1 {
			t.Errorf("version %d: %d %v %d %d %d", version, f.replica, f.maxWait, f.minBytes, f.maxBytes, f.isolation)
		}
		if version >= 7 && (f.sessionID != 7 || f.epoch != 9 || len(f.forgotten) != 2) || version < 7 && f.epoch != -1 {
			t.Errorf("version %d: session %d, epoch %d, forgotten %v", version, f.sessionID, f.epoch, f.forgotten)
		}
		if len(f.rows) != 4 {
			t.Fatalf("version %d: %d rows, want 4: a partition is answered once", version, len(f.rows))
		}
		for i, r := range f.rows {
			want := req.Topics[i/2].Partitions[i%2]
			if r.index != want.Partition || r.offset != want.FetchOffset || r.maxBytes != 4000 {
				t.Errorf("version %d, row %d: %+v", version, i, r)
			}
			if version >= 9 && r.leaderEpoch != 5 || version >= 12 && r.lastEpoch != 4 || version < 9 && r.leaderEpoch != -1 {
				t.Errorf("version %d, row %d: epochs %d, %d", version, i, r.leaderEpoch, r.lastEpoch)
			}
		}
		for n := range body {
			if err := newFetch(version).decode(body[:n]); !errors.Is(err, errMalformed) {
				t.Fatalf("version %d cut to %d of %d bytes: %v", version, n, len(body), err)
			}
		}
	}
}

func newFetch(version int16) *fetch {
	return &fetch{s: bareServer(), c: &Call{Version: version}, seen: map[fetchKey]struct{}{}}
}

// The hand-written answers are what kmsg reads, in every version.
func TestProduceAnswersEncode(t *testing.T) {
	for version := int16(3); version <= 13; version++ {
		p := &produce{s: bareServer(), c: &Call{Version: version, CorrelationID: 9}, acks: 1}
		p.topics = []produceTopic{{name: "a", id: [16]byte{1}, first: 0, end: 2}}
		p.rows = []produceRow{{index: 0}, {index: 1, code: 87, reason: "why", errors: []record.RecordError{{Index: 3, Message: "bad"}}}}
		p.rows[0].appended.BaseOffset, p.rows[0].appended.LogAppendTimeMs = 42, -1
		resp := kmsg.NewPtrProduceResponse()
		resp.Version = version
		decodeAnswer(t, resp, p.response())
		good, bad := resp.Topics[0].Partitions[0], resp.Topics[0].Partitions[1]
		if good.ErrorCode != 0 || good.BaseOffset != 42 || good.LogAppendTime != -1 {
			t.Errorf("version %d: %+v", version, good)
		}
		if bad.ErrorCode != 87 || bad.BaseOffset != -1 || version >= 8 && (*bad.ErrorMessage != "why" || bad.ErrorRecords[0].RelativeOffset != 3) {
			t.Errorf("version %d: %+v", version, bad)
		}
	}
}

func decodeAnswer(t *testing.T, resp kmsg.Response, a *listener.Answer) {
	t.Helper()
	body := a.Buf[8:]
	if resp.IsFlexible() {
		body = body[1:]
	}
	if err := resp.ReadFrom(body); err != nil {
		t.Fatalf("%T version %d: %v", resp, resp.GetVersion(), err)
	}
	if again := resp.AppendTo(nil); string(again) != string(body) {
		t.Errorf("%T version %d: %x, kmsg writes %x", resp, resp.GetVersion(), body, again)
	}
}

func TestVerifyCodes(t *testing.T) {
	for _, c := range []struct{ code, version, want int16 }{
		{51, 9, 19}, {14, 12, 19}, {15, 12, 19}, {16, 9, 19}, {13, 9, 19}, // asked again
		{90, 9, 47}, {90, 12, 47},
		{120, 10, 48}, {120, 11, 120}, {48, 12, 120}, {48, 9, 48},
		{49, 12, 49}, {53, 12, 53},
	} {
		if got := verifyCode(c.code, c.version); got != c.want {
			t.Errorf("the coordinator's %d is %d in version %d, want %d", c.code, got, c.version, c.want)
		}
	}
}

func TestSoftwareNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"": false, "-": false, "a": true, "franz-go": true, "a-": false, "-a": false, "1.2.3": true, "a b": false, "ä": false, "a.": false,
	} {
		if softwareName(name) != ok {
			t.Errorf("%q: want %v", name, ok)
		}
	}
}
