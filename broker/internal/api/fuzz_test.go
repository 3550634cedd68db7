package api

import (
	"bytes"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// FuzzProduceDecode: no body hurts the hand-written decoder, and it reads what kmsg reads.
func FuzzProduceDecode(f *testing.F) {
	for version := int16(3); version <= 13; version++ {
		req := kmsg.NewPtrProduceRequest()
		req.Version, req.Acks, req.TransactionID = version, -1, kmsg.StringPtr("id")
		for range 2 {
			rt := kmsg.NewProduceRequestTopic()
			rt.Topic, rt.TopicID = "topic", [16]byte{7}
			rp := kmsg.NewProduceRequestTopicPartition()
			rp.Partition, rp.Records = 3, []byte("records")
			rt.Partitions = append(rt.Partitions, rp, kmsg.NewProduceRequestTopicPartition())
			req.Topics = append(req.Topics, rt)
		}
		f.Add(version-3, req.AppendTo(nil))
	}
	f.Fuzz(func(t *testing.T, version int16, body []byte) {
		version = 3 + int16(uint16(version)%11)
		p := &produce{s: bareServer(), c: &Call{Version: version}}
		if p.decode(body) != nil {
			return
		}
		req := kmsg.NewPtrProduceRequest()
		req.Version = version
		if req.ReadFrom(body) != nil {
			return // it also reads tags that this broker passes over
		}
		if p.acks != req.Acks || (p.txnID == nil) != (req.TransactionID == nil) || len(p.topics) != len(req.Topics) {
			t.Fatalf("version %d: acks %d, id %q, %d topics; kmsg %+v", version, p.acks, p.txnID, len(p.topics), req)
		}
		rows := 0
		for i, rt := range req.Topics {
			if got := p.topics[i]; version < 13 && got.name != rt.Topic || version >= 13 && got.id != rt.TopicID || got.end-got.first != len(rt.Partitions) {
				t.Fatalf("version %d: topic %+v, kmsg %+v", version, got, rt)
			}
			for _, rp := range rt.Partitions {
				r := p.rows[rows]
				if r.index != rp.Partition || !bytes.Equal(r.records, rp.Records) {
					t.Fatalf("version %d: row %+v, kmsg %+v", version, r, rp)
				}
				rows++
			}
		}
	})
}

// FuzzFetchDecode is FuzzProduceDecode for Fetch.
func FuzzFetchDecode(f *testing.F) {
	for version := int16(4); version <= 18; version++ {
		req := kmsg.NewPtrFetchRequest()
		req.Version, req.SessionID, req.SessionEpoch, req.Rack = version, 3, 4, "rack"
		rt := kmsg.NewFetchRequestTopic()
		rt.Topic, rt.TopicID = "topic", [16]byte{7}
		rt.Partitions = append(rt.Partitions, kmsg.NewFetchRequestTopicPartition())
		req.Topics = append(req.Topics, rt)
		ft := kmsg.NewFetchRequestForgottenTopic()
		ft.Topic, ft.TopicID, ft.Partitions = "gone", [16]byte{8}, []int32{1, 2}
		req.ForgottenTopics = append(req.ForgottenTopics, ft)
		f.Add(version-4, req.AppendTo(nil))
	}
	f.Fuzz(func(t *testing.T, version int16, body []byte) {
		version = 4 + int16(uint16(version)%15)
		x := newFetch(version)
		if x.decode(body) != nil {
			return
		}
		req := kmsg.NewPtrFetchRequest()
		req.Version = version
		if req.ReadFrom(body) != nil {
			return // it also reads tags that this broker passes over
		}
		type row struct {
			name   string
			id     [16]byte
			index  int32
			offset int64
			max    int32
		}
		var want, got []row
		seen := map[fetchKey]bool{} // a partition that is listed twice is answered once
		for _, rt := range req.Topics {
			for _, rp := range rt.Partitions {
				if key := (fetchKey{id: rt.TopicID, name: rt.Topic, index: rp.Partition}); !seen[key] {
					seen[key] = true
					want = append(want, row{rt.Topic, rt.TopicID, rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes})
				}
			}
		}
		for _, r := range x.rows {
			rt := x.topics[r.topic]
			got = append(got, row{rt.name, rt.id, r.index, r.offset, r.maxBytes})
		}
		if len(got) != len(want) || len(x.topics) != len(req.Topics) {
			t.Fatalf("version %d: rows %v, kmsg %v", version, got, want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("version %d: row %+v, kmsg %+v", version, got[i], want[i])
			}
		}
	})
}
