package commitlog

import (
	"fmt"
	"io"
	"sync"

	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/vfs"
)

// scanChunk is how much a scanner reads at a time.
const scanChunk = 256 << 10

// maxPooled bounds the buffer that goes back into the pool.
const maxPooled = 4 << 20

// scanner reads whole batches from a file one after the other. The memory it takes is bounded by the file's size, whatever a
// length field says.
type scanner struct {
	file     vfs.File
	end      int64 // of the bytes to scan
	pos      int64 // of the next batch
	buf      []byte
	from, to int64 // what buf holds
}

var scanBuffers = sync.Pool{New: func() any { b := make([]byte, scanChunk); return &b }}

func newScanner(f vfs.File, pos, end int64) *scanner {
	return &scanner{file: f, end: end, pos: pos, buf: *scanBuffers.Get().(*[]byte)}
}

func (s *scanner) done() {
	if b := s.buf; len(b) <= maxPooled {
		scanBuffers.Put(&b)
	}
	s.buf = nil
}

// next returns the batch at pos and moves behind it. The batch is valid until the next call; its checksum is not looked at.
// It gives io.EOF exactly at the end, an error that wraps errBadHeader when no whole batch of format 2 starts at pos, and any
// other error as the file gave it.
func (s *scanner) next() (record.Batch, error) {
	left := s.end - s.pos
	if left <= 0 {
		return nil, io.EOF
	}
	if left < record.HeaderSize {
		return nil, fmt.Errorf("%w: %d bytes are left, a header has %d", errBadHeader, left, record.HeaderSize)
	}
	head, err := s.fill(record.HeaderSize)
	if err != nil {
		return nil, err
	}
	size, err := record.PeekSize(head)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBadHeader, err)
	}
	if int64(size) > left {
		return nil, fmt.Errorf("%w: the batch has %d bytes, %d are left", errBadHeader, size, left)
	}
	b, err := s.fill(size)
	if err != nil {
		return nil, err
	}
	s.pos += int64(size)
	return record.Batch(b[:size:size]), nil
}

// fill sees to it that n bytes from pos on are in the buffer and returns them; the file has them.
func (s *scanner) fill(n int) ([]byte, error) {
	if s.pos >= s.from && s.pos+int64(n) <= s.to {
		return s.buf[s.pos-s.from : s.pos-s.from+int64(n)], nil
	}
	if n > len(s.buf) {
		s.buf = make([]byte, max(n, 2*len(s.buf)))
	}
	want := int(min(int64(len(s.buf)), s.end-s.pos))
	if _, err := s.file.ReadAt(s.buf[:want], s.pos); err != nil {
		return nil, fmt.Errorf("read at byte %d: %w", s.pos, err)
	}
	s.from, s.to = s.pos, s.pos+int64(want)
	return s.buf[:n], nil
}
