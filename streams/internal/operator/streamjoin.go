package operator

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/streams/internal/task"
)

// Reach says which records of two streams meet: a right one from BeforeMs before
// the left one to AfterMs after it.
type Reach struct {
	BeforeMs, AfterMs int64
	GraceMs           int64
	RetentionMs       int64 // of buffered records, from their time; at least before + after + grace
	// Strict drops records that are later than the grace, and lets no record go
	// out alone as long as one that is not late could still meet it.
	Strict bool
}

func (r Reach) segmentMs() int64 { return max(r.BeforeMs+r.AfterMs, 1) }

// StreamJoin joins two streams by key and time. Both sides' records are kept in a
// buffer each; a record meets those in the other's, oldest first, and the result
// has the larger of the two times.
//
// Records that meet nobody go out alone where their side may: when stream time,
// the highest of both sides, is above their time + what they reach ahead + grace,
// in order of (time, right before left, key bytes, arrival). They go out with a
// record that is at stream time, before its own results. In the form that is not
// strict, as Kafka Streams has it: a record that comes when its reach ahead is
// over already goes out alone at once, and may meet another later; and nothing is
// looked for unless the oldest record that waits is due by the reach of the side
// that the arriving record is on.
type StreamJoin[K, L, R, V any] struct {
	Node      string
	LeftRows  string // stores
	RightRows string
	Waiting   string // "" in an inner join
	Handler   task.Handler
	Sides     Sides
	Reach     Reach
	LateTo    string // see WindowedAggregate
	Key       *Codec[K]
	Left      *Codec[L]
	Right     *Codec[R]
	New       func() PairFunc[K, L, R, V]
	Out       *Outlet[K, V]
}

// streamJoin is what the two sides of a task share.
type streamJoin[K, V any] struct {
	site   *Site
	clock  *Clock // highest time of both sides
	seq    *Clock // counts records, for their identity
	reach  Reach
	lateTo string
	key    *Codec[K]
	nils   Nil[V]
	next   Sink[K, V]
	wait   *waiting // nil in an inner join
	sides  [2]loner // by number: right 0, left 1
	out    Record[K, V]
}

// loner is a side of a join that sends waiting records out alone.
type loner interface {
	// alone puts the value of a record that waited into the join's out.
	alone(w *waiter) error
	aheadMs() int64
}

const (
	rightSide byte = iota
	leftSide
)

// emitWaiting sends the records out alone that are due. ahead is the reach of
// the side that the arriving record is on.
func (c *streamJoin[K, V]) emitWaiting(ahead int64) error {
	now := c.clock.Ms() - c.reach.GraceMs
	first, err := c.wait.first()
	if err != nil || !c.reach.Strict && first >= now-ahead {
		return err
	}
	bound := now - min(c.reach.BeforeMs, c.reach.AfterMs)
	if first >= bound {
		return nil
	}
	return c.wait.until(bound, func(w waiter) (gone bool, err error) {
		s := c.sides[w.side]
		if w.timeMs+s.aheadMs() >= now {
			return false, nil
		}
		return true, c.emitAlone(s, &w)
	})
}

func (c *streamJoin[K, V]) emitAlone(s loner, w *waiter) error {
	if err := s.alone(w); err != nil {
		if fatal, user := blame(err); fatal != nil {
			return fatal
		} else if done, err := c.site.retry(user, func() error { return s.alone(w) }); err != nil || !done {
			return err
		}
	}
	return pushBranch(c.site.task, c.next, &c.out)
}

// moveOn removes the records that are past retention.
func (c *streamJoin[K, V]) moveOn(buffers ...interface{ expire(int64) error }) error {
	var errs []error
	for _, b := range buffers {
		errs = append(errs, b.expire(c.clock.Ms()-c.reach.RetentionMs))
	}
	return errors.Join(errs...)
}

// count gives the next record its number.
func (c *streamJoin[K, V]) count() int64 {
	seq := c.seq.Ms() + 1
	c.seq.Advance(seq)
	return seq
}

var errNoRecord = errors.New("a record that waits is not in its buffer")

func missing(store string) error { return fmt.Errorf("store %s: %w", store, errNoRecord) }
