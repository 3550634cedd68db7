package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// decompress appends the decompressed payload to dst[:0] and returns the buffer, also with an error, so that its memory is
// kept. It never makes more than limit bytes of output, whatever the payload claims.
func decompress(c Codec, dst, src []byte, limit int) ([]byte, error) {
	switch c {
	case Gzip:
		return gunzip(dst, src, limit)
	case Snappy:
		return unsnappy(dst, src, limit)
	case LZ4:
		return unlz4(dst, src, limit)
	case Zstd:
		return unzstd(dst, src, limit)
	}
	return dst, fmt.Errorf("record: codec %d does not exist", int8(c))
}

// drain reads r to its end into dst, growing it as output really comes.
func drain(r io.Reader, dst []byte, limit int) ([]byte, error) {
	if cap(dst) == 0 {
		dst = make([]byte, 0, min(limit+1, 64<<10))
	}
	for {
		if len(dst) == cap(dst) {
			dst = append(dst, 0)[:len(dst)]
		}
		n, err := r.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		if len(dst) > limit {
			return dst, tooLarge(limit)
		}
		if err == io.EOF {
			return dst, nil
		}
		if err != nil {
			return dst, err
		}
	}
}

// The decoders are large (windows, tables) and serve one batch at a time, so all scratches share pools of them.

type gzipReader struct {
	src bytes.Reader
	z   gzip.Reader
}

var gzipReaders = sync.Pool{New: func() any { return new(gzipReader) }}

func gunzip(dst, src []byte, limit int) ([]byte, error) {
	g := gzipReaders.Get().(*gzipReader)
	defer gzipReaders.Put(g)
	g.src.Reset(src)
	defer g.src.Reset(nil) // the pool must not hold on to a request's buffer
	if err := g.z.Reset(&g.src); err != nil {
		return dst, unexpectedEOF(err)
	}
	dst, err := drain(&g.z, dst, limit)
	return dst, unexpectedEOF(err)
}

// unexpectedEOF keeps a cut stream from looking like the proper end of one.
func unexpectedEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

type lz4Reader struct {
	src bytes.Reader
	z   *lz4.Reader
}

var lz4Readers = sync.Pool{New: func() any { return &lz4Reader{z: lz4.NewReader(nil)} }}

func unlz4(dst, src []byte, limit int) ([]byte, error) {
	if len(src) == 0 {
		return dst, io.ErrUnexpectedEOF
	}
	l := lz4Readers.Get().(*lz4Reader)
	l.src.Reset(src)
	l.z.Reset(&l.src)
	dst, err := drain(l.z, dst, limit)
	l.src.Reset(nil)
	if err != nil {
		return dst, err // the reader is left in the middle of a frame: not pooled again
	}
	lz4Readers.Put(l)
	return dst, nil
}

// minZstdMemory is the least that a decoder is bounded by, because its bound is also the largest window that a frame may
// ask for: 8 MiB is that of level 19. With the default limit the windows of all levels (22: 128 MiB) pass.
const minZstdMemory = 8 << 20

// zstdReader works in the caller's goroutine and makes its output the window, so that a frame's claim of a large window
// costs no memory by itself.
type zstdReader struct {
	z   *zstd.Decoder
	max int // its bound
}

var zstdReaders = sync.Pool{New: func() any { return new(zstdReader) }}

// bound makes the decoder stop at limit bytes of output.
func (r *zstdReader) bound(limit int) error {
	limit = max(limit, minZstdMemory)
	if r.max == limit {
		return nil
	}
	r.max = 0
	var err error
	if r.z == nil {
		r.z, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(limit)))
	} else {
		err = r.z.ResetWithOptions(nil, zstd.WithDecoderMaxMemory(uint64(limit)))
	}
	if err == nil {
		r.max = limit
	}
	return err
}

func unzstd(dst, src []byte, limit int) ([]byte, error) {
	if len(src) == 0 {
		return dst, io.ErrUnexpectedEOF
	}
	r := zstdReaders.Get().(*zstdReader)
	defer zstdReaders.Put(r)
	if err := r.bound(limit); err != nil {
		return dst, err
	}
	out, err := r.z.DecodeAll(src, dst)
	if out == nil {
		out = dst
	}
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeExceeded) || len(out) > limit {
		return out, tooLarge(limit)
	}
	return out, err
}
