package session

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// sender carries sealed parcels to the leaders of their partitions, in order. It has
// one request on its way per broker, with one batch of each partition that has any;
// what is sealed meanwhile goes with the next. So requests grow with the load, and
// no batch can overtake another of its partition.
//
// A batch is repeated, with its sequence, until there is an answer that says what
// became of it or the transaction is over. It has an end when its transaction has
// one: nothing outlives drain, or the next identity.
//
// A sender has one identity, a producer id, whose epoch and sequences it counts.
type sender struct {
	cluster *Cluster
	txnID   *string // nil: idempotent, without transactions
	// idle: the owner may hand over what it has, nothing is on its way.
	idle     atomic.Bool
	progress chan struct{} // capacity 1

	mu      sync.Mutex
	id      int64
	epoch   int16
	lanes   map[TopicPartition]*lane
	ready   []*lane
	busy    map[int32]bool // brokers with a request on its way
	flying  int            // how many they are
	waiting int            // parcels that are sealed and not acknowledged
	bytes   int            // in them
	spare   []*parcel
	kept    int // bytes of memory in them

	// Of the open transaction.
	limit   context.Context
	touched bool  // something may have reached the cluster
	held    bool  // nothing is sent before release
	failure error // of the first batch that cannot be delivered
	dropped bool  // what is not on its way yet is not sent any more
	lost    bool  // a batch was given up of which nobody knows what became
}

func newSender(c *Cluster, txnID *string, id int64, epoch int16) *sender {
	s := &sender{
		cluster: c, txnID: txnID, id: id, epoch: epoch, progress: make(chan struct{}, 1),
		lanes: map[TopicPartition]*lane{}, busy: map[int32]bool{},
	}
	s.idle.Store(true)
	return s
}

// begin opens a transaction, or whatever ends with finish.
func (s *sender) begin(limit context.Context, hold bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit, s.touched, s.held, s.failure, s.dropped, s.lost = limit, false, hold, nil, false, false
	for _, l := range s.lanes {
		l.joined, l.unknowns = false, 0
		if l.tooLarge > 0 {
			l.most, l.tooLarge = max(l.tooLarge/2, 1), 0
		}
	}
	s.idle.Store(!hold)
}

// release lets go what was held back.
func (s *sender) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = false
	s.dispatch()
}

// renumber takes the identity of the next transaction, which begins all sequences
// anew if it is another one.
func (s *sender) renumber(id int64, epoch int16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id < 0 || id == s.id && epoch == s.epoch {
		return
	}
	s.id, s.epoch = id, epoch
	for _, l := range s.lanes {
		l.seq = 0
	}
}

// empty is a parcel to fill.
func (s *sender) empty() *parcel {
	s.mu.Lock()
	n := len(s.spare)
	var p *parcel
	if n > 0 {
		p, s.spare = s.spare[n-1], s.spare[:n-1]
		s.kept -= p.kept
	}
	s.mu.Unlock()
	if p == nil {
		p = new(parcel)
	}
	p.reset(s.batchOptions())
	return p
}

// sendBytes is how much may be on its way; the owner waits when it is more. Of the
// memory for it, spareBytes are kept for what comes next.
const sendBytes, spareBytes = 16 << 20, 8 << 20

// post takes a parcel over.
func (s *sender) post(l *lane, p *parcel) (full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over() {
		return false
	}
	l.queue = append(l.queue, p)
	s.waiting++
	s.bytes += p.builder.Size()
	s.list(l)
	s.dispatch()
	return s.bytes > sendBytes && !s.held
}

// over reports that nothing more of the transaction is sent.
func (s *sender) over() bool { return s.failure != nil || s.dropped || s.limit.Err() != nil }

func (s *sender) list(l *lane) {
	if !l.listed && !l.sending && len(l.queue) > 0 {
		l.listed = true
		s.ready = append(s.ready, l)
	}
}

// requestBytes bounds the batches of one request; a single one may be larger.
const requestBytes = 16 << 20

// dispatch sends what is ready to brokers that have nothing on their way.
func (s *sender) dispatch() {
	for i := 0; i < len(s.ready) && !s.held; {
		leader := s.ready[i].leader
		if s.busy[leader] {
			i++
			continue
		}
		var lanes []*lane
		bytes := 0
		s.ready = slices.DeleteFunc(s.ready, func(l *lane) bool {
			if l.leader != leader || bytes > requestBytes {
				return false
			}
			l.listed, l.sending = false, true
			bytes += l.queue[0].builder.Size()
			lanes = append(lanes, l)
			return true
		})
		s.busy[leader] = true
		s.flying++
		go s.carry(s.limit, leader, lanes)
		i = 0
	}
	s.idle.Store(s.flying == 0 && !s.held)
}

// carry brings the first parcel of each lane to a broker and deals with the answer.
func (s *sender) carry(ctx context.Context, leader int32, lanes []*lane) {
	var again []*lane
	if leader < 0 {
		again = lanes
	} else {
		again = s.deliver(ctx, leader, lanes)
	}
	if len(again) > 0 {
		s.locate(ctx, again)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flying--
	delete(s.busy, leader)
	for _, l := range lanes {
		l.sending = false
		if s.over() {
			s.give(l)
		}
		s.list(l)
	}
	if s.failure == nil && s.limit.Err() != nil && s.waiting > 0 {
		s.fail(s.limit.Err())
	}
	s.dispatch()
	signal(s.progress)
}

// locate waits a moment and finds out where the partitions are now.
func (s *sender) locate(ctx context.Context, lanes []*lane) {
	if pause(ctx, 20*time.Millisecond) != nil {
		return
	}
	var names []string
	for _, l := range lanes {
		names = append(names, l.part.Topic)
	}
	slices.Sort(names)
	topics, err := s.cluster.Topics(ctx, slices.Compact(names)...)
	if err != nil {
		return // the next attempt will ask again
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range lanes {
		t := topics[l.part.Topic]
		switch {
		case int(l.part.Partition) >= len(t.Partitions):
			// Its leader will say so, if the topic is gone.
		case t.ID != l.topicID:
			s.fail(fmt.Errorf("produce to %s: the topic was deleted and made anew: %w", l.part.Topic, kerr.UnknownTopicID))
		default:
			l.leader = t.Partitions[l.part.Partition].Leader
		}
	}
}

// fail ends the transaction: what waits is dropped.
func (s *sender) fail(err error) {
	if s.failure == nil {
		s.failure = err
	}
	s.drop()
}

// drop gives up what is not on its way.
func (s *sender) drop() {
	for _, l := range s.ready {
		l.listed = false
	}
	clear(s.ready)
	s.ready = s.ready[:0]
	for _, l := range s.lanes {
		if !l.sending {
			s.give(l)
		}
	}
	signal(s.progress)
}

// give drops what a lane has. Its parcels are not filled again: if they were sent,
// the client may still be reading them.
func (s *sender) give(l *lane) {
	s.lost = s.lost || l.unsure
	for _, p := range l.queue {
		s.waiting--
		s.bytes -= p.builder.Size()
	}
	l.queue, l.unsure = nil, false
}

// room waits until the owner may go on.
func (s *sender) room() {
	for {
		s.mu.Lock()
		limit, full := s.limit, s.bytes > sendBytes && !s.over()
		s.mu.Unlock()
		if !full {
			return
		}
		select {
		case <-limit.Done():
			return
		case <-s.progress:
		}
	}
}

// flush waits until all that was posted is acknowledged.
func (s *sender) flush(ctx context.Context) error {
	for {
		s.mu.Lock()
		failure, waiting := s.failure, s.waiting
		s.mu.Unlock()
		switch {
		case failure != nil:
			return failure
		case waiting == 0:
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.progress:
		}
	}
}

// drain drops what is not on its way and waits for the answers to what is. clean:
// of every batch it is known what became of it.
func (s *sender) drain(ctx context.Context) (clean bool) {
	s.mu.Lock()
	s.dropped = true
	s.drop()
	s.mu.Unlock()
	for {
		s.mu.Lock()
		flying, lost := s.flying, s.lost
		s.mu.Unlock()
		if flying == 0 {
			return !lost
		}
		select {
		case <-ctx.Done():
			return false
		case <-s.progress:
		}
	}
}
