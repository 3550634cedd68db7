package listener

import (
	"context"
	"sync"
)

// Peer is what a service may know about the other side of a connection. It is
// made once per connection and never changes afterwards, so handlers may keep
// it.
type Peer struct {
	// Principal names the authenticated user: "User:ANONYMOUS" on a listener
	// without authentication.
	Principal string
	// Host is the peer's address without the port.
	Host string
	// Listener is the name of the listener the connection came in on. Metadata
	// advertises another address on each.
	Listener string
	// Local is the address of this side of the connection without the port: a way
	// to reach this broker that is known to work.
	Local string

	ctx context.Context
}

// Gone is done when the connection has ended: whoever has parked a request of it
// need not go on.
func (p *Peer) Gone() context.Context { return p.ctx }

// NewPeer returns a peer that belongs to no connection, for callers that drive a
// service directly. Its Gone is ctx.
func NewPeer(ctx context.Context, p Peer) *Peer {
	p.ctx = ctx
	return &p
}

// Frame is one request as it came in, without its length field. The bytes
// belong to the service until it calls Release, which may hand them to the next
// request of any connection. Never calling Release is safe: the garbage
// collector takes the buffer then. That is what a handler does whose decoded
// request aliases the frame.
type Frame struct {
	Bytes []byte
	pool  framePool // nil: the buffer is nobody's
	box   *[]byte
}

// framePool is where released buffers wait for the next frame.
type framePool interface {
	Get() any
	Put(any)
}

// Release gives the buffer back. The frame's bytes must not be touched
// afterwards. A second call does nothing.
func (f *Frame) Release() {
	if f.pool == nil {
		f.Bytes = nil
		return
	}
	*f.box = f.Bytes[:0]
	f.pool.Put(f.box)
	f.pool, f.box, f.Bytes = nil, nil, nil
}

// Section is a piece of a file that goes out as it lies on disk. Fd is the raw
// descriptor for sendfile; when it is not usable the bytes are read through
// ReadAt. The owner of the file keeps it open until the answer is released.
type Section struct {
	File   SectionFile
	Offset int64
	Len    int
}

// SectionFile is the part of vfs.File that a writer needs.
type SectionFile interface {
	ReadAt(p []byte, off int64) (int, error)
	Fd() (uintptr, bool)
}

// Answer is one response on its way out: bytes and file sections in turn. Build
// it with NewAnswer, Buf and Append; the connection adds the length field.
//
// An Answer is owned by its builder until it is handed to the answer function,
// by the connection afterwards. The connection calls Release exactly once, also
// when it dies before the answer left.
type Answer struct {
	// Buf holds all bytes of the answer that do not come from a file. Builders
	// append to it.
	Buf []byte
	// Close says that the connection ends after everything before this answer
	// has left; Buf is ignored. An acks=0 produce that failed ends this way.
	Close bool
	// OnRelease runs when the connection is done with the answer.
	OnRelease func()

	cuts []cut
	size int
}

// cut says that after Buf[:at] the section comes.
type cut struct {
	at  int
	sec Section
}

var answers = sync.Pool{New: func() any { return new(Answer) }}

// NewAnswer returns an empty answer with a pooled buffer. The first four bytes
// of Buf are the place of the length field.
func NewAnswer() *Answer {
	a := answers.Get().(*Answer)
	a.Buf = append(a.Buf[:0], 0, 0, 0, 0)
	return a
}

// Append adds a file section behind what is in Buf so far.
func (a *Answer) Append(s Section) {
	if s.Len <= 0 {
		return
	}
	a.cuts = append(a.cuts, cut{at: len(a.Buf), sec: s})
	a.size += s.Len
}

// Len is the answer's size on the wire, length field included.
func (a *Answer) Len() int { return len(a.Buf) + a.size }

// maxPooledAnswer bounds the buffers that the pool keeps, so that one huge
// answer does not stay in memory for ever.
const maxPooledAnswer = 256 << 10

// Release runs OnRelease and gives the buffers back.
func (a *Answer) Release() {
	if a.OnRelease != nil {
		a.OnRelease()
	}
	buf := a.Buf[:0]
	if cap(buf) > maxPooledAnswer {
		buf = nil
	}
	clear(a.cuts)
	*a = Answer{Buf: buf, cuts: a.cuts[:0]}
	answers.Put(a)
}

// slot is the place of one request in its connection's order of answers.
type slot struct {
	answer *Answer // nil while under way, and for requests that get no answer
	ready  bool
	// serving is set while the reader is still in Serve for this request; the
	// reader sees to the sending then.
	serving bool
	size    int // bytes of the request
}

// Service answers requests.
type Service interface {
	// Serve takes one request and never blocks. It calls answer exactly once,
	// now or later, from any goroutine; nil means that the request gets no
	// answer. An error means that the request is not fit to be answered and
	// closes the connection; answer must not be called then.
	Serve(p *Peer, f *Frame, answer func(*Answer)) error
}
