package commitlog

import (
	"errors"

	"github.com/millrace/millrace/core/vfs"
)

// Idle tells whether Rest would find a file that nobody has used for a while. It takes no lock.
func (l *Log) Idle() bool {
	for _, s := range l.list() {
		if s.file.Load() != nil && l.at.files.idle(s.used.Load()) {
			return true
		}
	}
	return false
}

// Rest takes the log files that nobody has used for a while from their segments, appends them to dst, and leaves closing them to
// the caller. The next use opens a file again.
//
// Only a file whose bytes are all synced is let go. A sync that fails is told to those who have the file open, and perhaps to
// nobody who opens it later; so whoever must sync bytes has to hold on to the descriptor that he wrote them with. That goes also
// for bytes that an append journal holds, because it is given up when the file is said to be synced. unsynced tells that an idle
// file was kept for that reason: a flush of the log's own files helps.
//
// The append lock is held, and no flush runs.
func (l *Log) Rest(dst []vfs.File) (files []vfs.File, unsynced bool) {
	if l.swap != nil { // the names of the segments in the list lead elsewhere for now
		return dst, false
	}
	for _, s := range l.list() {
		switch {
		case s.file.Load() == nil || !l.at.files.idle(s.used.Load()):
		case s.syncedSize < s.size.Load():
			unsynced = true
		default:
			if f := s.rest(); f != nil {
				dst = append(dst, f)
			}
		}
	}
	return dst, unsynced
}

// shelve ends an opening, with which everything is durable: also what lies before the part that was read, and is in no flush of this
// process. It closes what the opening has left open, if many files are open already: most logs of a broker that starts are silent.
func (l *Log) shelve() error {
	list := l.list()
	for _, s := range list {
		s.syncedSize = s.size.Load()
	}
	if !l.at.files.Crowded() {
		return nil
	}
	var errs error
	for _, s := range list {
		if f := s.rest(); f != nil {
			errs = errors.Join(errs, f.Close())
		}
	}
	return errs
}
