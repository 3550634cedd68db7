package commitlog

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/vfs"
)

// walkChunk is how much a walker reads at a time: about an index interval, so that one read serves most look-ups.
const walkChunk = 8 << 10

// errBadHeader says that no batch starts at a position, or that it reaches beyond the end.
var errBadHeader = errors.New("no whole batch starts here")

// walker steps from batch header to batch header. It looks at nothing else, so a batch of any size costs one read at most.
type walker struct {
	file     vfs.File
	end      int64 // of the valid bytes
	from, to int64 // what buf holds
	buf      [walkChunk]byte
}

var walkers = sync.Pool{New: func() any { return new(walker) }}

// newWalker takes a walker from the pool; the caller puts it back with done.
func newWalker(f vfs.File, end int64) *walker {
	w := walkers.Get().(*walker)
	w.file, w.end, w.from, w.to = f, end, 0, 0
	return w
}

func (w *walker) done() {
	w.file = nil
	walkers.Put(w)
}

// at returns the header of the batch at pos and the batch's size. The header is a view of the walker's buffer, valid until
// the next call; of a record.Batch only the header's accessors may be used. At the end it gives io.EOF.
func (w *walker) at(pos int64) (head record.Batch, size int64, err error) {
	if pos >= w.end {
		return nil, 0, io.EOF
	}
	if w.end-pos < record.HeaderSize {
		return nil, 0, fmt.Errorf("%w: byte %d of %d", errBadHeader, pos, w.end)
	}
	if pos < w.from || pos+record.HeaderSize > w.to {
		n := int(min(walkChunk, w.end-pos))
		if _, err := w.file.ReadAt(w.buf[:n], pos); err != nil {
			return nil, 0, err
		}
		w.from, w.to = pos, pos+int64(n)
	}
	at := int(pos - w.from)
	head = record.Batch(w.buf[at : at+record.HeaderSize])
	n, err := record.PeekSize(head)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: byte %d: %w", errBadHeader, pos, err)
	}
	if int64(n) > w.end-pos || head.LastOffsetDelta() < 0 {
		return nil, 0, fmt.Errorf("%w: byte %d of %d, batch of %d bytes", errBadHeader, pos, w.end, n)
	}
	return head, int64(n), nil
}
