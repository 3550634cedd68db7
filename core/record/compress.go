package record

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// compress appends src, packed, to dst.
func compress(c Codec, dst, src []byte) ([]byte, error) {
	switch c {
	case None:
		return append(dst, src...), nil
	case Gzip:
		w := gzipWriters.Get().(*gzip.Writer)
		defer gzipWriters.Put(w)
		buf := bytes.NewBuffer(dst)
		w.Reset(buf)
		if _, err := w.Write(src); err != nil {
			return dst, err
		}
		err := w.Close()
		return buf.Bytes(), err
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

var gzipWriters = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

var zstdWriters = sync.Pool{New: func() any {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithZeroFrames(true))
	if err != nil {
		return err
	}
	return w
}}

var lz4Writers = sync.Pool{New: func() any { return lz4.NewWriter(nil) }}

// lz4Framed writes the frame that Kafka's own clients read: independent blocks of 64 KiB, no content checksum.
func lz4Framed(dst, src []byte) ([]byte, error) {
	w := lz4Writers.Get().(*lz4.Writer)
	buf := bytes.NewBuffer(dst)
	w.Reset(buf)
	if err := w.Apply(lz4.BlockSizeOption(lz4.Block64Kb), lz4.ChecksumOption(false)); err != nil {
		return dst, err
	}
	if _, err := w.Write(src); err != nil {
		return dst, err
	}
	if err := w.Close(); err != nil {
		return dst, err
	}
	lz4Writers.Put(w)
	return buf.Bytes(), nil
}
