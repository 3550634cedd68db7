package commitlog

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"

	"github.com/millrace/millrace/broker/internal/flush"
	"github.com/millrace/millrace/core/vfs"
)

// keepSnapshots is how many snapshots inside segments are kept; those at the beginning of a segment live as long as it.
const keepSnapshots = 2

// plans are those that no flush uses: a log that is silent needs none.
var plans = sync.Pool{New: func() any { return new(Sync) }}

// keepSnapshotBytes bounds the buffer that a plan keeps.
const keepSnapshotBytes = 64 << 10

// End is the place up to which Data makes the log durable.
func (p *Sync) End() Position { return p.end }

// Begin plans a flush of everything appended so far. final asks for a checkpoint in any case, for a clean end. The append lock
// is held; Done must follow.
func (l *Log) Begin(final bool) *Sync {
	p := plans.Get().(*Sync)
	*p = Sync{
		l: l, end: l.End(), logs: p.logs[:0], snapshot: p.snapshot[:0],
		dir: l.dirDirty, parent: l.parent, meta: l.metaDirty,
	}
	for _, s := range l.unfinished {
		if s.acquire() {
			p.logs = append(p.logs, s)
		}
	}
	if len(p.logs)+len(l.starts) > 0 { // a roll, which is rare; else nothing is allocated here
		p.finish, p.starts = slices.Clone(p.logs), slices.Clone(l.starts)
	}
	p.active = l.active()
	if p.active.acquire() {
		p.logs = append(p.logs, p.active)
	}
	l.dirDirty, l.parent, l.metaDirty = false, false, false
	p.check = len(p.starts)+len(p.finish) > 0 || l.sinceCheck >= l.o.CheckpointBytes || final && l.checkpoint != l.wouldBe()
	if p.check {
		p.active.noteTime(p.active.mem.Load())
		p.sizes = p.active.counts()
		p.snapshot = l.state.Snapshot(p.snapshot)
		l.sinceCheck = 0
		if l.epochDirty.Swap(false) {
			p.epochs = l.epochs.encode()
		}
	}
	return p
}

// wouldBe is the checkpoint at the log's end. The append lock is held.
func (l *Log) wouldBe() flush.Checkpoint {
	s := l.active()
	c := s.counts()
	return flush.Checkpoint{Offset: l.next, Segment: s.base, Position: s.size.Load(), Index: c.offsets, TimeIndex: c.times, TxnIndex: c.txns}
}

// Data syncs. After an error that is Fatal nobody may believe these files again: the partition goes offline.
func (p *Sync) Data() error {
	l := p.l
	for _, s := range p.logs {
		size := s.size.Load()
		if s == p.active {
			size = p.end.Bytes
		}
		if s.syncedSize >= size {
			continue
		}
		file, err := s.opened()
		if err != nil {
			return err
		}
		if err := file.Sync(); err != nil {
			return &syncError{s.path(logSuffix), err}
		}
		s.syncedSize = size
	}
	if p.meta {
		if err := l.syncMetadata(); err != nil {
			return err
		}
	}
	if p.dir {
		if err := l.at.fs.SyncDir(l.at.dir); err != nil {
			return &syncError{l.at.dir, err}
		}
	}
	if p.parent {
		parent := filepath.Dir(l.at.dir)
		if err := l.at.fs.SyncDir(parent); err != nil {
			return &syncError{parent, err}
		}
	}
	p.durable = true
	return nil
}

func (l *Log) syncMetadata() error {
	f, err := l.at.fs.Open(filepath.Join(l.at.dir, metadataName))
	if err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		err = &syncError{filepath.Join(l.at.dir, metadataName), err}
	}
	return errors.Join(err, f.Close())
}

// Indexes makes a checkpoint, if one is due: it completes the index files of sealed segments, saves those of the active one, the
// producers, and the epochs if they changed. ok tells whether it did. What it
// could not write stays in memory, and the next flush tries again: only a failed fsync is final, and Fatal says so.
func (p *Sync) Indexes() (c flush.Checkpoint, ok bool, err error) {
	if !p.check {
		return c, false, nil
	}
	l := p.l
	if p.epochs != nil {
		if err := vfs.WriteFile(l.at.fs, filepath.Join(l.at.dir, epochsName), p.epochs, false); err != nil {
			return c, false, err
		}
	}
	for _, s := range p.finish {
		if err := s.writeIndexes(s.counts()); err != nil {
			return c, false, err
		}
	}
	for _, s := range p.starts {
		if err := l.writeSnapshot(s.offset, s.snapshot); err != nil {
			return c, false, err
		}
	}
	if err := p.active.writeIndexes(p.sizes); err != nil {
		return c, false, err
	}
	if err := l.writeSnapshot(p.end.Offset, p.snapshot); err != nil {
		return c, false, err
	}
	if err := l.at.fs.SyncDir(l.at.dir); err != nil {
		return c, false, &syncError{l.at.dir, err}
	}
	p.made = flush.Checkpoint{
		Offset: p.end.Offset, Segment: p.end.Segment, Position: p.end.Bytes,
		Index: p.sizes.offsets, TimeIndex: p.sizes.times, TxnIndex: p.sizes.txns,
	}
	p.completed = true
	return p.made, true, nil
}

// Fatal tells whether an error of Data or Indexes means that the partition can't go on. A sync that was not tried, as there was no
// descriptor for it, has lost nothing.
func Fatal(err error) bool {
	var s *syncError
	return errors.As(err, &s) && !vfs.NoRoom(s.err) || errors.Is(err, ErrBroken)
}

// Done ends the flush; Data and Indexes have run, or failed. Nothing of p may be used after it. The append lock is held.
func (p *Sync) Done() error {
	defer p.free()
	l := p.l
	var err error
	for i, s := range p.logs {
		err = errors.Join(err, s.release())
		p.logs[i] = nil
	}
	if !p.durable {
		l.dirDirty, l.parent, l.metaDirty = l.dirDirty || p.dir, l.parent || p.parent, l.metaDirty || p.meta
	}
	if !p.completed {
		if p.epochs != nil {
			l.epochDirty.Store(true)
		}
		if p.check {
			l.sinceCheck = max(l.sinceCheck, l.o.CheckpointBytes)
		}
		return err
	}
	l.checkpoint = p.made
	l.unfinished = slices.DeleteFunc(l.unfinished, func(s *segment) bool {
		if !slices.Contains(p.finish, s) {
			return false
		}
		s.mem.Store(nil)
		return true
	})
	l.starts = slices.DeleteFunc(l.starts, func(s start) bool {
		if s.offset > p.made.Offset {
			return false
		}
		l.safe = max(l.safe, s.offset)
		return true
	})
	l.giveUp()
	return err
}

func (p *Sync) free() {
	if cap(p.snapshot) > keepSnapshotBytes {
		p.snapshot = nil
	}
	*p = Sync{logs: p.logs[:0], snapshot: p.snapshot[:0]}
	plans.Put(p)
}

// writeSnapshot makes a snapshot durable but for its name.
func (l *Log) writeSnapshot(offset int64, data []byte) error {
	if err := vfs.WriteFile(l.at.fs, l.snapshotPath(offset), data, false); err != nil {
		return err
	}
	if i, have := slices.BinarySearch(l.snapshots, offset); !have {
		l.snapshots = slices.Insert(l.snapshots, i, offset)
	}
	return nil
}

// DropSnapshots removes those that recovery will not ask for any more, after a checkpoint was noted in the journal. As the note may
// be lost in a power cut, what stays must be enough without it: the snapshot of every segment's beginning, for the oldest
// segment at least one from before it, and the newest ones inside segments. The flush calls it.
func (l *Log) DropSnapshots() error {
	list := l.list()
	inside, first := 0, false
	var errs error
	for i := len(l.snapshots) - 1; i >= 0; i-- {
		offset := l.snapshots[i]
		at := find(list, offset)
		oldest := !first && offset <= list[0].base
		first = first || oldest
		if oldest || at >= 0 && list[at].base == offset {
			continue
		}
		if inside++; at >= 0 && inside <= keepSnapshots {
			continue
		}
		if err := l.at.fs.Remove(l.snapshotPath(offset)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = errors.Join(errs, fmt.Errorf("%s: %w", l.o.Name, err))
			continue
		}
		l.snapshots = slices.Delete(l.snapshots, i, i+1)
	}
	return errs
}
