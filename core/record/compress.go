package record

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// compress appends src, packed, to dst. It returns the buffer also with an error, so that its memory is kept.
func compress(c Codec, dst, src []byte) ([]byte, error) {
	switch c {
	case None:
		return append(dst, src...), nil
	case Gzip:
		return gzipped(dst, src)
	case Snappy:
		return snappyFramed(dst, src), nil
	case LZ4:
		return lz4Framed(dst, src)
	case Zstd:
		switch w := zstdWriters.Get().(type) {
		case *zstd.Encoder:
			defer zstdWriters.Put(w)
			return w.EncodeAll(src, dst), nil
		case error:
			return dst, w
		}
	}
	return dst, fmt.Errorf("record: codec %d does not exist", int8(c))
}

// sink is where an encoder writes to: the end of a buffer.
type sink struct{ buf []byte }

func (s *sink) Write(p []byte) (int, error) {
	s.buf = append(s.buf, p...)
	return len(p), nil
}

// take gives the buffer back and forgets it, so that a pooled encoder holds on to nobody's memory.
func (s *sink) take() []byte {
	buf := s.buf
	s.buf = nil
	return buf
}

type gzipWriter struct {
	out sink
	z   *gzip.Writer
}

var gzipWriters = sync.Pool{New: func() any { return &gzipWriter{z: gzip.NewWriter(nil)} }}

func gzipped(dst, src []byte) ([]byte, error) {
	w := gzipWriters.Get().(*gzipWriter)
	defer gzipWriters.Put(w)
	w.out.buf = dst
	w.z.Reset(&w.out)
	_, err := w.z.Write(src)
	if err == nil {
		err = w.z.Close()
	}
	return w.out.take(), err
}

var zstdWriters = sync.Pool{New: func() any {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithZeroFrames(true))
	if err != nil {
		return err
	}
	return w
}}

type lz4Writer struct {
	out sink
	z   *lz4.Writer
}

var lz4Writers = sync.Pool{New: func() any { return &lz4Writer{z: lz4.NewWriter(nil)} }}

// lz4Options are those of the frame that Kafka's own clients read: independent blocks of 64 KiB, no content checksum.
var lz4Options = []lz4.Option{lz4.BlockSizeOption(lz4.Block64Kb), lz4.ChecksumOption(false)}

func lz4Framed(dst, src []byte) ([]byte, error) {
	w := lz4Writers.Get().(*lz4Writer)
	w.out.buf = dst
	w.z.Reset(&w.out)
	err := w.z.Apply(lz4Options...)
	if err == nil {
		_, err = w.z.Write(src)
	}
	if err == nil {
		err = w.z.Close()
	}
	out := w.out.take() // before the writer is somebody else's
	if err == nil {     // one that failed may be in any state
		lz4Writers.Put(w)
	}
	return out, err
}
