//go:build unix

package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// fullErrors are the system's names for what NoRoom tells.
var fullErrors = []error{unix.ENOSPC, unix.EDQUOT, unix.EMFILE, unix.ENFILE}

// syncDir makes a folder's names durable.
func syncDir(d *os.File) error { return d.Sync() }

// lockFile takes an flock(2): it belongs to the open file, so it ends with the
// process however that ends, and a second open in the same process meets it too.
func lockFile(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return ErrLocked
		default:
			return err
		}
	}
}
