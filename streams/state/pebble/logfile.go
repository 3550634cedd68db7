package pebble

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fate decides who hears of a failure: until the database is open, the database;
// from then on whoever takes note, and the database never does.
type fate struct {
	note func(error)
	live atomic.Bool // the database is open
}

// survive is what the database hears.
func (f *fate) survive(err error) error {
	if err == nil || !f.live.Load() {
		return err
	}
	f.note(err)
	return nil
}

// logFile is a write-ahead log; see gate for what becomes of its failures. Pebble
// uses it from one goroutine at a time.
type logFile struct {
	vfs.File
	fate *fate
	lost bool // what is written goes nowhere
}

// survive notes a failure; whatever follows it is lost.
func (f *logFile) survive(err error) error {
	f.lost = f.lost || err != nil
	return f.fate.survive(err)
}

// Write implements vfs.File.
func (f *logFile) Write(b []byte) (int, error) {
	if f.lost {
		return len(b), nil
	}
	n, err := f.File.Write(b)
	if err != nil {
		return len(b), f.survive(err)
	}
	return n, nil
}

// Preallocate implements vfs.File.
func (f *logFile) Preallocate(offset, length int64) error {
	if f.lost {
		return nil
	}
	return f.survive(f.File.Preallocate(offset, length))
}

// Sync implements vfs.File.
func (f *logFile) Sync() error {
	if f.lost {
		return nil
	}
	return f.survive(f.File.Sync())
}

// SyncData implements vfs.File.
func (f *logFile) SyncData() error {
	if f.lost {
		return nil
	}
	return f.survive(f.File.SyncData())
}

// SyncTo implements vfs.File.
func (f *logFile) SyncTo(length int64) (bool, error) {
	if f.lost {
		return true, nil
	}
	full, err := f.File.SyncTo(length)
	return full, f.survive(err)
}

// Close implements vfs.File.
func (f *logFile) Close() error { return f.fate.survive(f.File.Close()) }

// folder is a folder opened to be synced.
type folder struct {
	vfs.File
	fate *fate
}

// Sync implements vfs.File.
func (f *folder) Sync() error { return f.fate.survive(f.File.Sync()) }
