package commitlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/millrace/millrace/broker/internal/flush"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/vfs"
)

// replay reads everything from the checkpoint on (or from the newest snapshot before it), checks it, and derives from it what
// the log keeps beside the batches.
func (r *recovery) replay() error {
	l := r.l
	cp := r.point.Checkpoint
	list := l.list()
	if len(list) > 0 && find(list, cp.Offset) < 0 {
		cp = flush.Checkpoint{} // deleted since: begin at the first segment
	}
	r.next = r.from
	for i, s := range list {
		end := int64(-1) // unknown: s is the last
		if i+1 < len(list) {
			end = list[i+1].base
		}
		s.coldEnd = max(end, 0)
		if end >= 0 && end <= min(r.from, cp.Offset) {
			if err := r.keep(s); err != nil {
				return err
			}
			r.next = end
			continue
		}
		if s.base > l.safe && s.base >= r.from {
			l.starts = append(l.starts, start{s.base, l.state.Snapshot(nil)})
		}
		cut, err := r.segment(s, cp)
		if err != nil {
			return err
		}
		if end >= 0 && !cut {
			if cut, err = r.joint(s, end); err != nil {
				return err
			}
		}
		if cut {
			return r.drop(list[i+1:])
		}
	}
	return nil
}

// joint looks whether the segment behind s begins where s ends; cut tells that it does not and may be dropped. Only compaction
// leaves gaps, and only in what is durable.
func (r *recovery) joint(s *segment, begin int64) (cut bool, err error) {
	switch {
	case r.next == begin:
		return false, nil
	case r.next > begin && begin < r.known, r.next < min(begin, r.known) && !r.l.mayGap(r.next):
		return false, r.damage(fileName(s.base, logSuffix), s.size.Load(), r.next,
			"the segment ends here, the next one begins at offset %d", begin)
	}
	return r.next > begin || r.next >= r.known, nil
}

// keep takes a segment as it is: finished before the checkpoint. Only what is plainly missing is made again.
func (r *recovery) keep(s *segment) error {
	s.cold = s.size.Load()
	if r.names[fileName(s.base, indexSuffix)] && r.names[fileName(s.base, timeSuffix)] {
		return nil
	}
	return r.l.rebuild(s, fs.ErrNotExist)
}

// segment replays one segment, from the checkpoint if that lies in it. cut tells that it ended in a torn tail.
func (r *recovery) segment(s *segment, cp flush.Checkpoint) (cut bool, err error) {
	l := r.l
	pos, indexed := int64(0), s.base // batches before indexed are in the indexes
	switch {
	case s.base > cp.Segment || cp == flush.Checkpoint{}:
		s.fresh()
	case s.base < cp.Segment:
		if err := r.keep(s); err != nil {
			return false, err
		}
		indexed = cp.Offset
	case s.size.Load() < cp.Position:
		return false, r.damage(fileName(s.base, logSuffix), s.size.Load(), cp.Offset,
			"the file has %d bytes, %d were durable", s.size.Load(), cp.Position)
	case s.load(cp) && s.timesFit(cp):
		indexed = cp.Offset
		if r.from == cp.Offset {
			pos = cp.Position
		}
	default:
		l.logger.Warn("indexes do not fit the checkpoint and are built again", "partition", l.o.Name, "segment", s.base)
		s.fresh()
		if r.from > s.base {
			if err := r.stateAt(s.base); err != nil {
				return false, err
			}
		}
	}
	if r.next, s.cold = s.base, pos; pos > 0 {
		r.next, s.coldEnd = cp.Offset, cp.Offset
	}
	if s.mem.Load() != nil {
		l.unfinished = append(l.unfinished, s)
	}
	return r.scan(s, pos, indexed)
}

// stateAt goes back to the state at the beginning of a segment, by its snapshot or by replaying what stands before it.
func (r *recovery) stateAt(base int64) error {
	l := r.l
	list := l.list()
	first := max(find(list, base), 0)
	l.state, r.from = l.o.NewState(), base
	for ; first >= 0; first-- {
		data, err := vfs.ReadFile(l.at.fs, l.snapshotPath(list[first].base))
		if err == nil && l.state.Load(data) == nil {
			break
		}
		l.state = l.o.NewState()
	}
	for _, s := range list[max(first, 0):max(find(list, base), 0)] {
		if err := l.replayOne(s, func(b record.Batch, _ int64) error {
			_, _, err := l.state.Replay(b)
			return err
		}); err != nil {
			return fmt.Errorf("%s: %w", l.o.Name, err)
		}
	}
	return nil
}

// scan checks the batches of a segment from pos on. The first that does not check is damage below the known durable offset,
// a torn tail above it.
func (r *recovery) scan(s *segment, pos, indexed int64) (cut bool, err error) {
	l := r.l
	file, err := s.handle()
	if err != nil {
		return false, fmt.Errorf("%s: %w", l.o.Name, err)
	}
	sc := newScanner(file, pos, s.size.Load())
	defer sc.done()
	for {
		pos := sc.pos
		b, err := sc.next()
		if err == io.EOF {
			return false, nil
		}
		if err != nil && !errors.Is(err, errBadHeader) {
			return false, fmt.Errorf("%s: %s: %w", l.o.Name, s.path(logSuffix), err)
		}
		if err == nil {
			err = r.check(b)
		}
		if err != nil {
			if r.next < r.known {
				return false, r.damage(fileName(s.base, logSuffix), pos, r.next, "%v", err)
			}
			return true, r.truncate(s, pos, err)
		}
		if err := r.take(s, b, pos, indexed); err != nil {
			return false, err
		}
	}
}

// check tells whether a batch can stand where it was found.
func (r *recovery) check(b record.Batch) error {
	if err := b.CheckCRC(); err != nil {
		return err
	}
	base := b.BaseOffset()
	gap := base > r.next && !(r.l.mayGap(r.next) && base <= r.known) // only compaction leaves gaps, and only in what is durable
	if base < r.next || b.LastOffsetDelta() < 0 || gap {
		return fmt.Errorf("the batch has base offset %d and last offset %d, expected is %d", base, b.LastOffset(), r.next)
	}
	return nil
}

// take accepts a batch.
func (r *recovery) take(s *segment, b record.Batch, pos, indexed int64) error {
	l := r.l
	r.next = b.LastOffset() + 1
	if n := len(r.doubts); r.next > r.known && (n == 0 || r.doubts[n-1].s != s) {
		r.doubts = append(r.doubts, doubt{s, pos})
	}
	if l.epochs.assign(b.LeaderEpoch(), b.BaseOffset()) {
		l.epochDirty.Store(true)
	} else if l.compareEpoch(b) != nil {
		s.cold, s.coldEnd = s.size.Load(), 0 // the file or a header is wrong: who serves this segment finds out which
	}
	fresh := b.BaseOffset() >= indexed && s.mem.Load() != nil
	if fresh {
		s.note(b, pos, l.Config().IndexIntervalBytes)
	}
	if b.BaseOffset() < r.from {
		return nil
	}
	a, aborted, err := l.state.Replay(b)
	if err != nil {
		return fmt.Errorf("%s: %s at byte %d: %w", l.o.Name, s.path(logSuffix), pos, err)
	}
	if aborted && fresh {
		s.mem.Load().txns.add(a)
	}
	return nil
}

// truncate cuts a torn tail off.
func (r *recovery) truncate(s *segment, pos int64, cause error) error {
	l := r.l
	l.logger.Warn("a torn tail, which no sync had covered, is cut off", "partition", l.o.Name, "segment", s.base,
		"byte", pos, "offset", r.next, "bytes", s.size.Load()-pos, "cause", cause)
	if err := s.openForAppend(); err != nil {
		return fmt.Errorf("%s: %w", l.o.Name, err)
	}
	file, err := s.handle()
	if err == nil {
		err = file.Truncate(pos)
	}
	if err != nil {
		return fmt.Errorf("%s: cut at byte %d: %w", l.o.Name, pos, err)
	}
	s.size.Store(pos)
	s.syncedSize, r.changed = -1, true
	return nil
}

// drop removes the segments behind a cut, newest first: what is left is always a beginning of the log.
func (r *recovery) drop(behind []*segment) error {
	l := r.l
	for _, s := range slices.Backward(behind) {
		l.logger.Warn("a segment behind what is lost is removed", "partition", l.o.Name, "segment", s.base, "bytes", s.size.Load())
		if err := s.deleteFiles(); err != nil {
			return fmt.Errorf("%s: %w", l.o.Name, err)
		}
	}
	list := l.list()
	list = slices.Clone(list[:len(list)-len(behind)])
	l.segments.Store(&list)
	r.changed = r.changed || len(behind) > 0
	return nil
}
