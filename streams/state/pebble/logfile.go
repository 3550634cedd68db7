package pebble

import "github.com/cockroachdb/pebble/v2/vfs"

// logFile is a write-ahead log; see gate for what becomes of its failures. Pebble
// uses it from one goroutine at a time.
type logFile struct {
	vfs.File
	gate *gate
	lost bool // what is written goes nowhere
}

// survive keeps a failure from the database.
func (f *logFile) survive(err error) error {
	if err == nil || !f.gate.live.Load() {
		return err
	}
	f.lost = true
	f.gate.note(err)
	return nil
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
func (f *logFile) Close() error { return f.survive(f.File.Close()) }

// folder is a folder opened to be synced.
type folder struct {
	vfs.File
	gate *gate
}

// Sync implements vfs.File.
func (f *folder) Sync() error {
	err := f.File.Sync()
	if err != nil && f.gate.live.Load() {
		f.gate.note(err)
		return nil
	}
	return err
}
