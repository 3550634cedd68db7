package listener

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
)

// frameHead is the length field, the API key and the version: what must be seen
// before a buffer for the frame is chosen.
const frameHead = 8

// Pools for the frames of Produce and Fetch: most are small, or about the size of a
// full batch, or of some full batches, one for each partition that a client
// writes to. Larger ones are left to the garbage collector.
const (
	smallFrame = 16 << 10
	largeFrame = 2 << 20
	hugeFrame  = 8 << 20
)

var (
	smallFrames = poolOf(smallFrame)
	largeFrames = poolOf(largeFrame)
	hugeFrames  = make(spareFrames, 2)
)

func poolOf(size int) *sync.Pool {
	return &sync.Pool{New: func() any { b := make([]byte, 0, size); return &b }}
}

// spareFrames keeps few of the longest buffers, whoever used them: a sync.Pool has some for each processor, and what it
// keeps of these counts twice, as the heap may grow to double of what is in use. A frame is released as soon as its
// records are in the log, so that one or two serve a connection at full speed.
type spareFrames chan *[]byte

func (s spareFrames) Get() any {
	select {
	case b := <-s:
		return b
	default:
		b := make([]byte, 0, hugeFrame)
		return &b
	}
}

func (s spareFrames) Put(b any) {
	select {
	case s <- b.(*[]byte):
	default: // enough of them
	}
}

// frameError says why a peer's bytes are not a frame.
type frameError struct {
	length, limit int
	what          string
}

func (e *frameError) Error() string {
	return fmt.Sprintf("frame of %d bytes: %s %d", e.length, e.what, e.limit)
}

// readFrame reads one frame. The size is checked before anything is reserved, and
// a large buffer grows only as bytes come in.
func readFrame(r *bufio.Reader, l *Limits) (*Frame, error) {
	head, err := r.Peek(4)
	if err != nil {
		return nil, err
	}
	n := int(int32(binary.BigEndian.Uint32(head)))
	switch {
	case n < 4:
		return nil, &frameError{n, 4, "at least"}
	case n > l.MaxFrame:
		return nil, &frameError{n, l.MaxFrame, "at most"}
	}
	if head, err = r.Peek(frameHead); err != nil {
		return nil, err
	}
	key := int16(binary.BigEndian.Uint16(head[4:]))
	if most := l.ofKey(key); n > most {
		return nil, &frameError{n, most, fmt.Sprintf("at most, for API key %d,", key)}
	}
	if _, err := r.Discard(4); err != nil {
		return nil, err
	}
	f := newFrame(key, n)
	if err := f.fill(r, n); err != nil {
		f.Release()
		return nil, err
	}
	return f, nil
}

func newFrame(key int16, n int) *Frame {
	var pool framePool
	switch {
	case key != keyProduce && key != keyFetch:
	case n <= smallFrame:
		pool = smallFrames
	default:
		pool = largeFrames // a longer one moves on when that much has come in
	}
	if pool == nil {
		return &Frame{Bytes: make([]byte, 0, min(n, largeFrame))}
	}
	f := &Frame{}
	f.take(pool)
	return f
}

// take makes a buffer of the pool the frame's.
func (f *Frame) take(pool framePool) {
	f.pool, f.box = pool, pool.Get().(*[]byte)
	f.Bytes = (*f.box)[:0]
}

// fill reads n bytes. The buffer grows as they arrive, so a length field alone
// reserves at most largeFrame.
func (f *Frame) fill(r io.Reader, n int) error {
	for len(f.Bytes) < n {
		if len(f.Bytes) == cap(f.Bytes) {
			f.grow(n)
		}
		had := len(f.Bytes)
		part := f.Bytes[had:min(n, cap(f.Bytes))]
		if _, err := io.ReadFull(r, part); err != nil {
			return err
		}
		f.Bytes = f.Bytes[:had+len(part)]
	}
	return nil
}

// grow moves a full buffer into a larger one: of the next pool where that is large
// enough, else of its own and twice the size, which is not kept.
func (f *Frame) grow(n int) {
	full := Frame{f.Bytes, f.pool, f.box}
	if f.pool == framePool(largeFrames) && n <= hugeFrame {
		f.take(hugeFrames)
	} else {
		f.pool, f.box = nil, nil
		f.Bytes = make([]byte, 0, min(n, 2*cap(full.Bytes)))
	}
	f.Bytes = append(f.Bytes, full.Bytes...)
	full.Release()
}
