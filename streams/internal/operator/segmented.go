package operator

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"time"
)

// segmented keeps rows by key and time for as long as time has not passed them. Time
// is cut into segments, so that rows go by the segment, in one range, and yet those
// of a key lie together, in at most four ranges:
//
//	segment (8 bytes), length of the key (4), key, time (8), more (8, sessions only)
//
// Numbers are big endian, times not before 1970. The time of the store is the highest
// of a row put into it, whatever its key. A row is gone, to the millisecond, when it is
// retention older than that.
type segmented struct {
	store       rawStore
	clock       *Clock
	retentionMs int64
	lengthMs    int64 // of a segment
	more        int   // bytes behind the time
	expired     int64 // segments before this one hold nothing
	from        []byte
}

// SegmentOf is the length of the segments for a retention: two whole ones lie within
// it, as in Kafka Streams. A change of it makes all rows unreadable.
func SegmentOf(retention time.Duration) time.Duration {
	return max(retention/2, time.Second).Truncate(time.Millisecond)
}

func newSegmented(b *Builder, kind, name string, retention time.Duration, more int) (*segmented, error) {
	return Join(b, kind+" "+name, func() (*segmented, error) {
		store, err := openRaw(b, name)
		return &segmented{store: store, clock: b.Clock(name + " " + kind), retentionMs: retention.Milliseconds(),
			lengthMs: SegmentOf(retention).Milliseconds(), more: more}, err
	})
}

// first is the earliest time that is kept.
func (s *segmented) first() int64 { return max(s.clock.Ms()-s.retentionMs+1, 0) }

// prefix writes what the rows of a key in a segment begin with.
func (s *segmented) prefix(dst, key []byte, segment int64) []byte {
	dst = binary.BigEndian.AppendUint64(dst[:0], uint64(segment))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(key)))
	return append(dst, key...)
}

// row writes the key of a row.
func (s *segmented) row(dst, key []byte, ms, more int64) []byte {
	dst = binary.BigEndian.AppendUint64(s.prefix(dst, key, ms/s.lengthMs), uint64(ms))
	if s.more > 0 {
		dst = binary.BigEndian.AppendUint64(dst, uint64(more))
	}
	return dst
}

// segmentRow is a row as it is found, valid until the next.
type segmentRow struct {
	key      []byte
	ms, more int64
	value    []byte
}

func (s *segmented) parse(row, value []byte) (r segmentRow, err error) {
	if len(row) < 20+s.more || int(binary.BigEndian.Uint32(row[8:])) != len(row)-20-s.more {
		return r, s.store.wrap(fmt.Errorf("a row's key of %d bytes does not fit what it says of itself", len(row)))
	}
	end := len(row) - s.more
	r = segmentRow{key: row[12 : end-8], ms: int64(binary.BigEndian.Uint64(row[end-8:])), value: value}
	if s.more > 0 {
		r.more = int64(binary.BigEndian.Uint64(row[end:]))
	}
	return r, nil
}

// take moves the time to that of a new row, and reports whether the row is kept.
func (s *segmented) take(ms int64) (bool, error) {
	if ms < 0 {
		return false, s.store.wrap(fmt.Errorf("a row of %v, before 1970", time.UnixMilli(ms).UTC()))
	}
	s.clock.Advance(ms)
	if ms < s.first() {
		return false, nil
	}
	return true, s.expire()
}

// expire removes the segments that time has passed as a whole.
func (s *segmented) expire() error {
	until := s.first() / s.lengthMs
	if until <= s.expired {
		return nil
	}
	from := binary.BigEndian.AppendUint64(nil, uint64(s.expired))
	if s.expired == 0 {
		from = nil
	}
	s.expired = until
	return s.store.Expire(from, binary.BigEndian.AppendUint64(nil, uint64(until)))
}

// put writes a row that take has let in.
func (s *segmented) put(key []byte, ms, more int64, value []byte) error {
	s.from = s.row(s.from, key, ms, more)
	return s.store.Put(s.from, value)
}

func (s *segmented) remove(key []byte, ms, more int64) error {
	if ms < s.first() {
		return nil
	}
	s.from = s.row(s.from, key, ms, more)
	return s.store.Delete(s.from)
}

// get reads a row; the value is valid until the next call.
func (s *segmented) get(key []byte, ms, more int64) (value []byte, ok bool, err error) {
	if ms < s.first() {
		return nil, false, nil
	}
	s.from = s.row(s.from, key, ms, more)
	return s.store.Get(s.from)
}

// Orders of a scan.
const (
	ascending  = false
	descending = true
)

// ofKey yields the rows of a key with from <= time < to in order of time.
func (s *segmented) ofKey(key []byte, from, to int64, down bool) iter.Seq2[segmentRow, error] {
	key = append([]byte{}, key...)
	return s.scan(from, to, down, func(segment int64, lo, hi int64) (a, b []byte) {
		a = binary.BigEndian.AppendUint64(s.prefix(nil, key, segment), uint64(lo))
		b = binary.BigEndian.AppendUint64(s.prefix(nil, key, segment), uint64(hi))
		return a, b
	})
}

// ofAll yields the rows of all keys with from <= time < to, segment by segment, and
// in it in order of key and time.
func (s *segmented) ofAll(from, to int64, down bool) iter.Seq2[segmentRow, error] {
	return s.scan(from, to, down, func(segment int64, _, _ int64) (a, b []byte) {
		return binary.BigEndian.AppendUint64(nil, uint64(segment)), binary.BigEndian.AppendUint64(nil, uint64(segment+1))
	})
}

// scan goes through the segments between two times; bounds are those of the rows in
// one, for the times in it that are asked for.
func (s *segmented) scan(from, to int64, down bool, bounds func(segment, lo, hi int64) (a, b []byte)) iter.Seq2[segmentRow, error] {
	return func(yield func(segmentRow, error) bool) {
		from, to := max(from, s.first()), min(to, s.clock.Ms()+1)
		if from >= to {
			return
		}
		first, last := from/s.lengthMs, (to-1)/s.lengthMs
		for n := range last - first + 1 {
			segment := first + n
			if down {
				segment = last - n
			}
			a, b := bounds(segment, max(from, segment*s.lengthMs), min(to, (segment+1)*s.lengthMs))
			if !s.segment(a, b, from, to, down, yield) {
				return
			}
		}
	}
}

// segment yields the rows between two keys of one segment, and reports whether to go
// on.
func (s *segmented) segment(a, b []byte, from, to int64, down bool, yield func(segmentRow, error) bool) bool {
	rows := s.store.Range
	if down {
		rows = s.store.Backward
	}
	for row, err := range rows(a, b) {
		var r segmentRow
		if err == nil {
			r, err = s.parse(row.Key, row.Value)
		}
		if err != nil {
			yield(r, err)
			return false
		}
		if r.ms >= from && r.ms < to && !yield(r, nil) {
			return false
		}
	}
	return true
}

// spanMs turns two times into milliseconds; the zero time is the beginning, and the
// end.
func spanMs(from, to time.Time) (int64, int64) {
	a, b := int64(0), int64(math.MaxInt64)
	if !from.IsZero() {
		a = max(from.UnixMilli(), 0)
	}
	if !to.IsZero() {
		b = to.UnixMilli()
	}
	return a, b
}
