package operator

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/streams/internal/task"
)

// ErrTimestamp reports a record without a usable timestamp.
var ErrTimestamp = errors.New("record has no valid timestamp")

// Source decodes the records of a topic.
type Source[K, V any] struct {
	Node    string
	Topic   string
	Handler task.Handler
	Key     *Codec[K]
	Value   *Codec[V]
	// Time, if set, takes the time of a record from its contents, given the highest
	// so far of its partition, -1 before the first.
	Time func() TimeFunc[K, V]
	// Invalid says what becomes of records whose time is before 1970.
	Invalid InvalidTime
	Out     *Outlet[K, V]
}

// InvalidTime is what becomes of a record whose time is before 1970.
type InvalidTime int

const (
	// InvalidAsEver is a failure if the time is the record's own, and drops the
	// record if it was taken from its contents.
	InvalidAsEver InvalidTime = iota
	// InvalidFails is a failure, for the error chain.
	InvalidFails
	// InvalidSkips drops the record, counted.
	InvalidSkips
	// InvalidIsPartitions takes the highest time so far of the partition; a
	// failure if there is none.
	InvalidIsPartitions
)

// TimeFunc says what time a record has.
type TimeFunc[K, V any] func(r *Record[K, V], partitionMs int64) int64

// Build makes the node of one task.
func (s *Source[K, V]) Build(b *Builder) (Entry, error) {
	n := &source[K, V]{site: b.Site(s.Node, task.Decode, s.Handler), key: s.Key, val: s.Value}
	if s.Time != nil {
		n.time = s.Time()
	}
	if s.Time != nil || s.Invalid != InvalidAsEver {
		n.invalid, n.clock = s.Invalid, b.Clock(s.Node+" extracted")
	}
	next, err := s.Out.Build(b)
	n.next = next
	return n, err
}

type source[K, V any] struct {
	site *Site
	key  *Codec[K]
	val  *Codec[V]
	next Sink[K, V]
	out  Record[K, V]

	time    TimeFunc[K, V] // nil: the record's own
	invalid InvalidTime
	clock   *Clock // nil: the record's own time goes as it is
	failed  error  // of the time of the record that comes next
}

// timeMs says what time a record has. What goes wrong is found when it is
// processed.
func (n *source[K, V]) timeMs(r *task.Record) (ms int64) {
	if n.clock == nil {
		return r.TimeMs
	}
	n.failed = nil
	if n.time == nil {
		return n.valid(r.TimeMs)
	}
	var ahead Record[K, V]
	defer func() {
		if v := recover(); v != nil {
			ms, n.failed = r.TimeMs, panicOf(v)
		}
	}()
	own := r.TimeMs
	r.TimeMs = max(own, 0) // what is wrong with it is not for the decoder to say
	err := decodeRecord(r, n.key, n.val, &ahead)
	r.TimeMs, ahead.TimeMs = own, own
	if err != nil {
		return own
	}
	return n.valid(n.time(&ahead, n.clock.Ms()))
}

// valid applies the rule for times before 1970.
func (n *source[K, V]) valid(ms int64) int64 {
	switch {
	case ms >= 0 || n.invalid == InvalidAsEver || n.invalid == InvalidSkips:
		return ms
	case n.invalid == InvalidIsPartitions && n.clock.Ms() >= 0:
		return n.clock.Ms()
	}
	n.failed = fmt.Errorf("%w: %d", ErrTimestamp, ms)
	return max(n.clock.Ms(), 0)
}

// Process implements Entry.
func (n *source[K, V]) Process(r *task.Record) error {
	if n.clock != nil {
		if n.failed != nil {
			return n.site.once(n.failed)
		}
		if r.TimeMs < 0 {
			n.site.drop(dropNoTime)
			return nil
		}
	}
	ok, err := decode(n.site, r, n.key, n.val, &n.out)
	if err != nil || !ok {
		return err
	}
	if n.clock != nil {
		n.clock.Advance(r.TimeMs)
	}
	return n.next.Push(&n.out)
}

// decode is what sources of streams and of tables share: the record as typed,
// or ok false if the error chain leaves it out. Only a record that decodes
// moves the stream time.
func decode[K, V any](s *Site, r *task.Record, key *Codec[K], val *Codec[V], out *Record[K, V]) (ok bool, err error) {
	s.enter()
	err = decodeRecord(r, key, val, out)
	s.leave()
	if err != nil {
		ok, err = s.retry(err, func() error {
			return s.user(func() error { return decodeRecord(r, key, val, out) })
		})
		if err != nil || !ok {
			return false, err
		}
	}
	s.task.advance(r.TimeMs)
	return true, nil
}

func decodeRecord[K, V any](r *task.Record, key *Codec[K], val *Codec[V], out *Record[K, V]) (err error) {
	if r.TimeMs < 0 {
		return fmt.Errorf("%w: %d", ErrTimestamp, r.TimeMs)
	}
	if out.NullKey, err = key.Decode(r.Key, &out.Key); err != nil {
		return fmt.Errorf("key: %w", err)
	}
	if out.NullValue, err = val.Decode(r.Value, &out.Value); err != nil {
		return fmt.Errorf("value: %w", err)
	}
	out.TimeMs, out.Headers = r.TimeMs, r.Headers
	return nil
}
