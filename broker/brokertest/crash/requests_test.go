package crash

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// stamp is the newest timestamp that was given out: they rise from record to record, so that look-ups by time have one answer.
var stamp atomic.Int64

// stamps gives out n timestamps and returns the first. Retention goes by them, so they are about now.
func stamps(n int64) int64 {
	for {
		was := stamp.Load()
		first := max(was+1, time.Now().UnixMilli())
		if stamp.CompareAndSwap(was, first+n-1) {
			return first
		}
	}
}

// keyOf is the key of a record: what stands before the "=" in its value, or "k". A value that ends in "=" is a tombstone.
func keyOf(value string) string {
	if key, _, keyed := strings.Cut(value, "="); keyed {
		return key
	}
	return "k"
}

// batch makes a record batch with the standard library, not with this module's own record package: a fault there must
// not hide itself. pid -1 is a producer without an id.
func batch(pid int64, epoch int16, seq int32, txn bool, values ...string) []byte {
	firstMs := stamps(int64(len(values)))
	var records []byte
	for i, v := range values {
		r := kmsg.NewRecord()
		r.OffsetDelta, r.TimestampDelta64, r.Key, r.Value = int32(i), int64(i), []byte(keyOf(v)), []byte(v)
		if strings.HasSuffix(v, "=") {
			r.Value = nil
		}
		r.Length = int32(len(r.AppendTo(nil)) - 1) // behind a length of 0, which takes one byte
		records = r.AppendTo(records)
	}
	rb := kmsg.NewRecordBatch()
	rb.PartitionLeaderEpoch, rb.Magic = -1, 2
	if txn {
		rb.Attributes = 1 << 4
	}
	rb.LastOffsetDelta, rb.NumRecords = int32(len(values)-1), int32(len(values))
	rb.FirstTimestamp, rb.MaxTimestamp = firstMs, firstMs+int64(len(values)-1)
	rb.ProducerID, rb.ProducerEpoch, rb.FirstSequence = pid, epoch, seq
	rb.Records = records
	b := rb.AppendTo(nil)
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], castagnoli))
	return b
}

// stored is one batch as the broker serves it.
type stored struct {
	kmsg.RecordBatch
	records []kept
}

// kept is one record of it.
type kept struct {
	offset, timestamp int64
	value             string
}

// from are the values of the records from an offset on.
func (s *stored) from(offset int64) (values []string) {
	for _, r := range s.records {
		if r.offset >= offset {
			values = append(values, r.value)
		}
	}
	return values
}

func (s *stored) last() int64   { return s.FirstOffset + int64(s.LastOffsetDelta) }
func (s *stored) control() bool { return s.Attributes&(1<<5) != 0 }

// decode splits what was fetched into batches, up to one that a client refuses.
func decode(raw []byte) []stored {
	var out []stored
	for len(raw) >= 61 {
		n := int64(binary.BigEndian.Uint32(raw[8:])) + 12
		if n < 61 || n > int64(len(raw)) || crc32.Checksum(raw[21:n], castagnoli) != binary.BigEndian.Uint32(raw[17:]) {
			break
		}
		var s stored
		if s.ReadFrom(raw[:n]) != nil {
			break
		}
		rest := s.Records
		for range s.NumRecords {
			length, head := binary.Varint(rest)
			var r kmsg.Record
			if head <= 0 || length < 0 || length > int64(len(rest)-head) || r.ReadFrom(rest[:head+int(length)]) != nil {
				break
			}
			value := string(r.Value)
			if r.Value == nil {
				value = string(r.Key) + "="
			}
			s.records = append(s.records, kept{s.FirstOffset + int64(r.OffsetDelta), s.FirstTimestamp + r.TimestampDelta64, value})
			rest = rest[head+int(length):]
		}
		out, raw = append(out, s), raw[n:]
	}
	return out
}

func produceRequest(version int16, txnID, topic string, partition int32, raw []byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = version, -1, 30000
	if txnID != "" {
		req.TransactionID = &txnID
	}
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Partition, rp.Records = partition, raw
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return req
}

func (w *wire) produce(version int16, txnID, topic string, partition int32, raw []byte) kmsg.ProduceResponseTopicPartition {
	w.t.Helper()
	return w.do(produceRequest(version, txnID, topic, partition, raw)).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
}

// createTopic makes a topic with settings of the form name=value.
func (w *wire) createTopic(topic string, partitions int32, configs ...string) int16 {
	w.t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.TimeoutMillis = 5, 30000
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = topic, partitions, 1
	for _, c := range configs {
		rc := kmsg.NewCreateTopicsRequestTopicConfig()
		name, value, _ := strings.Cut(c, "=")
		rc.Name, rc.Value = name, &value
		rt.Configs = append(rt.Configs, rc)
	}
	req.Topics = append(req.Topics, rt)
	return w.do(req).(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode
}

func (w *wire) deleteTopic(topic string) int16 {
	w.t.Helper()
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.Version, req.TimeoutMillis, req.TopicNames = 4, 30000, []string{topic}
	return w.do(req).(*kmsg.DeleteTopicsResponse).Topics[0].ErrorCode
}

func (w *wire) deleteRecords(topic string, partition int32, before int64) int16 {
	w.t.Helper()
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.Version, req.TimeoutMillis = 2, 30000
	rt := kmsg.NewDeleteRecordsRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewDeleteRecordsRequestTopicPartition()
	rp.Partition, rp.Offset = partition, before
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return w.do(req).(*kmsg.DeleteRecordsResponse).Topics[0].Partitions[0].ErrorCode
}

// offset asks ListOffsets: -1 is the end, -2 the start; committed asks for the last stable offset as the end.
func (w *wire) offset(topic string, partition int32, ts int64, committed bool) (int64, int16) {
	w.t.Helper()
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version, req.ReplicaID = 7, -1
	if committed {
		req.IsolationLevel = 1
	}
	rt := kmsg.NewListOffsetsRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewListOffsetsRequestTopicPartition()
	rp.Partition, rp.Timestamp, rp.CurrentLeaderEpoch = partition, ts, -1
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	p := w.do(req).(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
	return p.Offset, p.ErrorCode
}

func fetchRequest(topic string, partition int32, offset int64, committed bool) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.ReplicaID, req.MinBytes, req.MaxBytes, req.SessionEpoch = 12, -1, 1, 50<<20, -1
	if committed {
		req.IsolationLevel = 1
	}
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes, rp.CurrentLeaderEpoch = partition, offset, 1<<20, -1
	rp.LastFetchedEpoch, rp.LogStartOffset = -1, -1
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return req
}

func (w *wire) fetch(topic string, partition int32, offset int64, committed bool) kmsg.FetchResponseTopicPartition {
	w.t.Helper()
	return w.do(fetchRequest(topic, partition, offset, committed)).(*kmsg.FetchResponse).Topics[0].Partitions[0]
}

// commitOffset commits offset 0.. of a partition for group g outside of a transaction.
func (w *wire) commitOffset(topic string, partition int32, offset int64) int16 {
	w.t.Helper()
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group, req.Generation = 8, group, -1
	rt := kmsg.NewOffsetCommitRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewOffsetCommitRequestTopicPartition()
	rp.Partition, rp.Offset = partition, offset
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return w.do(req).(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode
}

// committedOffset asks what group g has committed; -1 is nothing.
func (w *wire) committedOffset(topic string, partition int32) (at int64, err error) {
	w.t.Helper()
	c := w.until(func() int16 {
		req := kmsg.NewPtrOffsetFetchRequest()
		req.Version, req.RequireStable = 8, true
		rg := kmsg.NewOffsetFetchRequestGroup()
		rg.Group = group
		rt := kmsg.NewOffsetFetchRequestGroupTopic()
		rt.Topic, rt.Partitions = topic, []int32{partition}
		rg.Topics = append(rg.Topics, rt)
		req.Groups = append(req.Groups, rg)
		g := w.do(req).(*kmsg.OffsetFetchResponse).Groups[0]
		if g.ErrorCode != 0 {
			return g.ErrorCode
		}
		at = g.Topics[0].Partitions[0].Offset
		return g.Topics[0].Partitions[0].ErrorCode
	})
	if c != 0 {
		return 0, fmt.Errorf("OffsetFetch of %s-%d: %s", topic, partition, code(c))
	}
	return at, nil
}
