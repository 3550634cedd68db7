package listener

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
)

// copyBelow is the size under which a file section is read and sent with the
// bytes around it: one gathered write is cheaper than a sendfile of its own.
const copyBelow = 64 << 10

// copyChunk is the buffer for sections that can not go by sendfile.
const copyChunk = 256 << 10

// errClose ends a connection because an answer asks for it.
var errClose = errors.New("connection closed by the answer to a request")

// gather writes answers to one connection, everything that is ready in as few
// system calls as possible. It is used by one goroutine at a time.
type gather struct {
	conn    net.Conn
	timeout time.Duration   // for the peer to take the next piece
	raw     syscall.RawConn // nil when sendfile is not possible
	bufs    net.Buffers     // bytes to go before the next section
	vec     net.Buffers     // bufs' backing, kept because WriteTo consumes it
	copy    []byte          // small sections, read; its parts are in bufs
}

func newGather(nc net.Conn) *gather {
	g := &gather{conn: nc}
	if tcp, ok := nc.(*net.TCPConn); ok && canSendfile {
		// Without the raw connection sections are copied.
		g.raw, _ = tcp.SyscallConn()
	}
	return g
}

// send writes the answers of a batch and releases them, written or not.
func (g *gather) send(batch []*slot, timeout time.Duration) (err error) {
	defer func() {
		for _, s := range batch {
			if s.answer != nil {
				s.answer.Release()
				s.answer = nil
			}
		}
		clear(g.vec)
		g.vec, g.bufs, g.copy = g.vec[:0], nil, g.copy[:0]
		if cap(g.copy) > copyChunk {
			g.copy = nil
		}
	}()
	g.timeout = timeout
	for _, s := range batch {
		a := s.answer
		switch {
		case a == nil:
		case a.Close:
			if err := g.flush(); err != nil {
				return err
			}
			return errClose
		default:
			if err := g.add(a); err != nil {
				return err
			}
		}
	}
	return g.flush()
}

// add puts one answer into the vector, sending what precedes a large section.
func (g *gather) add(a *Answer) error {
	binary.BigEndian.PutUint32(a.Buf, uint32(a.Len()-4))
	from := 0
	for _, c := range a.cuts {
		if c.at > from {
			g.vec = append(g.vec, a.Buf[from:c.at])
			from = c.at
		}
		if err := g.section(c.sec); err != nil {
			return err
		}
	}
	if from < len(a.Buf) {
		g.vec = append(g.vec, a.Buf[from:])
	}
	return nil
}

func (g *gather) section(s Section) error {
	if s.Len < copyBelow && len(g.copy)+s.Len <= copyChunk {
		return g.join(s)
	}
	if err := g.flush(); err != nil {
		return err
	}
	if g.raw != nil {
		if fd, ok := s.File.Fd(); ok {
			return g.sendSection(fd, s)
		}
	}
	return g.copySection(s)
}

// renew gives the peer time for the next piece: a slow peer is served for as long
// as it takes something.
func (g *gather) renew() error { return g.conn.SetWriteDeadline(time.Now().Add(g.timeout)) }

// sendPiece bounds what goes by sendfile under one deadline.
const sendPiece = 4 << 20

// sendSection sends a section by sendfile.
func (g *gather) sendSection(fd uintptr, s Section) error {
	for s.Len > 0 {
		n := min(s.Len, sendPiece)
		if err := g.renew(); err != nil {
			return err
		}
		if err := sendfile(g.raw, fd, s.Offset, n); err != nil {
			return err
		}
		s.Offset += int64(n)
		s.Len -= n
	}
	return nil
}

// join reads a small section into the vector.
func (g *gather) join(s Section) error {
	if g.copy == nil {
		g.copy = make([]byte, 0, copyChunk)
	}
	part := g.copy[len(g.copy) : len(g.copy)+s.Len]
	if err := readSection(s.File, part, s.Offset); err != nil {
		return err
	}
	g.copy = g.copy[:len(g.copy)+s.Len]
	g.vec = append(g.vec, part)
	return nil
}

// copySection sends a section through memory.
func (g *gather) copySection(s Section) error {
	buf := make([]byte, min(s.Len, copyChunk))
	for s.Len > 0 {
		n := min(s.Len, len(buf))
		if err := readSection(s.File, buf[:n], s.Offset); err != nil {
			return err
		}
		if err := g.renew(); err != nil {
			return err
		}
		if _, err := g.conn.Write(buf[:n]); err != nil {
			return err
		}
		s.Offset += int64(n)
		s.Len -= n
	}
	return nil
}

// readSection fills p. The length of the answer is out already, so a section that
// can not be read ends the connection.
func readSection(f SectionFile, p []byte, off int64) error {
	n, err := f.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: %d bytes at %d: %w", errSection, len(p), off, err)
}

// errSection says that it is the log file, and not the connection, that failed.
var errSection = errors.New("reading a log file")

// flush sends the vector.
func (g *gather) flush() error {
	if len(g.vec) == 0 {
		return nil
	}
	if err := g.renew(); err != nil {
		return err
	}
	g.bufs = g.vec
	_, err := g.bufs.WriteTo(g.conn)
	clear(g.vec)
	g.vec, g.copy = g.vec[:0], g.copy[:0]
	return err
}
