package session

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// busyWait is MaxWait while the reader is ahead of its user.
const busyWait = 5 * time.Millisecond

// asked is a fetch on its way.
type asked struct {
	feeds map[TopicPartition]*Feed
	names map[[16]byte]string
	at    map[TopicPartition]int64
	sent  int64 // stamp
	bytes int   // that the answer may have
}

// fetchFrom has at most one fetch on its way to its broker.
func (r *Reader) fetchFrom(broker int32, wake <-chan struct{}) {
	for r.ctx.Err() == nil {
		req, ask := r.build(broker)
		if req == nil {
			select {
			case <-r.ctx.Done():
			case <-wake:
			}
			continue
		}
		kresp, err := r.cluster.client.Broker(int(broker)).Request(r.ctx, req)
		r.settle(&ask)
		if err == nil {
			resp := kresp.(*kmsg.FetchResponse)
			if err = kerr.ErrorForCode(resp.ErrorCode); err == nil && !r.apply(resp, ask) {
				continue
			}
		}
		if r.ctx.Err() != nil {
			return
		}
		if err != nil {
			r.cluster.log.Warn("reader: fetch", "broker", broker, "error", err)
		}
		signal(r.refresh)
		select {
		case <-r.ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// build makes a request for every feed of this broker that has room.
func (r *Reader) build(broker int32) (*kmsg.FetchRequest, asked) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ask := asked{feeds: map[TopicPartition]*Feed{}, names: map[[16]byte]string{}, at: map[TopicPartition]int64{}}
	topics := map[string]*kmsg.FetchRequestTopic{}
	full := false
	ask.bytes = min(r.options.FetchBytes, r.hold.room(len(r.brokers)))
	for part, f := range r.feeds {
		t := r.topics[part.Topic]
		if int(part.Partition) >= len(t.Partitions) || t.Partitions[part.Partition].Leader != broker {
			continue
		}
		if f.halted.Load() || ask.bytes == 0 && (f.queued > 0 || !f.wanted) {
			continue
		}
		if f.queued >= r.options.BufferBytes || f.failed.Load() != nil {
			full = full || f.queued > 0
			continue
		}
		rt := topics[part.Topic]
		if rt == nil {
			fresh := kmsg.NewFetchRequestTopic()
			fresh.Topic, fresh.TopicID = part.Topic, t.ID
			rt = &fresh
			topics[part.Topic] = rt
			ask.names[t.ID] = part.Topic
		}
		rp := kmsg.NewFetchRequestTopicPartition()
		rp.Partition, rp.FetchOffset = part.Partition, f.fetchAt
		rp.CurrentLeaderEpoch = t.Partitions[part.Partition].LeaderEpoch
		rp.LastFetchedEpoch, rp.LogStartOffset = -1, -1
		rp.PartitionMaxBytes = int32(max(min(r.options.BufferBytes/2, ask.bytes), 1))
		rt.Partitions = append(rt.Partitions, rp)
		ask.feeds[part], ask.at[part] = f, f.fetchAt
		f.wanted = false
	}
	if len(ask.feeds) == 0 {
		return nil, ask
	}
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.MinBytes, req.MaxBytes = -1, 1, int32(max(ask.bytes, 1))
	r.hold.promised += ask.bytes
	req.MaxWaitMillis = int32(r.options.MaxWait.Milliseconds())
	if full {
		// A partition that is left out will have room again soon: it must not
		// wait for the others to get records.
		req.MaxWaitMillis = min(req.MaxWaitMillis, int32(busyWait.Milliseconds()))
	}
	if r.quick {
		// Not zero: a partition whose leader is away would make this a busy
		// loop.
		req.MaxWaitMillis = 1
		r.quick = false
	}
	if !r.options.Uncommitted {
		req.IsolationLevel = 1
	}
	req.SessionID, req.SessionEpoch = 0, -1
	for _, rt := range topics {
		req.Topics = append(req.Topics, *rt)
	}
	// A broker fills an answer in the order asked: a random start per request
	// (the map's) keeps one busy partition from starving the others.
	r.stamp++
	ask.sent = r.stamp
	return req, ask
}

// settle takes back what was promised to an answer: it has come, or will not.
func (r *Reader) settle(ask *asked) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hold.promised -= ask.bytes
}

// apply hands the answer to the feeds; stale asks for new metadata.
func (r *Reader) apply(resp *kmsg.FetchResponse, ask asked) (stale bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stamp++
	bytes := 0
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			bytes += len(resp.Topics[i].Partitions[j].RecordBatches)
		}
	}
	for i := range resp.Topics {
		rt := &resp.Topics[i]
		name := rt.Topic
		if name == "" {
			name = ask.names[rt.TopicID]
		}
		for j := range rt.Partitions {
			rp := &rt.Partitions[j]
			part := TopicPartition{name, rp.Partition}
			f := ask.feeds[part]
			if f == nil || f.removed {
				continue
			}
			if err := kerr.ErrorForCode(rp.ErrorCode); err != nil {
				stale = r.failed(f, err, ask.at[part]) || stale
				continue
			}
			if len(rp.RecordBatches) < bytes/2 {
				// A part of the answer's memory would keep all of it.
				rp.RecordBatches = slices.Clone(rp.RecordBatches)
			}
			r.deliver(f, rp, ask.sent, bytes == 0)
		}
	}
	if bytes > 0 {
		// Whoever got a record now needs to know that nothing older is left
		// elsewhere: ask once more without waiting.
		r.quick = true
	}
	signal(r.arrived)
	return stale
}

// failed sorts an error of one partition: leadership errors heal with new
// metadata, everything else ends the feed.
func (r *Reader) failed(f *Feed, err error, at int64) (stale bool) {
	switch err {
	case kerr.NotLeaderForPartition, kerr.FencedLeaderEpoch, kerr.UnknownLeaderEpoch, kerr.LeaderNotAvailable,
		kerr.ReplicaNotAvailable, kerr.OffsetNotAvailable, kerr.KafkaStorageError,
		kerr.UnknownTopicOrPartition, kerr.UnknownTopicID, kerr.InconsistentTopicID:
		return true
	case kerr.OffsetOutOfRange:
		err = fmt.Errorf("%w: %s/%d has no offset %d", ErrOutOfRange, f.part.Topic, f.part.Partition, at)
	default:
		err = fmt.Errorf("session: fetch %s/%d at %d: %w", f.part.Topic, f.part.Partition, at, err)
	}
	r.failLocked(f, err)
	return false
}

// deliver queues what came and works out what it proves.
func (r *Reader) deliver(f *Feed, rp *kmsg.FetchResponseTopicPartition, sent int64, nothing bool) {
	end := rp.LastStableOffset
	if r.options.Uncommitted || end < 0 {
		end = rp.HighWatermark
	}
	if next, ok := lastOffset(rp.RecordBatches); ok && !f.halted.Load() {
		c := chunk{data: rp.RecordBatches, received: r.stamp}
		for _, a := range rp.AbortedTransactions {
			c.aborted = append(c.aborted, abortedTxn{a.ProducerID, a.FirstOffset})
		}
		slices.SortFunc(c.aborted, func(x, y abortedTxn) int { return cmp.Compare(x.first, y.first) })
		f.queue = append(f.queue, c)
		f.queued += len(c.data)
		r.hold.add(len(c.data))
		f.chunks.Store(int32(len(f.queue)))
		f.fetchAt, f.hollow = max(f.fetchAt, next), 0
	} else if nothing && f.fetchAt < end {
		// The answer had room and the log has an end beyond, yet nothing
		// came: compaction has emptied the tail. Twice, to be sure that the
		// end did not just move.
		f.hollow++
		if f.hollow >= 2 {
			f.fetchAt = end
			f.skipTo.Store(end)
		}
	}
	f.end.Store(end)
	if f.fetchAt >= end {
		f.proven.Store(sent)
	}
}
