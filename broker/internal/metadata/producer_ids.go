package metadata

import (
	"errors"
	"sync"
)

// producerIDBlock is how many producer ids one record hands out, as in Kafka.
const producerIDBlock = 1000

// ErrNoProducerID says that the next block of producer ids is not durable yet;
// asking again helps.
var ErrNoProducerID = errors.New("next block of producer ids is not durable yet")

// producerIDs is the block in use. Ids of a block whose record is not durable
// are never given out, so no id is given out twice, whatever the disk forgets.
type producerIDs struct {
	mu        sync.Mutex
	next, end int64 // ids in [next, end) may be given out
	asked     bool  // a further block is on its way
}

// NextProducerID returns a producer id that was never given out before. It
// does not block: a further block is asked for when half of the last is used,
// and ErrNoProducerID is returned when even that comes too late.
func (s *Store) NextProducerID() (int64, error) {
	s.ids.mu.Lock()
	low := s.ids.end-s.ids.next <= producerIDBlock/2 && !s.ids.asked
	if low {
		s.ids.asked = true
	}
	id, ok := s.ids.next, s.ids.next < s.ids.end
	if ok {
		s.ids.next++
	}
	s.ids.mu.Unlock()
	if low {
		s.ReserveProducerIDs(func(error) {})
	}
	if !ok {
		return 0, ErrNoProducerID
	}
	return id, nil
}

// ReserveProducerIDs asks for one more block. The broker does so once at start,
// so that the first producers find ids. Blocks follow each other without a
// gap as one node alone takes them; a gap would still be safe, it only wastes
// what is left of the old block.
func (s *Store) ReserveProducerIDs(done func(error)) {
	var from int64
	s.Change(func(im *Image) ([]Change, error) {
		from = im.NextProducerID
		return []Change{ProducerIDsChange{NodeID: im.NodeID, Next: from + producerIDBlock}}, nil
	}, func(_ *Image, err error) {
		s.ids.mu.Lock()
		s.ids.asked = false
		if err == nil {
			if s.ids.end != from {
				s.ids.next = from
			}
			s.ids.end = from + producerIDBlock
		}
		s.ids.mu.Unlock()
		done(err)
	})
}
