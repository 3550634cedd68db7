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

// Pools for the frames of Produce and Fetch: most are either small or about the
// size of a full batch. Larger ones are left to the garbage collector.
const (
	smallFrame = 16 << 10
	largeFrame = 2 << 20
)

var (
	smallFrames = sync.Pool{New: func() any { b := make([]byte, 0, smallFrame); return &b }}
	largeFrames = sync.Pool{New: func() any { b := make([]byte, 0, largeFrame); return &b }}
)

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
	var pool *sync.Pool
	switch {
	case key != keyProduce && key != keyFetch:
	case n <= smallFrame:
		pool = &smallFrames
	case n <= largeFrame:
		pool = &largeFrames
	}
	if pool == nil {
		return &Frame{Bytes: make([]byte, 0, min(n, largeFrame))}
	}
	box := pool.Get().(*[]byte)
	return &Frame{Bytes: (*box)[:0], pool: pool, box: box}
}

// fill reads n bytes. The buffer doubles as they arrive, so a length field alone
// reserves at most largeFrame.
func (f *Frame) fill(r io.Reader, n int) error {
	b := f.Bytes
	for len(b) < n {
		if len(b) == cap(b) {
			grown := make([]byte, len(b), min(n, 2*cap(b)))
			copy(grown, b)
			b = grown
		}
		part := b[len(b):min(n, cap(b))]
		if _, err := io.ReadFull(r, part); err != nil {
			return err
		}
		b = b[:len(b)+len(part)]
	}
	f.Bytes = b
	return nil
}
