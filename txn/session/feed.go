package session

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/core/record"
)

// chunk is what one fetch brought for one partition.
type chunk struct {
	data     []byte
	aborted  []abortedTxn // sorted by first offset
	received int64        // stamp, see Reader
}

type abortedTxn struct {
	producer int64
	first    int64
}

// Feed is one assigned partition: its records in order, one at a time, and how
// far they go. It belongs to one goroutine, which calls Head and Pop; the
// reader's goroutines fill it.
type Feed struct {
	part TopicPartition
	take func(*Feed) chunk // the reader's queue, one chunk at a time

	// Owned by the reader, under its lock.
	queue   []chunk
	queued  int // bytes in queue
	reading int // bytes of the chunk that the owner has taken
	fetchAt int64
	wanted  bool // the owner cannot go on without it
	hollow  int  // consecutive empty answers below the end
	removed bool

	// Written by the reader, read by the owner.
	chunks atomic.Int32 // len(queue)
	proven atomic.Int64 // stamp of the last fetch that found nothing more
	end    atomic.Int64
	skipTo atomic.Int64 // what lies before it and was not delivered does not exist
	failed atomic.Pointer[error]
	halted atomic.Bool // by the owner: stopped, nothing more is wanted

	// Owned by the owner.
	position int64
	epoch    int32
	rest     []byte
	holds    bool // a chunk has been taken and not been let go of
	aborted  []abortedTxn
	discard  map[int64]struct{} // producers whose records are aborted here
	stamp    int64
	batch    record.Batch
	records  *record.Reader
	scratch  record.Scratch
	head     Record
	hasHead  bool
	stops    bool // it ends at stop
	stop     int64
	err      error
}

// Part is the partition.
func (f *Feed) Part() TopicPartition { return f.part }

// Head returns the next record without consuming it; ok is false when none has
// arrived. The record and its slices are valid until Pop.
func (f *Feed) Head() (r *Record, ok bool) {
	if f.hasHead || f.load() {
		return &f.head, true
	}
	return nil, false
}

// Pop consumes the head.
func (f *Feed) Pop() {
	if f.hasHead {
		f.hasHead = false
		f.position, f.epoch = f.head.Offset+1, f.head.LeaderEpoch
	}
}

// Stop ends the feed before an offset: records from there on are not given out, and
// once it is reached the feed is dry for good. It is never taken back.
func (f *Feed) Stop(at int64) {
	f.stops, f.stop = true, at
	if f.hasHead && f.head.Offset >= at {
		f.hasHead, f.position = false, max(f.position, at)
	}
}

func (f *Feed) stopped() bool { return f.stops && f.position >= f.stop }

// Position is where reading goes on: after the last consumed record, and after
// whatever follows it that a committed reader never sees.
func (f *Feed) Position() int64 { return f.position }

// LeaderEpoch is the epoch of the last consumed record, -1 before the first.
func (f *Feed) LeaderEpoch() int32 { return f.epoch }

// End is the last known end of the partition, for committed readers the last
// stable offset; -1 before the first answer.
func (f *Feed) End() int64 { return f.end.Load() }

// Received is the stamp of the head's arrival.
func (f *Feed) Received() int64 { return f.stamp }

// DryAfter reports that a fetch sent after the given stamp found nothing beyond
// what the feed had: with an empty feed, the partition had no record then.
func (f *Feed) DryAfter(stamp int64) bool { return f.proven.Load() > stamp || f.stopped() }

// Err is what ended the feed.
func (f *Feed) Err() error {
	if f.err != nil {
		return f.err
	}
	if p := f.failed.Load(); p != nil {
		return *p
	}
	return nil
}

// load finds the next visible record.
func (f *Feed) load() bool {
	if f.stopped() {
		f.halt()
		return false
	}
	for f.err == nil && !f.stopped() {
		if f.records != nil {
			if f.nextRecord() {
				return true
			}
			continue
		}
		if len(f.rest) == 0 && !f.nextChunk() {
			break
		}
		if err := f.nextBatch(); err != nil {
			f.err = fmt.Errorf("session: %s/%d at offset %d: %w", f.part.Topic, f.part.Partition, f.position, err)
		}
	}
	return false
}

// halt lets go of everything once the feed has come to where it is to stop.
func (f *Feed) halt() {
	if f.halted.Swap(true) {
		return
	}
	f.records = nil
	f.release()
}

// nextRecord takes the next record of the current batch, or closes the batch.
func (f *Feed) nextRecord() bool {
	for f.records.Next() {
		r := f.records.Record()
		if r.Offset < f.position {
			continue
		}
		if f.stops && r.Offset >= f.stop {
			f.position = f.stop
			return false
		}
		f.head.Offset, f.head.Time = r.Offset, time.UnixMilli(r.Timestamp)
		f.head.Key, f.head.Value = r.Key, r.Value
		f.head.LeaderEpoch = f.batch.LeaderEpoch()
		f.head.Headers = f.head.Headers[:0]
		for _, h := range r.Headers {
			f.head.Headers = append(f.head.Headers, Header{Key: string(h.Key), Value: h.Value})
		}
		f.hasHead = true
		return true
	}
	if err := f.records.Err(); err != nil {
		f.err = fmt.Errorf("session: %s/%d at offset %d: %w", f.part.Topic, f.part.Partition, f.position, err)
		return false
	}
	f.endBatch()
	return false
}

// endBatch moves behind the batch: its last offset may belong to a record that
// compaction has removed.
func (f *Feed) endBatch() {
	f.position = max(f.position, f.batch.LastOffset()+1)
	f.records = nil
}

func (f *Feed) nextChunk() bool {
	if f.chunks.Load() == 0 {
		if to := f.skipTo.Load(); to > f.position && f.chunks.Load() == 0 {
			f.position = to
		}
		return f.holds && f.release()
	}
	c := f.take(f)
	f.rest, f.aborted, f.stamp, f.holds = c.data, c.aborted, c.received, true
	clear(f.discard)
	return true
}

// release lets the memory of a chunk go that has been read to the end. If the next one
// has come meanwhile it is taken at once, and the answer is true.
func (f *Feed) release() bool {
	f.batch, f.head.Key, f.head.Value = nil, nil, nil
	clear(f.head.Headers)
	f.scratch.Release()
	c := f.take(f)
	f.rest, f.aborted, f.holds = c.data, c.aborted, len(c.data) > 0
	if f.holds {
		f.stamp = c.received
	}
	clear(f.discard)
	return f.holds
}

// nextBatch opens the next batch of the chunk, unless nothing in it is visible.
func (f *Feed) nextBatch() error {
	b, rest, err := record.Next(f.rest)
	if errors.Is(err, record.ErrTruncated) {
		// A fetch may end within a batch; the next one brings it whole.
		f.rest = nil
		return nil
	}
	if err != nil {
		return err
	}
	f.rest, f.batch = rest, b
	if b.LastOffset() < f.position {
		return nil
	}
	if err := b.CheckCRC(); err != nil {
		return err
	}
	visible, err := f.visible(b)
	if err != nil {
		return err
	}
	if !visible {
		f.endBatch()
		return nil
	}
	f.records, err = b.Reader(&f.scratch)
	return err
}

// visible follows the aborted transactions of the chunk: their records begin at
// the first offset listed and end with the abort marker.
func (f *Feed) visible(b record.Batch) (bool, error) {
	for len(f.aborted) > 0 && f.aborted[0].first <= b.LastOffset() {
		f.discard[f.aborted[0].producer] = struct{}{}
		f.aborted = f.aborted[1:]
	}
	a := b.Attributes()
	if a.Control() {
		m, ok, err := b.Marker()
		if err != nil {
			return false, err
		}
		if ok && !m.Commit {
			delete(f.discard, b.ProducerID())
		}
		return false, nil
	}
	if a.Transactional() {
		_, drop := f.discard[b.ProducerID()]
		return !drop, nil
	}
	return true, nil
}

// lastOffset walks the batches and returns the offset after the last whole one.
func lastOffset(data []byte) (next int64, ok bool) {
	for len(data) > 0 {
		b, rest, err := record.Next(data)
		if err != nil {
			// Cut at the end, which is allowed, or damaged: then the owner
			// finds the same error when it gets there.
			return next, ok || !errors.Is(err, record.ErrTruncated)
		}
		next, ok, data = b.LastOffset()+1, true, rest
	}
	return next, ok
}
