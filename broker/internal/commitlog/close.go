package commitlog

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/millrace/millrace/core/vfs"
)

// SetLogStart hides everything below an offset, which must be durable as a log start already and not above the log end, and
// gives up the segments that lie below it as a whole: the active one never. Doomed says what is to be done about their files.
// The append lock is held.
func (l *Log) SetLogStart(offset int64) {
	if offset <= l.LogStart() {
		return
	}
	l.logStart.Store(offset)
	if l.epochs.trim(offset, l.next) {
		l.epochDirty.Store(true)
	}
	l.giveUp()
}

// giveUp drops the segments that lie below the log start as a whole, but only up to a segment whose snapshot is durable: without
// the batches, the snapshot is all that still tells of their producers. The rest goes when a flush has written one. The append
// lock is held.
func (l *Log) giveUp() {
	if l.swap != nil {
		return // its end calls again
	}
	list := l.list()
	keep := max(find(list, l.LogStart()), 0)
	for keep > 0 && list[keep].base > l.safe {
		keep--
	}
	if keep == 0 {
		return
	}
	gone := list[:keep]
	left := slices.Clone(list[keep:])
	l.segments.Store(&left)
	l.doomed = append(l.doomed, gone...)
	l.unfinished = slices.DeleteFunc(l.unfinished, func(s *segment) bool { return slices.Contains(gone, s) })
}

// Close gives the files up; readers who hold some go on reading. It flushes nothing. The append lock is held, no flush runs.
func (l *Log) Close() error {
	var errs error
	for _, s := range append(l.doomed, l.list()...) { // what is doomed lies below the log start, and the next opening removes it
		errs = errors.Join(errs, s.release())
	}
	l.doomed = nil
	if errs != nil {
		return fmt.Errorf("%s: %w", l.o.Name, errs)
	}
	return nil
}

// Delete removes the folder of a closed log. It is renamed first, so that no half of it ever answers to its old name.
func (l *Log) Delete() error {
	return DeleteFolder(l.at.fs, l.at.dir)
}

// DeleteFolder removes the folder of a log that is not open.
func DeleteFolder(fsys vfs.FS, dir string) error {
	gone := dir + DeletedDirSuffix
	if err := vfs.RemoveAll(fsys, gone); err != nil {
		return err
	}
	if err := fsys.Rename(dir, gone); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if err := fsys.SyncDir(filepath.Dir(dir)); err != nil {
		return err
	}
	return vfs.RemoveAll(fsys, gone)
}
