package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

var (
	// ErrOutOfRange reports a position that the log does not have: records
	// that were not read yet have been deleted, or the log has lost its tail.
	ErrOutOfRange = errors.New("session: offset out of range")

	// ErrRecreated reports a topic that was deleted, or deleted and made anew,
	// while it was being read.
	ErrRecreated = errors.New("session: topic deleted or recreated")
)

// ReaderOptions tune a [Reader]. The zero value works.
type ReaderOptions struct {
	// Uncommitted also delivers records of open and aborted transactions.
	Uncommitted bool
	// MaxWait is how long a broker holds a fetch that finds nothing.
	// Default 100 ms.
	MaxWait time.Duration
	// BufferBytes is how much may wait per partition. Default 1 MiB.
	BufferBytes int
	// TotalBytes is how much may be held for all partitions together: what waits
	// and what is being read. Default 64 MiB. It may be exceeded by a batch for
	// each broker, and by a batch for each partition without which the owner
	// cannot go on. Batches count as they are in the log, compressed.
	TotalBytes int
	// FetchBytes bounds one answer of one broker. Default 8 MiB.
	FetchBytes int
}

func (o ReaderOptions) withDefaults() ReaderOptions {
	if o.MaxWait <= 0 {
		o.MaxWait = 100 * time.Millisecond
	}
	if o.BufferBytes <= 0 {
		o.BufferBytes = 1 << 20
	}
	if o.TotalBytes <= 0 {
		o.TotalBytes = 64 << 20
	}
	if o.FetchBytes <= 0 {
		o.FetchBytes = 8 << 20
	}
	return o
}

// Reader reads assigned partitions ahead, each into its [Feed]. Feeds are added
// and removed at any time; whose they are is the caller's business.
//
// A stamp is a count of the requests sent and answers received so far. It gives
// "after" a meaning that needs no clock: a feed that is dry after the stamp at
// which another feed's head arrived had nothing older to offer.
//
// Goroutines: one keeps the leaders known, and one per broker has one fetch on
// its way at a time.
type Reader struct {
	cluster *Cluster
	options ReaderOptions
	arrived chan struct{} // capacity 1
	refresh chan struct{} // capacity 1: leaders are needed
	ctx     context.Context
	cancel  context.CancelFunc
	done    sync.WaitGroup

	mu      sync.Mutex
	feeds   map[TopicPartition]*Feed
	topics  map[string]Topic
	brokers map[int32]chan struct{} // each with a goroutine; capacity 1, wakes it
	stamp   int64
	hold    hold
	quick   bool // the next fetches must not wait: somebody needs to know the end
}

// NewReader starts a reader without partitions.
func (c *Cluster) NewReader(o ReaderOptions) *Reader {
	r := &Reader{
		cluster: c, options: o.withDefaults(),
		arrived: make(chan struct{}, 1), refresh: make(chan struct{}, 1),
		feeds: map[TopicPartition]*Feed{}, topics: map[string]Topic{}, brokers: map[int32]chan struct{}{},
	}
	r.hold.limit = r.options.TotalBytes
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.done.Add(1)
	go r.follow()
	return r
}

// Add begins to read a partition at an offset. A partition is added once.
func (r *Reader) Add(part TopicPartition, at int64) *Feed {
	f := &Feed{part: part, take: r.takeChunk, fetchAt: at, position: at, epoch: -1, discard: map[int64]struct{}{}}
	f.head.Topic, f.head.Partition = part.Topic, part.Partition
	f.end.Store(-1)
	r.mu.Lock()
	r.feeds[part] = f
	known := int(part.Partition) < len(r.topics[part.Topic].Partitions)
	r.mu.Unlock()
	if known {
		r.kick()
	} else {
		signal(r.refresh)
	}
	return f
}

// Remove stops reading a feed and forgets what it has buffered.
func (r *Reader) Remove(f *Feed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f.removed = true
	r.hold.waiting -= f.queued
	r.hold.reading -= f.reading
	f.reading = 0
	f.queue, f.queued = nil, 0
	f.chunks.Store(0)
	if r.feeds[f.part] == f {
		delete(r.feeds, f.part)
	}
}

// Arrived gets a value when any feed has something new: records, an end, an
// error. One value may stand for many.
func (r *Reader) Arrived() <-chan struct{} { return r.arrived }

// Hurry makes the next fetches answer at once, for a caller who waits to learn
// that a feed is dry.
func (r *Reader) Hurry() {
	r.mu.Lock()
	r.quick = true
	r.mu.Unlock()
	r.kick()
}

// Close stops reading.
func (r *Reader) Close() {
	r.cancel()
	r.kick()
	r.done.Wait()
}

// takeChunk gives a feed its next chunk, if there is one; it is done with the last.
func (r *Reader) takeChunk(f *Feed) chunk {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.removed {
		return chunk{}
	}
	if f.halted.Load() {
		r.hold.waiting -= f.queued
		f.queue, f.queued = nil, 0
		f.chunks.Store(0)
	}
	var c chunk
	wasFull := r.hold.full() || f.queued >= r.options.BufferBytes
	r.hold.reading -= f.reading
	if len(f.queue) > 0 {
		c = f.queue[0]
		f.queue[0] = chunk{}
		f.queue = f.queue[1:]
		f.chunks.Store(int32(len(f.queue)))
	}
	f.reading = len(c.data)
	f.queued -= f.reading
	r.hold.waiting -= f.reading
	r.hold.reading += f.reading
	if wasFull && !r.hold.full() && f.queued < r.options.BufferBytes {
		r.kickLocked()
	}
	return c
}

// kick wakes the fetchers that have nothing on their way.
func (r *Reader) kick() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kickLocked()
}

func (r *Reader) kickLocked() {
	for _, wake := range r.brokers {
		signal(wake)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// follow keeps the leaders of all feeds known.
func (r *Reader) follow() {
	defer r.done.Done()
	pause := 20 * time.Millisecond
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-r.refresh:
		}
		if r.learn() {
			pause = 20 * time.Millisecond
			continue
		}
		select {
		case <-r.ctx.Done():
			return
		case <-time.After(pause):
			pause = min(2*pause, time.Second)
			signal(r.refresh)
		}
	}
}

// learn asks for metadata once and starts fetchers for brokers that are new. It
// reports whether every feed has a leader.
func (r *Reader) learn() bool {
	r.mu.Lock()
	names := r.topicsLocked()
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(r.ctx, 10*time.Second)
	defer cancel()
	topics, err := r.cluster.Topics(ctx, names...)
	if err != nil {
		if r.ctx.Err() == nil {
			r.cluster.log.Warn("reader: metadata", "error", err)
		}
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	all := true
	for part, f := range r.feeds {
		if _, asked := slices.BinarySearch(names, part.Topic); !asked {
			all = false // added meanwhile
			continue
		}
		t, ok := topics[part.Topic]
		if !ok || int(part.Partition) >= len(t.Partitions) || r.replacedLocked(t) {
			r.failLocked(f, fmt.Errorf("%w: %s", ErrRecreated, part.Topic))
			continue
		}
		r.topics[part.Topic] = t
		leader := t.Partitions[part.Partition].Leader
		if leader < 0 {
			all = false
			continue
		}
		r.startLocked(leader)
	}
	r.kickLocked()
	return all
}

// topicsLocked lists the topics of all feeds, sorted.
func (r *Reader) topicsLocked() []string {
	var names []string
	for part := range r.feeds {
		names = append(names, part.Topic)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// replacedLocked reports that the topic of this name is not the one read so far.
func (r *Reader) replacedLocked(t Topic) bool {
	old, ok := r.topics[t.Name]
	return ok && old.ID != t.ID
}

func (r *Reader) failLocked(f *Feed, err error) {
	f.failed.CompareAndSwap(nil, &err)
	signal(r.arrived)
}

func (r *Reader) startLocked(broker int32) {
	if r.brokers[broker] != nil || r.ctx.Err() != nil {
		return
	}
	wake := make(chan struct{}, 1)
	r.brokers[broker] = wake
	r.done.Add(1)
	go func() {
		defer r.done.Done()
		r.fetchFrom(broker, wake)
	}()
}
