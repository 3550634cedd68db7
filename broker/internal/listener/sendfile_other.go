//go:build !linux

package listener

import (
	"errors"
	"syscall"
)

const canSendfile = false

// sendfile is not used where canSendfile is false.
func sendfile(syscall.RawConn, uintptr, int64, int) error {
	return errors.ErrUnsupported
}
