package commitlog

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/millrace/millrace/core/record"
)

// Found is a record that a look-up by time found.
type Found struct {
	Offset, Timestamp int64
	Epoch             int32
}

// FirstAt finds the first record from an offset on, below limit, whose timestamp is ts or later. ok is false when there is
// none.
func (l *Log) FirstAt(ts, from int64, limit Position) (found Found, ok bool, err error) {
	from = max(from, l.LogStart())
	err = l.each(from, limit, func(s *segment, end int64) (done bool, err error) {
		greatest, err := l.greatest(s)
		if err != nil || greatest < ts {
			return false, err
		}
		found, ok, err = l.firstIn(s, ts, from, limit.Offset, end)
		return ok, err
	})
	return found, ok, err
}

// MaxTimestamp finds the greatest timestamp of all records from the log start up to limit, and the first record that has it.
func (l *Log) MaxTimestamp(limit Position) (found Found, ok bool, err error) {
	from, doubt := l.LogStart(), int64(math.MaxInt64)
	for {
		best, err := l.greatestUpTo(from, limit, doubt)
		if err != nil || best == math.MinInt64 {
			return Found{}, false, err
		}
		if found, ok, err = l.FirstAt(best, from, limit); ok || err != nil {
			return found, ok, err
		}
		// What a segment knows as its greatest timestamp belongs to a record that came behind the limit, or is gone, or the
		// index is wrong: look at the headers of every segment that claims as much.
		if best == doubt {
			return Found{}, false, nil
		}
		doubt = best
	}
}

// greatestUpTo is the greatest timestamp that the segments know, those that claim doubt or more being looked through.
func (l *Log) greatestUpTo(from int64, limit Position, doubt int64) (best int64, err error) {
	best = math.MinInt64
	err = l.each(from, limit, func(s *segment, end int64) (done bool, err error) {
		greatest, err := l.greatest(s)
		if err != nil || greatest <= best {
			return false, err
		}
		if s.base < from || greatest >= doubt || s.base == limit.Segment && end < s.size.Load() { // only a part of it counts
			greatest, err = l.greatestIn(s, from, limit.Offset, end)
		}
		best = max(best, greatest)
		return false, err
	})
	return best, err
}

// each calls fn for the segments from an offset on, up to limit, with the bytes of each that count.
func (l *Log) each(from int64, limit Position, fn func(s *segment, end int64) (done bool, err error)) error {
	for {
		s, next, at, err := l.holdFrom(from, limit.Offset)
		if s == nil || err != nil {
			return err
		}
		end := s.size.Load()
		last := s.base >= limit.Segment || next == nil
		if s.base == limit.Segment {
			end = limit.Bytes
		}
		done, err := false, error(nil)
		if s.base <= limit.Segment {
			done, err = fn(s, end)
		}
		err = errors.Join(err, s.release())
		if err != nil || done || last {
			return err
		}
		from = max(at, next.base)
	}
}

func (l *Log) greatest(s *segment) (ts int64, err error) {
	return l.retry(s, func() (int64, error) { return s.greatestTime() })
}

// firstIn looks for the first record at or after ts in a segment, with offset from to limit. The time index says up to where
// there can be none.
func (l *Log) firstIn(s *segment, ts, from, limit, end int64) (found Found, ok bool, err error) {
	file, err := s.handle()
	if err != nil {
		return Found{}, false, err
	}
	w := newWalker(file, end)
	defer w.done()
	pos, err := l.retry(s, func() (int64, error) {
		e, have, err := s.floorTime(ts)
		if err == nil && have {
			have, err = s.believe(w, e)
		}
		if err != nil {
			return 0, err
		}
		if have {
			return s.locate(w, max(from, s.base+int64(e.relative)))
		}
		return s.locate(w, from)
	})
	for err == nil {
		var head record.Batch
		var size int64
		if head, size, err = w.at(pos); err != nil {
			break
		}
		if head.BaseOffset() >= limit {
			return Found{}, false, nil
		}
		if head.MaxTimestamp() >= ts {
			if found, ok, err = l.firstRecord(s, pos, size, ts, from, limit); ok || err != nil {
				return found, ok, err
			}
		}
		pos += size
	}
	if err == io.EOF {
		err = nil
	}
	return Found{}, false, err
}

// believe tells whether a look-up may begin at a time entry: the entry is compared with its batch, as the file has no checksum. One
// that does not fit calls for a rebuild, or, of a segment whose indexes are in memory, is passed over; so is one behind the end
// of the look-up.
func (s *segment) believe(w *walker, e timeEntry) (bool, error) {
	does, err := s.bears(w, e)
	switch {
	case err == io.EOF:
		return false, nil
	case err == nil && !does && s.mem.Load() == nil:
		return false, s.badTime(e)
	}
	return does, err
}

// firstRecord looks inside a batch. Its max timestamp may be that of a record that compaction has removed, or of one that is
// out of the range: then there is none.
func (l *Log) firstRecord(s *segment, pos, size, ts, from, limit int64) (found Found, ok bool, err error) {
	err = l.records(s, pos, size, func(b record.Batch, r *record.Record) bool {
		if r.Timestamp >= ts && r.Offset >= from && r.Offset < limit {
			found, ok = Found{r.Offset, r.Timestamp, b.LeaderEpoch()}, true
		}
		return !ok
	})
	return found, ok, err
}

// greatestIn is the greatest timestamp of the records of a part of a segment. Only the batches at the edges are looked into.
func (l *Log) greatestIn(s *segment, from, limit, end int64) (greatest int64, err error) {
	greatest = math.MinInt64
	file, err := s.handle()
	if err != nil {
		return greatest, err
	}
	w := newWalker(file, end)
	defer w.done()
	pos, err := l.retry(s, func() (int64, error) { return s.locate(w, from) })
	for err == nil {
		var head record.Batch
		var size int64
		if head, size, err = w.at(pos); err != nil || head.BaseOffset() >= limit {
			break
		}
		switch ts := head.MaxTimestamp(); {
		case ts <= greatest:
		case head.BaseOffset() >= from && head.LastOffset() < limit:
			greatest = ts
		default:
			err = l.records(s, pos, size, func(_ record.Batch, r *record.Record) bool {
				if r.Offset >= from && r.Offset < limit {
					greatest = max(greatest, r.Timestamp)
				}
				return true
			})
		}
		pos += size
	}
	if err == io.EOF {
		err = nil
	}
	return greatest, err
}

// records reads the one batch at pos and gives its records until fn returns false.
func (l *Log) records(s *segment, pos, size int64, fn func(record.Batch, *record.Record) bool) error {
	file, err := s.handle()
	if err != nil {
		return err
	}
	sc := newScanner(file, pos, pos+size)
	defer sc.done()
	b, err := sc.next()
	if err == nil {
		err = b.CheckCRC()
	}
	if err != nil {
		return l.damaged(s.base, pos, s.base, err)
	}
	for r, err := range b.Records(nil) {
		if err != nil {
			return fmt.Errorf("%s: batch at offset %d: %w", l.o.Name, b.BaseOffset(), err)
		}
		if !fn(b, r) {
			return nil
		}
	}
	return nil
}
