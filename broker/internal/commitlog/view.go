package commitlog

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/vfs"
	"github.com/millrace/millrace/txn/isolation"
)

// ErrOutOfRange says that an offset is below the log start.
var ErrOutOfRange = errors.New("offset out of range")

// Section is a piece of a log file: whole batches.
type Section struct {
	File   vfs.File
	Offset int64
	Len    int
}

// Span is consecutive batches, in sections of the files they lie in. It holds the files until Release. The zero value is an
// empty span, and one that was released is ready for use again.
type Span struct {
	Sections []Section
	Bytes    int
	// First and Next bound the offsets: the first asked for, and one that is above all of the span's batches and not above
	// the first batch behind it.
	First, Next int64
	held        []*segment
}

// Release gives the files back.
func (s *Span) Release() error {
	var errs error
	for i, seg := range s.held {
		errs = errors.Join(errs, seg.release())
		s.held[i] = nil
	}
	clear(s.Sections)
	*s = Span{Sections: s.Sections[:0], held: s.held[:0]}
	return errs
}

// Slice fills the span with whole batches, from the one that holds the offset on, up to a place that was an End once. They are
// maxBytes at most; the first batch may be longer when atLeastOne is set. No batch is read, only a header here and there.
func (l *Log) Slice(span *Span, from int64, limit Position, maxBytes int, atLeastOne bool) error {
	if from < l.LogStart() {
		return ErrOutOfRange
	}
	span.First, span.Next = from, from
	left := int64(max(maxBytes, 0))
	for from < limit.Offset && (left > 0 || span.Bytes == 0) {
		s, next, err := l.hold(from)
		if err != nil {
			return err
		}
		if s == nil || s.base > limit.Segment {
			break
		}
		span.held = append(span.held, s)
		end, last := s.size.Load(), s.base == limit.Segment
		if last {
			end = limit.Bytes
		}
		if !last && next == nil {
			return fmt.Errorf("%s: no segment with base offset %d", l.o.Name, limit.Segment)
		}
		got, reached, err := l.sliceSegment(s, span, from, end, left, atLeastOne && span.Bytes == 0)
		if errors.Is(err, errBadHeader) && !errors.Is(err, ErrDamaged) {
			return l.damaged(s.base, -1, from, err) // the message has the byte
		}
		if err != nil {
			return err
		}
		if reached >= 0 { // cut by maxBytes
			span.Next = max(span.Next, reached)
			break
		}
		if left -= int64(got); last {
			span.Next = limit.Offset
			break
		}
		from = next.base
		span.Next = from
	}
	return nil
}

// sliceSegment adds a section of one segment. reached is -1 when it goes up to end, else the offset behind the cut.
func (l *Log) sliceSegment(s *segment, span *Span, from, end, left int64, must bool) (got int, reached int64, err error) {
	file, err := s.handle()
	if err != nil {
		return 0, 0, err
	}
	w := newWalker(file, end)
	defer w.done()
	pos, err := l.retry(s, func() (pos int64, err error) { return s.locate(w, from) })
	if err == io.EOF { // nothing at or behind from: a gap before the next segment
		return 0, -1, nil
	}
	if err != nil {
		return 0, 0, err
	}
	to := end
	reached = -1
	if end-pos > left {
		if to, err = l.retry(s, func() (int64, error) {
			end, next, err := s.cut(w, pos, pos+left)
			reached = next
			return end, err
		}); err != nil {
			return 0, 0, err
		}
		if to == pos && must {
			head, size, err := w.at(pos)
			if err != nil {
				return 0, 0, err
			}
			to, reached = pos+size, head.LastOffset()+1
			if to == end {
				reached = -1
			}
		}
	}
	if to > pos {
		good, next, err := l.verify(s, file, from, pos, to)
		if err != nil {
			return 0, 0, err
		}
		if good < to {
			to, reached = good, next
		}
		span.Sections = append(span.Sections, Section{File: file, Offset: pos, Len: int(to - pos)})
		span.Bytes += int(to - pos)
	}
	return int(to - pos), reached, nil
}

// Locate gives the place before the batch that holds an offset below limit, or the first batch behind the offset; limit itself
// when there is none. An offset that is deleted, also while this looks for it, is taken for the log start.
func (l *Log) Locate(offset int64, limit Position) (Position, error) {
	if offset >= limit.Offset {
		return limit, nil
	}
	s, next, offset, err := l.holdFrom(offset, limit.Offset)
	if s == nil || err != nil {
		return limit, err
	}
	end := s.size.Load()
	if s.base == limit.Segment {
		end = limit.Bytes
	}
	at, err := l.locateIn(s, offset, end)
	if err = errors.Join(err, s.release()); err != nil {
		return Position{}, err
	}
	if at.Bytes == end && s.base != limit.Segment && next != nil {
		return Position{next.base, next.base, 0}, nil
	}
	return at, nil
}

func (l *Log) locateIn(s *segment, offset, end int64) (Position, error) {
	file, err := s.handle()
	if err != nil {
		return Position{}, err
	}
	w := newWalker(file, end)
	defer w.done()
	pos, err := l.retry(s, func() (int64, error) { return s.locate(w, offset) })
	if err == io.EOF {
		return Position{offset, s.base, end}, nil
	}
	if err != nil {
		return Position{}, err
	}
	head, _, err := w.at(pos)
	if err != nil {
		return Position{}, err
	}
	return Position{head.BaseOffset(), s.base, pos}, nil
}

// hold finds the segment of an offset, takes a reference, and tells the one behind it. nil without an error is the end.
func (l *Log) hold(offset int64) (s, next *segment, err error) {
	for range 100 { // a segment may be deleted between the look and the grip; the list then is a new one
		list := l.list()
		i := find(list, offset)
		if i < 0 && offset < l.LogStart() { // deleted since the caller looked; what is first now is not what was asked for
			return nil, nil, ErrOutOfRange
		}
		i = max(i, 0)
		if list[i].acquire() {
			if i+1 < len(list) {
				next = list[i+1]
			}
			return list[i], next, nil
		}
		if offset < l.LogStart() {
			return nil, nil, ErrOutOfRange
		}
	}
	return nil, nil, fmt.Errorf("%s: the segment of offset %d is closed", l.o.Name, offset)
}

// holdFrom is hold for a caller who wants what is left of the log from an offset on: what is deleted meanwhile is passed over.
// at is the offset that s was found by; s is nil when nothing is left below limit.
func (l *Log) holdFrom(from, limit int64) (s, next *segment, at int64, err error) {
	for from < limit {
		s, next, err := l.hold(from)
		if !errors.Is(err, ErrOutOfRange) {
			return s, next, from, err
		}
		from = max(from, l.LogStart())
	}
	return nil, nil, from, nil
}

// retry does a look-up once more when the segment's index turned out not to fit and has been built again.
func (l *Log) retry(s *segment, f func() (int64, error)) (int64, error) {
	v, err := f()
	if !errors.Is(err, errBadIndex) {
		return v, err
	}
	if err := l.rebuild(s, err); err != nil {
		return 0, err
	}
	return f()
}

// Aborted appends to dst the aborted transactions of a span of offsets, sorted by first offset.
func (l *Log) Aborted(dst []isolation.AbortedTxn, from, to int64) ([]isolation.AbortedTxn, error) {
	list := l.list()
	list = list[max(find(list, from), 0):]
	for len(list) > 0 { // most logs have no aborted transaction: they end here, without allocating
		entries, err := l.abortedTxns(list[0])
		if err != nil {
			return dst, err
		}
		if len(entries) > 0 {
			return l.collect(dst, from, to, list)
		}
		list = list[1:]
	}
	return dst, nil
}

func (l *Log) collect(dst []isolation.AbortedTxn, from, to int64, list []*segment) (out []isolation.AbortedTxn, err error) {
	out = isolation.Collect(dst, from, to, func(yield func([]isolation.AbortedTxn) bool) {
		for _, s := range list {
			var entries []isolation.AbortedTxn
			if entries, err = l.abortedTxns(s); err != nil || !yield(entries) {
				return
			}
		}
	})
	return out, err
}

func (l *Log) abortedTxns(s *segment) ([]isolation.AbortedTxn, error) {
	entries, err := s.abortedTxns()
	if !errors.Is(err, errBadIndex) {
		return entries, err
	}
	if err := l.rebuild(s, err); err != nil {
		return nil, err
	}
	return s.abortedTxns()
}

// Replay calls fn for every batch from the log start up to an offset that was the log's end once; the batch is valid during the
// call. Compaction and retention may go on meanwhile: a part of the log is then read as it was before, or is no more.
func (l *Log) Replay(limit int64, fn func(record.Batch) error) error {
	for from := l.LogStart(); ; {
		s, next, at, err := l.holdFrom(from, limit)
		if s == nil || err != nil {
			return err
		}
		err = errors.Join(l.replaySegment(s, at, limit, fn), s.release())
		if err != nil || next == nil {
			return err
		}
		from = max(at, next.base)
	}
}

func (l *Log) replaySegment(s *segment, from, limit int64, fn func(record.Batch) error) error {
	end := s.size.Load() // of whole batches
	file, err := s.handle()
	if err != nil {
		return err
	}
	w := newWalker(file, end)
	defer w.done()
	pos, err := l.retry(s, func() (int64, error) { return s.locate(w, from) })
	if err == io.EOF {
		return nil
	}
	if err != nil {
		return err
	}
	// The checksum says nothing of the offsets, and who replays a log has to have all of it.
	good, next, err := l.verify(s, file, from, pos, end)
	if err == nil && good < end {
		err = l.damaged(s.base, good, next, errors.New("the batch does not check"))
	}
	if err != nil {
		return err
	}
	sc := newScanner(file, pos, end)
	defer sc.done()
	for {
		pos = sc.pos
		b, err := sc.next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = b.CheckCRC()
		}
		if err != nil {
			return l.damaged(s.base, pos, from, err)
		}
		if b.BaseOffset() >= limit {
			return nil
		}
		if err := fn(b); err != nil {
			return err
		}
		from = b.LastOffset() + 1
	}
}

// Segments are the base offsets of the log's segments.
func (l *Log) Segments() []int64 {
	list := l.list()
	out := make([]int64, len(list))
	for i, s := range list {
		out[i] = s.base
	}
	return slices.Clip(out)
}
