package commitlog

import (
	"errors"
	"fmt"
	"io"

	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/vfs"
)

// Sendfile looks at no byte, so bytes that this process has never looked at are checked before they are first served: those that
// lay below the checkpoint when the log was opened. What was appended since was validated then, and what lay above was scanned.
// A fetch checks what it is about to serve and no more, so a cold segment of a gigabyte delays nobody, and a reader that goes
// from front to back has each byte checked once.

// verify checks the cold bytes among those from pos to to, both batch boundaries, that are to be served from an offset on, and
// returns how far they may be served: to, or the start of the first batch that does not check, with the offset expected there; if
// that is pos, the error. Beside the checksum it checks what lies outside of it: that each base offset follows from the batch
// before, beginning at the nearest place where the offset is known, and that the leader epoch is the one of its time.
func (l *Log) verify(s *segment, file vfs.File, offset, pos, to int64) (good, next int64, err error) {
	switch d := s.condemned(pos, to); {
	case d == nil:
	case d.Position == pos:
		return pos, 0, d
	default:
		good, next, err = l.verifyCold(s, file, offset, pos, d.Position)
		if err == nil && good == d.Position {
			next = d.Offset
		}
		return good, next, err
	}
	return l.verifyCold(s, file, offset, pos, to)
}

func (l *Log) verifyCold(s *segment, file vfs.File, offset, pos, to int64) (good, next int64, err error) {
	if pos >= s.cold {
		return to, 0, nil
	}
	done := s.checked.Load()
	if done == nil {
		done = &checked{0, s.base}
	}
	end := min(to, s.cold)
	if done.pos >= end {
		return to, 0, nil
	}
	start, last := *done, int64(-1)
	if pos > done.pos {
		e, err := s.entryAt(file, offset)
		if err != nil {
			return pos, 0, err
		}
		if int64(e.position) > done.pos {
			start, last = checked{int64(e.position), -1}, s.base+int64(e.relative)
		}
		if start, err = l.chain(s, file, start, last, pos); err != nil {
			return pos, 0, err
		}
	}
	reached, err := l.verifyRange(s, file, start, last, end)
	switch {
	case err == nil:
		if start == *done {
			s.checked.Store(&reached)
		}
		return to, 0, nil
	case !errors.Is(err, ErrDamaged):
		return pos, 0, err
	}
	if reached.pos > pos {
		return reached.pos, reached.next, nil
	}
	return pos, 0, err
}

// entryAt is startAt among the cold bytes.
func (s *segment) entryAt(file vfs.File, offset int64) (offsetEntry, error) {
	w := newWalker(file, s.cold)
	defer w.done()
	return s.startAt(w, offset)
}

// chain goes from a place to a batch start further on, by the headers alone, and tells which offset must come there. What the
// batches between hold is not the question.
func (l *Log) chain(s *segment, file vfs.File, at checked, last, to int64) (checked, error) {
	w := newWalker(file, s.cold)
	defer w.done()
	for at.pos < to {
		head, size, err := w.at(at.pos)
		if err == nil {
			err = l.checkPlace(head, at.next, last)
		}
		if err != nil {
			return at, l.damaged(s.base, at.pos, max(at.next, s.base), err)
		}
		at = checked{at.pos + size, head.LastOffset() + 1}
	}
	return at, nil
}

// verifyRange checks the batches from a place to end, and returns how far it came. Without a known next offset the first batch
// must end at last.
func (l *Log) verifyRange(s *segment, file vfs.File, at checked, last, end int64) (reached checked, err error) {
	sc := newScanner(file, at.pos, end)
	defer sc.done()
	leap := checked{-1, 0} // the place of the batch before, if it left a gap
	for {
		at.pos = sc.pos
		b, err := sc.next()
		if err == io.EOF {
			return at, nil
		}
		if err != nil && !errors.Is(err, errBadHeader) {
			return at, err
		}
		if err == nil {
			err = b.CheckCRC()
		}
		if err == nil {
			err = l.checkPlace(b, at.next, last)
		}
		if err == nil && s.coldEnd > 0 {
			err = below(b, s.coldEnd)
		}
		if err != nil {
			if leap.pos >= 0 && errors.Is(err, errOffsets) {
				at = leap // of a batch that leaps and one that falls back behind it, the first has the wrong offset
			}
			return at, l.damaged(s.base, at.pos, max(at.next, s.base), err)
		}
		if leap = (checked{-1, 0}); at.next >= 0 && b.BaseOffset() > at.next {
			leap = at
		}
		at.next = b.LastOffset() + 1
	}
}

// below checks that a batch ends before the offset that comes behind the file, or the checked part of it.
func below(b record.Batch, end int64) error {
	if b.LastOffset() >= end {
		return fmt.Errorf("%w: it has offsets %d to %d, and %d begins behind it", errOffsets, b.BaseOffset(), b.LastOffset(), end)
	}
	return nil
}

// errOffsets says that a batch does not stand where its offsets belong.
var errOffsets = errors.New("the batch is out of its place")

// checkPlace checks what the checksum does not cover: the base offset, which must be next or, where that is not known, make the
// batch end at last, and the leader epoch.
func (l *Log) checkPlace(b record.Batch, next, last int64) error {
	base := b.BaseOffset()
	gap := base > next && !l.mayGap(next)
	if next >= 0 && (base < next || gap) || next < 0 && b.LastOffset() != last {
		return fmt.Errorf("%w: it has offsets %d to %d, expected is %d", errOffsets, base, b.LastOffset(), max(next, last))
	}
	return l.checkEpoch(b)
}
