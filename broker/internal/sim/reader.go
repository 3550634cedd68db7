package sim

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/core/record"
)

// reader fetches one partition from an offset on, as a consumer of committed or of all data, and does with aborted records what
// consumers do: it drops them by the list that comes with the answer.
type reader struct {
	*process
	o         *oracle
	of        partitionOf
	position  int64
	committed bool
	take      func(ids []got, next int64)
	high      int64  // the end of what it may see, as the last answer says; -1 before the first
	moved     func() // the position is out of range
}

// got is a record as a reader sees it.
type got struct {
	offset int64
	id     int
}

// fetch asks once, and calls take with what came, or idle.
func (r *reader) fetch(wait time.Duration, idle func()) {
	req := kmsg.NewPtrFetchRequest()
	req.Version = 11
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = int32(wait.Milliseconds()), 1, 1<<20
	req.SessionEpoch = -1
	if r.committed {
		req.IsolationLevel = 1
	}
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic = r.of.topic
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes = r.of.index, r.position, int32(200+r.w.rng.IntN(4000))
	rp.CurrentLeaderEpoch = -1
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	from := r.position
	r.call(toFetch, req, wait, always, func(resp kmsg.Response, err error) {
		if err != nil || from != r.position {
			idle()
			return
		}
		row := resp.(*kmsg.FetchResponse).Topics[0].Partitions[0]
		if row.ErrorCode != 0 {
			if row.ErrorCode == kerr.OffsetOutOfRange.Code {
				r.moved()
				return
			}
			idle()
			return
		}
		if row.LastStableOffset > row.HighWatermark {
			r.w.fail("%s: fetch: last stable offset %d, high watermark %d", r.name, row.LastStableOffset, row.HighWatermark)
			return
		}
		if r.high = row.HighWatermark; r.committed {
			r.high = row.LastStableOffset
		}
		r.decode(&row, idle)
	})
}

// decode takes the records out of an answer.
func (r *reader) decode(row *kmsg.FetchResponseTopicPartition, idle func()) {
	var out []got
	next := r.position
	ended := map[int64][]int64{} // first offsets of aborted transactions, by producer
	for _, a := range row.AbortedTransactions {
		ended[a.ProducerID] = append(ended[a.ProducerID], a.FirstOffset)
	}
	dropping := map[int64]bool{}
	for b, err := range record.Batches(row.RecordBatches) {
		if err != nil { // the last one may be cut off
			break
		}
		if err := b.CheckCRC(); err != nil {
			r.w.fail("%s: %s-%d offset %d: %w", r.name, r.of.topic, r.of.index, b.BaseOffset(), err)
			return
		}
		if b.LastOffset() >= r.high {
			r.w.fail("%s: %s-%d: offset %d is served, readers may see up to %d", r.name, r.of.topic, r.of.index, b.LastOffset(), r.high)
			return
		}
		pid := b.ProducerID()
		for len(ended[pid]) > 0 && ended[pid][0] <= b.LastOffset() {
			dropping[pid], ended[pid] = true, ended[pid][1:]
		}
		next = b.LastOffset() + 1
		if b.Attributes().Control() {
			dropping[pid] = false
			continue
		}
		if r.committed && b.Attributes().Transactional() && dropping[pid] {
			continue
		}
		for rec, err := range b.Records(nil) {
			if err != nil {
				r.w.fail("%s: %s-%d offset %d: %w", r.name, r.of.topic, r.of.index, rec.Offset, err)
				return
			}
			if rec.Offset >= r.position {
				out = append(out, got{rec.Offset, numberOf(rec)})
			}
		}
	}
	if next == r.position {
		idle()
		return
	}
	r.take(out, next)
}
