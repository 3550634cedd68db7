package commitlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/millrace/millrace/broker/internal/flush"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/vfs"
	"github.com/millrace/millrace/txn/isolation"
)

// floorOffset returns the last offset entry whose batch ends at relative or before; the zero entry when there is none. The
// caller has a reference.
func (s *segment) floorOffset(relative int64) (offsetEntry, error) {
	if mem := s.mem.Load(); mem != nil {
		list := mem.offsets.view()
		i, _ := floor(len(list), func(i int) (bool, error) { return int64(list[i].relative) <= relative, nil }) // never fails
		if i < 0 {
			return offsetEntry{}, nil
		}
		return list[i], nil
	}
	return s.searchOffsets(func(e offsetEntry) bool { return int64(e.relative) <= relative })
}

// floorPosition returns the last offset entry whose batch starts at pos or before; the zero entry when there is none.
func (s *segment) floorPosition(pos int64) (offsetEntry, error) {
	if mem := s.mem.Load(); mem != nil {
		list := mem.offsets.view()
		i, _ := floor(len(list), func(i int) (bool, error) { return int64(list[i].position) <= pos, nil }) // never fails
		if i < 0 {
			return offsetEntry{}, nil
		}
		return list[i], nil
	}
	return s.searchOffsets(func(e offsetEntry) bool { return int64(e.position) <= pos })
}

// floorTime returns the last time entry with a timestamp not above ts; ok is false when there is none.
func (s *segment) floorTime(ts int64) (found timeEntry, ok bool, err error) {
	if mem := s.mem.Load(); mem != nil {
		list := mem.times.view()
		i, _ := floor(len(list), func(i int) (bool, error) { return list[i].timestamp <= ts, nil }) // never fails
		if i < 0 {
			return timeEntry{}, false, nil
		}
		return list[i], true, nil
	}
	err = s.withIndex(timeSuffix, timeEntrySize, func(f vfs.File, n int) error {
		var p [timeEntrySize]byte
		read := func(i int) (timeEntry, error) {
			_, err := f.ReadAt(p[:], int64(i)*timeEntrySize)
			return parseTimeEntry(p[:]), err
		}
		i, err := floor(n, func(i int) (bool, error) { e, err := read(i); return e.timestamp <= ts, err })
		if err == nil && i >= 0 {
			ok = true
			found, err = read(i)
		}
		return err
	})
	return found, ok, err
}

// withIndex opens an index file of a finished segment for the length of a call, so that old segments hold no descriptors.
// A missing file, or one that is cut inside an entry, is errBadIndex.
func (s *segment) withIndex(suffix string, entrySize int64, f func(file vfs.File, n int) error) error {
	file, err := s.openRead(suffix)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", errBadIndex, err)
	}
	if err != nil {
		return err
	}
	defer file.Close() // read only: nothing to lose
	size, err := file.Size()
	if err != nil {
		return err
	}
	if size%entrySize != 0 {
		return fmt.Errorf("%w: %s has %d bytes, no multiple of %d", errBadIndex, s.path(suffix), size, entrySize)
	}
	return f(file, int(size/entrySize))
}

// greatestTime is the greatest timestamp of the segment's batches, noTimestamp when none has one.
func (s *segment) greatestTime() (int64, error) {
	if ts := s.maxTime.Load(); ts != unknownTime {
		return ts, nil
	}
	e, any, err := s.lastTime()
	if err == nil && any {
		err = s.checkTime(e)
	}
	if err != nil {
		return 0, err
	}
	ts := int64(noTimestamp)
	if any {
		ts = e.timestamp
	}
	s.maxTime.CompareAndSwap(unknownTime, ts)
	return ts, nil
}

// lastTime is the last entry of the time index file.
func (s *segment) lastTime() (e timeEntry, any bool, err error) {
	err = s.withIndex(timeSuffix, timeEntrySize, func(f vfs.File, n int) error {
		if n == 0 {
			return nil
		}
		var p [timeEntrySize]byte
		_, err := f.ReadAt(p[:], int64(n-1)*timeEntrySize)
		e, any = parseTimeEntry(p[:]), true
		return err
	})
	return e, any, err
}

// checkTime compares an entry of the time index, which has no checksum, with the batch that it speaks of: errBadIndex when there is
// no such batch. It opens the log for itself, as it is asked of old segments too, which hold no descriptors.
func (s *segment) checkTime(e timeEntry) error {
	file, err := s.openRead(logSuffix)
	if err != nil {
		return err
	}
	defer file.Close() // read only: nothing to lose
	w := newWalker(file, s.size.Load())
	defer w.done()
	switch does, err := s.bears(w, e); {
	case err == io.EOF, err == nil && !does:
		return s.badTime(e)
	case errors.Is(err, errBadHeader): // it is the log that is damaged, and whoever reads it will say so
		return nil
	default:
		return err
	}
}

// bears tells whether the batch that a time entry speaks of has its timestamp; io.EOF when it lies beyond the walker's end.
func (s *segment) bears(w *walker, e timeEntry) (bool, error) {
	pos, err := s.locate(w, s.base+int64(e.relative))
	if err != nil {
		return false, err
	}
	head, _, err := w.at(pos)
	if err != nil {
		return false, err
	}
	return head.LastOffset() == s.base+int64(e.relative) && head.MaxTimestamp() == e.timestamp, nil
}

// timesFit tells whether the last time entry, as it was loaded up to a checkpoint, is true: the greatest timestamp comes from it.
func (s *segment) timesFit(cp flush.Checkpoint) bool {
	list := s.mem.Load().times.view()
	if len(list) == 0 {
		return true
	}
	file, err := s.handle()
	if err != nil {
		return false
	}
	w := newWalker(file, cp.Position)
	defer w.done()
	does, err := s.bears(w, list[len(list)-1])
	return does || err != nil && err != io.EOF
}

func (s *segment) badTime(e timeEntry) error {
	return fmt.Errorf("%w: %s has timestamp %d at offset %d", errBadIndex, s.path(timeSuffix), e.timestamp, s.base+int64(e.relative))
}

// abortedTxns is the segment's transaction index.
func (s *segment) abortedTxns() ([]isolation.AbortedTxn, error) {
	if mem := s.mem.Load(); mem != nil {
		return mem.txns.view(), nil
	}
	if list := s.aborted.Load(); list != nil {
		return *list, nil
	}
	list, err := s.readTxns(-1)
	if err != nil {
		return nil, err
	}
	s.aborted.Store(&list)
	return list, nil
}

// locate finds the first batch below end that reaches to offset or beyond: where it starts, and with it the walker stands
// there. At the end of the segment it gives io.EOF and pos is end. The index entry that the search begins at is compared
// with the batch it points to, so an index that does not fit is found when it matters: errBadIndex.
func (s *segment) locate(w *walker, offset int64) (pos int64, err error) {
	e, err := s.startAt(w, offset)
	if err != nil {
		return 0, err
	}
	pos = int64(e.position)
	for {
		head, size, err := w.at(pos)
		if err == io.EOF {
			return w.end, io.EOF
		}
		if err != nil {
			return 0, fmt.Errorf("%s: %w", s.path(logSuffix), err)
		}
		if head.LastOffset() >= offset {
			return pos, nil
		}
		pos += size
	}
}

// startAt is the last offset entry at or before an offset, compared with its batch; the zero entry when there is none. A wrong entry
// of a file is errBadIndex. One that is in memory came from the file of the segment that is appended to: it is passed over, as
// those indexes can not be built again while they grow.
func (s *segment) startAt(w *walker, offset int64) (offsetEntry, error) {
	e, err := s.floorOffset(offset - s.base)
	for err == nil && e != (offsetEntry{}) {
		head, _, herr := w.at(int64(e.position))
		if herr == io.EOF || !s.refutes(e, head, herr) {
			return e, nil
		}
		if s.mem.Load() == nil {
			return offsetEntry{}, s.badEntry(e)
		}
		e, err = s.floorOffset(int64(e.relative) - 1)
	}
	return e, err
}

// refutes tells whether what was found at an index entry's position, a header or an error, shows that the entry is wrong.
func (s *segment) refutes(e offsetEntry, head record.Batch, err error) bool {
	if err != nil {
		return errors.Is(err, errBadHeader)
	}
	return head.LastOffset() != s.base+int64(e.relative)
}

func (s *segment) badEntry(e offsetEntry) error {
	return fmt.Errorf("%w: %s has offset %d at byte %d", errBadIndex, s.path(indexSuffix), s.base+int64(e.relative), e.position)
}

// cut finds the end of the last whole batch that ends at byte to or before, from a batch start on; that is from itself when
// the first batch is longer. next is an offset above all batches before the cut and not above the one behind it, or -1 at the
// walker's end.
func (s *segment) cut(w *walker, from, to int64) (end, next int64, err error) {
	e, err := s.floorPosition(to)
	if err != nil {
		return 0, 0, err
	}
	pos := max(from, int64(e.position))
	next = -1
	for check := pos > from; ; check = false {
		head, size, err := w.at(pos)
		switch {
		case err == io.EOF:
			return w.end, -1, nil
		case check && s.refutes(e, head, err): // the index, or the log there, is damaged: go without the short cut
			pos = from
			continue
		case errors.Is(err, errBadHeader) && next >= 0: // the next fetch begins there, and gets the error
			return pos, next, nil
		case err != nil:
			return 0, 0, fmt.Errorf("%s: %w", s.path(logSuffix), err)
		case pos+size > to:
			return pos, head.BaseOffset(), nil
		}
		pos, next = pos+size, head.LastOffset()+1
	}
}
