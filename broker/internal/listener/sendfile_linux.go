package listener

import (
	"fmt"
	"io"
	"syscall"
)

const canSendfile = true

// sendfile sends n bytes of the file at off. The offset is explicit: the file's
// cursor is shared by all readers and must not be used. The connection's write
// deadline holds.
func sendfile(raw syscall.RawConn, file uintptr, off int64, n int) error {
	for n > 0 {
		var sent int
		var err error
		werr := raw.Write(func(fd uintptr) bool {
			sent, err = syscall.Sendfile(int(fd), int(file), &off, n)
			for err == syscall.EINTR {
				sent, err = syscall.Sendfile(int(fd), int(file), &off, n)
			}
			return err != syscall.EAGAIN
		})
		switch {
		case werr != nil:
			return werr
		case err != nil:
			return fmt.Errorf("sendfile of %d bytes at %d: %w", n, off, err)
		case sent == 0:
			return fmt.Errorf("sendfile of %d bytes at %d: %w", n, off, io.ErrUnexpectedEOF)
		}
		n -= sent
	}
	return nil
}
