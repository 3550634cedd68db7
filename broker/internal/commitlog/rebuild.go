package commitlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/vfs"
	"github.com/millrace/millrace/txn/isolation"
)

// rebuild makes the indexes of a finished segment anew from its batches: they are derived data, and the log is right. Look-ups
// use the result at once, whether or not it could be written to the files.
func (l *Log) rebuild(s *segment, cause error) error {
	s.rebuilding.Lock()
	defer s.rebuilding.Unlock()
	if s.mem.Load() != nil {
		return nil // somebody was faster
	}
	l.logger.Warn("an index is missing or does not fit its log and is built again",
		"partition", l.o.Name, "segment", s.base, "cause", cause)
	built := newSegment(&l.at, s.base)
	built.fresh()
	if err := l.replayInto(built, s.base); errors.Is(err, errBadHeader) {
		return l.damaged(s.base, -1, s.base, err) // it is not the index that is wrong
	} else if err != nil {
		return fmt.Errorf("%s: indexes of segment %d: %w", l.o.Name, s.base, err)
	}
	mem := built.mem.Load()
	built.noteTime(mem)
	if s.gone.Load() || s.buried.Load() { // its files are on their way out: no new ones
	} else if err := built.replaceIndexes(); err != nil {
		l.logger.Warn("an index built again can't be written", "partition", l.o.Name, "segment", s.base, "err", err)
	}
	s.maxTime.Store(built.maxTime.Load())
	s.mem.Store(mem)
	return nil
}

// replayInto fills the empty indexes of one segment. Which transactions were aborted shows only to who knows the ones that
// were open when the segment began: the snapshot of that moment, or else the segments before it, tell.
func (l *Log) replayInto(built *segment, base int64) error {
	list := l.list()
	last := max(find(list, base), 0)
	state, first := l.o.NewState(), last
	for ; first >= 0; first-- {
		if data, err := vfs.ReadFile(l.at.fs, l.snapshotPath(list[first].base)); err == nil && state.Load(data) == nil {
			break
		}
		state = l.o.NewState()
	}
	for _, s := range list[max(first, 0) : last+1] {
		if err := l.replayOne(s, func(b record.Batch, pos int64) error {
			a, aborted, err := state.Replay(b)
			if err != nil || s.base != base {
				return err
			}
			built.note(b, pos, l.Config().IndexIntervalBytes)
			if aborted {
				built.mem.Load().txns.add(a)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

func (l *Log) snapshotPath(offset int64) string {
	return filepath.Join(l.at.dir, fileName(offset, snapshotSuffix))
}

// replayOne calls fn for every batch of a segment.
func (l *Log) replayOne(s *segment, fn func(b record.Batch, pos int64) error) error {
	if !s.acquire() {
		return ErrOutOfRange
	}
	file, err := s.handle()
	if err != nil {
		return errors.Join(err, s.release())
	}
	sc := newScanner(file, 0, s.size.Load())
	defer sc.done()
	for {
		pos := sc.pos
		b, err := sc.next()
		if err == nil {
			err = fn(b, pos)
		}
		if err == io.EOF {
			return s.release()
		}
		if err != nil {
			return errors.Join(err, s.release())
		}
	}
}

// replaceIndexes writes all index files of a segment, each atomically. The transaction index is durable, with its name, before the
// others come: an opening that finds them takes a missing one for a segment without aborted transactions.
func (s *segment) replaceIndexes() error {
	mem := s.mem.Load()
	var offsets, times, txns []byte
	for _, e := range mem.offsets.view() {
		offsets = appendOffsetEntry(offsets, e)
	}
	for _, e := range mem.times.view() {
		times = appendTimeEntry(times, e)
	}
	for _, a := range mem.txns.view() {
		txns = isolation.AppendEntry(txns, a)
	}
	if len(txns) == 0 { // what is there is wrong
		if err := s.removeTxns(); err != nil {
			return err
		}
	} else {
		if err := errors.Join(vfs.WriteFile(s.fs, s.path(txnSuffix), txns, false), s.writeTxnSum(mem.txns.view())); err != nil {
			return err
		}
		if err := s.fs.SyncDir(s.dir); err != nil {
			return &syncError{s.dir, err}
		}
	}
	return errors.Join(vfs.WriteFile(s.fs, s.path(indexSuffix), offsets, false), vfs.WriteFile(s.fs, s.path(timeSuffix), times, false))
}

// removeTxns removes the transaction index, which a segment without aborted transactions has not.
func (s *segment) removeTxns() error {
	for _, suffix := range []string{txnSuffix, txnSumSuffix} {
		if err := s.fs.Remove(s.path(suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
