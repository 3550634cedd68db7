package commitlog

import (
	"errors"
	"fmt"
	"io/fs"
)

// Doomed are the segments that came off the list. Their files are removed in two steps, both outside of the append lock: Bury
// renames them or, without a delay, deletes them as soon as nobody reads them; [Log.Exhume] deletes what has lain long enough.
// A crash in between leaves files below the log start or with deletedSuffix, and the next opening removes both.
type Doomed struct {
	l       *Log
	list    []*segment
	delayMs int64
}

// Doomed takes over the segments that came off the list since the last call. The append lock is held.
func (l *Log) Doomed() Doomed {
	d := Doomed{l, l.doomed, l.Config().FileDeleteDelayMs}
	l.doomed = nil
	return d
}

// Bury removes the segments' files from the names that they had. Readers who hold a segment go on.
func (d Doomed) Bury(nowMs int64) error {
	var errs error
	for _, s := range d.list {
		if d.delayMs > 0 {
			s.buried.Store(true) // before the first rename: readers look for both names then
			errs = errors.Join(errs, s.rename(deletedSuffix))
			d.l.graves.add(grave{s, addMs(nowMs, d.delayMs)})
		}
		s.gone.Store(true)
		errs = errors.Join(errs, s.release())
	}
	if errs != nil {
		return fmt.Errorf("%s: files below the log start: %w", d.l.o.Name, errs)
	}
	return nil
}

// Exhume deletes the files of buried segments whose time has come and which nobody reads any more.
func (l *Log) Exhume(nowMs int64) error {
	var errs error
	for _, s := range l.graves.due(nowMs) {
		if err := s.deleteBuried(); err != nil {
			errs = errors.Join(errs, err)
			l.graves.add(grave{s, nowMs}) // the next round tries again
		}
	}
	if errs != nil {
		return fmt.Errorf("%s: files of deleted segments: %w", l.o.Name, errs)
	}
	return nil
}

// Buried is the number of segments whose files wait to be deleted.
func (l *Log) Buried() int {
	l.graves.mu.Lock()
	defer l.graves.mu.Unlock()
	return len(l.graves.list)
}

// rename gives all files of the segment one more suffix.
func (s *segment) rename(suffix string) error {
	for _, own := range allSuffixes {
		if err := s.fs.Rename(s.path(own), s.path(own)+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// deleteBuried removes the files under both names: a rename may have failed.
func (s *segment) deleteBuried() error {
	for _, own := range allSuffixes {
		if err := s.fs.Remove(s.path(own) + deletedSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return s.deleteFiles()
}

// addMs adds without overflow: settings reach up to the greatest int64.
func addMs(a, b int64) int64 {
	if sum := a + b; b < 0 || sum >= a {
		return sum
	}
	return 1<<63 - 1
}
