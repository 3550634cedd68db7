package session

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/millrace/millrace/core/partition"
	"github.com/millrace/millrace/core/record"
)

// lane is one partition that a producer writes to.
type lane struct {
	part  TopicPartition
	fill  *parcel   // the owner's; nil when nothing waits to be sealed
	begun time.Time // of the last transaction that something was sealed in
	most  int       // bytes of a batch; changes between transactions only

	// Under the sender's lock. While sending is set, the first of the queue and
	// unsure belong to the goroutine that carries it.
	topicID [16]byte
	leader  int32 // -1: not known
	queue   []*parcel
	sending bool
	listed  bool // among those that are ready to be sent
	joined  bool // is part of the transaction, where that has to be said (version 1)
	seq     int32
	// unsure: the first of the queue was sent, and nobody knows whether it arrived.
	unsure   bool
	unknowns int // answers in a row that do not know the topic
	tooLarge int // bytes of a batch that was refused for its size
}

// written is a topic that a producer writes to, as its owner sees it.
type written struct {
	name  string
	lanes []*lane // by partition
	next  int     // of the records without a key
	old   bool    // ask again before the next record
}

// route chooses the partition of a record: the one that it names, or that of its
// key, or the next one in turn.
func (w *written) route(r *Record) (*lane, error) {
	n := len(w.lanes)
	switch {
	case int(r.Partition) >= n:
		return nil, fmt.Errorf("produce to %s: there is no partition %d, the topic has %d: %w", w.name, r.Partition, n, kerr.UnknownTopicOrPartition)
	case r.Partition >= 0:
		return w.lanes[r.Partition], nil
	case r.Key == nil:
		w.next = (w.next + 1) % n
		return w.lanes[w.next], nil
	}
	return w.lanes[partition.ForKey(r.Key, int32(n))], nil
}

// metadataAge is after how long a topic is asked for again: it may have more
// partitions by then.
const metadataAge = 5 * time.Minute

// unknownTries is how often a topic that is written may be unknown to the cluster:
// one that was just made may not have reached all brokers.
const unknownTries = 5

// ask learns about a topic.
func (s *sender) ask(ctx context.Context, name string) (Topic, error) {
	for try := 1; ; try++ {
		found, err := s.cluster.Topics(ctx, name)
		if err != nil {
			return Topic{}, err
		}
		if t, ok := found[name]; ok && len(t.Partitions) > 0 {
			return t, nil
		}
		if try == unknownTries {
			return Topic{}, fmt.Errorf("produce to %s: %w", name, kerr.UnknownTopicOrPartition)
		}
		if err := pause(ctx, time.Duration(try)*20*time.Millisecond); err != nil {
			return Topic{}, err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// learn brings the lanes of a topic up to date. A topic that was made anew begins
// with sequence 0: it knows nothing of the producer.
func (s *sender) learn(w *written, t Topic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range t.Partitions {
		if i == len(w.lanes) {
			l := &lane{part: TopicPartition{w.name, int32(i)}, topicID: t.ID, most: parcelBytes}
			w.lanes = append(w.lanes, l)
			s.lanes[l.part] = l
		}
		l := w.lanes[i]
		l.leader = t.Partitions[i].Leader
		if l.topicID != t.ID {
			l.topicID, l.seq = t.ID, 0
		}
	}
	w.lanes, w.old = w.lanes[:len(t.Partitions)], false
}

// batchOptions are those of the producer's batches, but for the sequence.
func (s *sender) batchOptions() record.BuilderOptions {
	return record.BuilderOptions{Transactional: s.txnID != nil, LeaderEpoch: -1}
}
