package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// fullErrors are the system's names for what NoRoom tells.
var fullErrors = []error{windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL, windows.ERROR_TOO_MANY_OPEN_FILES}

// syncDir does nothing: NTFS journals its names and offers no call to wait for it.
func syncDir(*os.File) error { return nil }

// lockFile locks the first byte of the file; the lock ends with the handle.
func lockFile(f *os.File) error {
	err := windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrLocked
	}
	return err
}
