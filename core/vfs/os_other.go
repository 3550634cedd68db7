//go:build !linux

package vfs

import "os"

// syncData is fsync(2), on macOS F_FULLFSYNC: the runtime chooses.
func syncData(f *os.File) error { return f.Sync() }
