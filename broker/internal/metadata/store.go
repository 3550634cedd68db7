package metadata

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/millrace/millrace/core/clock"
)

// ErrClosed answers changes after Close.
var ErrClosed = errors.New("metadata store is closed")

// Log is the one partition of __cluster_metadata as the store uses it.
type Log interface {
	// Append writes the values as records of one batch and returns the offset
	// of the last one. They are durable when Await says so.
	Append(values [][]byte) (last int64, err error)
	// Await calls fn once when offset is durable, or with the reason why it never
	// will be. fn does not block.
	Await(offset int64, fn func(error))
	// Replay calls fn for every record value in order.
	Replay(fn func(offset int64, value []byte) error) error
	Close() error
}

// Follower carries published images out: it opens and deletes partitions.
type Follower interface {
	// Prepare runs before next is published. Its error goes to whoever asked for
	// the change; the image is published all the same, for it is durable.
	Prepare(next *Image) error
	// Retire runs after next was published and gives up what only prev had.
	Retire(prev, next *Image)
}

// Store owns the cluster's metadata. A change is appended to the log first; when
// it is durable the new image is prepared by the follower and published, in log
// order, by one goroutine. Readers never see metadata that a power cut could
// take back, and never wait.
type Store struct {
	log      Log
	follower Follower
	logger   *slog.Logger
	clock    clock.Clock
	image    atomic.Pointer[Image]

	mu      sync.Mutex
	head    *Image // after all appended changes, durable or not; owned by mu
	last    int64  // offset of the last appended record, -1 for none
	failure error  // set when the log refused; changes fail from then on
	ready   sync.Cond
	queue   []*publication // appended, in log order; owned by mu
	closing bool
	done    chan struct{}

	ids producerIDs
}

// publication is a change on its way from the log to the readers.
type publication struct {
	next    *Image
	durable bool
	err     error
	done    func(*Image, error)
}

// Open replays the log and starts the publisher. The follower is asked to
// prepare the replayed image before Open returns; what it can not prepare does not
// keep the rest from starting.
//
// The clock tells no time here: it only has a say in how the publisher runs.
func Open(log Log, clusterID string, nodeID int32, f Follower, c clock.Clock, logger *slog.Logger) (*Store, error) {
	im := Empty(clusterID, nodeID)
	s := &Store{log: log, follower: f, logger: logger, clock: c, last: -1, done: make(chan struct{})}
	s.ready.L = &s.mu
	var changes []Change
	err := log.Replay(func(offset int64, value []byte) error {
		c, err := decode(value)
		if err != nil {
			return fmt.Errorf("metadata log at offset %d: %w", offset, err)
		}
		s.last, changes = offset, append(changes, c)
		return nil
	})
	if err != nil {
		return nil, err
	}
	// All at once: an image costs a copy of its maps.
	if im, err = im.Apply(s.last+1, changes); err != nil {
		return nil, err
	}
	s.head = im
	if err := f.Prepare(im); err != nil {
		// The partition stays out of service; the rest works.
		logger.Error("not everything in the metadata could be opened", "error", err)
	}
	s.image.Store(im)
	s.ids = producerIDs{next: im.NextProducerID, end: im.NextProducerID}
	if clock.Driven(c) == nil {
		go s.publish()
	}
	return s, nil
}

// Image returns the newest published image.
func (s *Store) Image() *Image { return s.image.Load() }

// Change makes a change. build looks at the image after all earlier changes and
// returns what to append; it runs under the store's lock and must not call the
// store. done is called once, from the publisher's goroutine, when the change
// and all before it are durable and published, with the image then, or with the
// error of build, the log or the follower. An empty list of changes appends
// nothing and is answered in its turn.
func (s *Store) Change(build func(*Image) ([]Change, error), done func(*Image, error)) {
	p := &publication{done: done}
	s.mu.Lock()
	last := s.append(p, build)
	if s.closing {
		s.mu.Unlock()
		done(nil, ErrClosed)
		return
	}
	s.queue = append(s.queue, p)
	s.mu.Unlock()
	if last < 0 {
		s.settle(p, nil)
		return
	}
	s.log.Await(last, func(err error) { s.settle(p, err) })
}

// append builds and writes one change; the caller holds mu. It returns the
// offset to wait for, -1 for none.
func (s *Store) append(p *publication, build func(*Image) ([]Change, error)) int64 {
	if s.closing {
		return -1
	}
	if p.err = s.failure; p.err != nil {
		return -1
	}
	changes, err := build(s.head)
	if err != nil {
		p.err = err
		return s.last
	}
	if len(changes) == 0 {
		return s.last
	}
	values := make([][]byte, len(changes))
	for i, c := range changes {
		values[i] = encode(nil, c)
	}
	// The image is made before the append, so that a change that does not fit
	// never reaches the log.
	next, err := s.head.Apply(s.head.Offset+int64(len(changes)), changes)
	if err != nil {
		p.err = err
		return s.last
	}
	last, err := s.log.Append(values)
	if err != nil {
		p.err = fmt.Errorf("append to %s: %w", LogTopic, err)
		return -1
	}
	next.Offset = last + 1
	s.head, s.last, p.next = next, last, next
	return last
}

func (s *Store) settle(p *publication, err error) {
	s.mu.Lock()
	p.durable = true
	if err != nil {
		// What was appended may or may not be on disk, so nothing can be built on
		// it: the store takes no change until the broker starts anew.
		p.err, p.next = err, nil
		if s.failure == nil {
			s.failure = fmt.Errorf("%s can not be written: %w", LogTopic, err)
			s.logger.Error("metadata log failed, no changes of metadata until restart", "error", err)
		}
	}
	s.mu.Unlock()
	if d := clock.Driven(s.clock); d != nil {
		d.Go("metadata", func() {
			for s.publishNext() {
			}
		})
		return
	}
	s.ready.Signal()
}

// publish is the publisher's goroutine: it takes changes off the queue in log
// order.
func (s *Store) publish() {
	defer close(s.done)
	for {
		s.mu.Lock()
		for (len(s.queue) == 0 || !s.queue[0].durable) && !(s.closing && len(s.queue) == 0) {
			s.ready.Wait()
		}
		s.mu.Unlock()
		if !s.publishNext() {
			return
		}
	}
}

// publishNext publishes the change at the head of the queue, if there is one that is durable.
func (s *Store) publishNext() bool {
	s.mu.Lock()
	if len(s.queue) == 0 || !s.queue[0].durable {
		s.mu.Unlock()
		return false
	}
	p := s.queue[0]
	s.queue = s.queue[1:]
	s.mu.Unlock()
	if p.next != nil {
		p.err = s.follower.Prepare(p.next)
		prev := s.image.Swap(p.next)
		s.follower.Retire(prev, p.next)
	}
	p.done(s.image.Load(), p.err)
	return true
}

// ChangeNow is Change for callers that may wait, such as the broker's start.
func (s *Store) ChangeNow(build func(*Image) ([]Change, error)) (*Image, error) {
	type result struct {
		im  *Image
		err error
	}
	ch := make(chan result, 1)
	s.Change(build, func(im *Image, err error) { ch <- result{im, err} })
	r, err := clock.Receive(s.clock, ch)
	return r.im, errors.Join(r.err, err)
}

// Close answers what is under way and closes the log.
func (s *Store) Close() error {
	s.mu.Lock()
	again := s.closing
	s.closing = true
	s.mu.Unlock()
	var err error
	if d := clock.Driven(s.clock); d != nil {
		err = d.Await(func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.queue) == 0
		})
	} else {
		s.ready.Signal()
		<-s.done
	}
	if again {
		return err
	}
	return errors.Join(err, s.log.Close())
}
