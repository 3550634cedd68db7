package inspect

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/vfs"
)

// readAhead is how much a scan reads at a time.
const readAhead = 256 << 10

// scan walks the batches of a file. Its memory is the read-ahead or the largest batch, which is never more than the file.
type scan struct {
	file     vfs.File
	size     int64
	pos      int64 // of the next batch
	buf      []byte
	from, to int64 // what buf holds
}

func openScan(fsys vfs.FS, path string) (*scan, error) {
	f, err := fsys.OpenRead(path)
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	if err != nil {
		return nil, fmt.Errorf("%w (and closing: %v)", err, f.Close())
	}
	return &scan{file: f, size: size}, nil
}

func (s *scan) close() { s.file.Close() } // read only: nothing to lose

// misfit is bytes where a batch should start and none does.
type misfit struct {
	position, rest int64
	claimed        int64 // the size that the length field gives, 0 when the file ends before it
	zeros          bool  // nothing but zeros at its beginning, as after a power cut
	why            string
}

func (m *misfit) Error() string { return m.why }

// next gives the batch at pos and its position, and moves behind it. At the end it gives io.EOF; a *misfit when no batch that
// fits into the file starts here. The magic byte and the checksum are not looked at. The batch is good until the next call.
func (s *scan) next() (b record.Batch, pos int64, err error) {
	left := s.size - s.pos
	if left <= 0 {
		return nil, s.pos, io.EOF
	}
	head, err := s.fill(int(min(left, record.HeaderSize)))
	if err != nil {
		return nil, s.pos, err
	}
	m := &misfit{position: s.pos, rest: left, why: "batch does not fit into the file"}
	if len(head) >= 12 {
		m.claimed = int64(int32(binary.BigEndian.Uint32(head[8:]))) + 12
	}
	if len(head) < record.HeaderSize || m.claimed < record.HeaderSize || m.claimed > left {
		m.zeros = zeros(head)
		return nil, s.pos, m
	}
	whole, err := s.fill(int(m.claimed))
	if err != nil {
		return nil, s.pos, err
	}
	pos = s.pos
	s.pos += m.claimed
	return record.Batch(whole[:m.claimed:m.claimed]), pos, nil
}

func zeros(p []byte) bool { return len(bytes.TrimLeft(p, "\x00")) == 0 }

// fill gives n bytes from pos on; the file has them.
func (s *scan) fill(n int) ([]byte, error) {
	if s.pos >= s.from && s.pos+int64(n) <= s.to {
		return s.buf[s.pos-s.from : s.pos-s.from+int64(n)], nil
	}
	if n > len(s.buf) {
		s.buf = make([]byte, max(n, readAhead))
	}
	want := int(min(int64(len(s.buf)), s.size-s.pos))
	if _, err := s.file.ReadAt(s.buf[:want], s.pos); err != nil {
		return nil, fmt.Errorf("read at byte %d: %w", s.pos, err)
	}
	s.from, s.to = s.pos, s.pos+int64(want)
	return s.buf[:n], nil
}

// resync looks for the next batch that checks, behind a place where none did: its checksum is right and its offsets may follow
// minOffset. ok is false when there is none up to the end of the file. It jumps from one byte that may be a magic byte to the next,
// so a gigabyte of zeros costs no more than reading it.
func (s *scan) resync(minOffset int64) (ok bool, err error) {
	const atMagic = 16
	for s.pos++; s.size-s.pos >= record.HeaderSize; s.pos++ {
		if _, err := s.fill(record.HeaderSize); err != nil {
			return false, err
		}
		ahead := s.buf[s.pos-s.from+atMagic : s.to-s.from]
		i := bytes.IndexByte(ahead, 2)
		if i < 0 {
			s.pos += int64(len(ahead)) - 1
			continue
		}
		if s.pos += int64(i); s.size-s.pos < record.HeaderSize {
			return false, nil
		}
		head, err := s.fill(record.HeaderSize)
		if err != nil {
			return false, err
		}
		b, n := record.Batch(head), int64(int32(binary.BigEndian.Uint32(head[8:])))+12
		if n < record.HeaderSize || n > s.size-s.pos || b.BaseOffset() < minOffset || b.LastOffsetDelta() < 0 {
			continue
		}
		whole, err := s.fill(int(n))
		if err != nil {
			return false, err
		}
		if record.Batch(whole[:n:n]).CheckCRC() == nil {
			return true, nil
		}
	}
	return false, nil
}
