package record

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// compress appends src, packed, to dst. It returns the buffer also with an error, so that its memory is kept. The level is that of
// BuilderOptions.
func compress(c Codec, level int, dst, src []byte) ([]byte, error) {
	switch c {
	case None:
		return append(dst, src...), nil
	case Gzip:
		return gzipped(level, dst, src)
	case Snappy:
		return snappyFramed(dst, src), nil
	case LZ4:
		return lz4Framed(level, dst, src)
	case Zstd:
		pool := zstdPool(level)
		switch w := pool.Get().(type) {
		case *zstd.Encoder:
			defer pool.Put(w)
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

// gzipWriters holds writers by level; 0 is the default one.
var gzipWriters [gzip.BestCompression + 1]sync.Pool

func init() {
	for level := range gzipWriters {
		gzipWriters[level].New = func() any {
			w := gzip.NewWriter(nil)
			if level > 0 {
				w, _ = gzip.NewWriterLevel(nil, level) // fails for no level of this range
			}
			return &gzipWriter{z: w}
		}
	}
}

func gzipped(level int, dst, src []byte) ([]byte, error) {
	pool := &gzipWriters[min(max(level, 0), gzip.BestCompression)]
	w := pool.Get().(*gzipWriter)
	defer pool.Put(w)
	w.out.buf = dst
	w.z.Reset(&w.out)
	_, err := w.z.Write(src)
	if err == nil {
		err = w.z.Close()
	}
	return w.out.take(), err
}

// zstdWriters holds encoders by their four steps.
var zstdWriters [zstd.SpeedBestCompression + 1]sync.Pool

func init() {
	for step := range zstdWriters {
		zstdWriters[step].New = func() any {
			w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithZeroFrames(true), zstd.WithEncoderLevel(zstd.EncoderLevel(step)))
			if err != nil {
				return err
			}
			return w
		}
	}
}

func zstdPool(level int) *sync.Pool {
	if level == 0 {
		return &zstdWriters[zstd.SpeedDefault]
	}
	return &zstdWriters[zstd.EncoderLevelFromZstd(level)]
}

type lz4Writer struct {
	out sink
	z   *lz4.Writer
}

var lz4Writers = sync.Pool{New: func() any { return &lz4Writer{z: lz4.NewWriter(nil)} }}

// lz4Options are those of the frame that Kafka's own clients read: independent blocks of 64 KiB, no content checksum.
var lz4Options = []lz4.Option{lz4.BlockSizeOption(lz4.Block64Kb), lz4.ChecksumOption(false)}

// lz4Level is an encoder's step for a level; those above 9 are 9.
func lz4Level(level int) lz4.CompressionLevel {
	if level <= 0 {
		return lz4.Fast
	}
	return lz4.Level1 << (min(level, 9) - 1)
}

func lz4Framed(level int, dst, src []byte) ([]byte, error) {
	w := lz4Writers.Get().(*lz4Writer)
	w.out.buf = dst
	w.z.Reset(&w.out)
	err := w.z.Apply(lz4Options...)
	if err == nil {
		err = w.z.Apply(lz4.CompressionLevelOption(lz4Level(level)))
	}
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
