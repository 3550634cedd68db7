package window

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/streams/serde"
)

// Windowed is a key together with its window.
type Windowed[K any] struct {
	Key    K
	Window Window
}

// Key joins a window and a key; it fits where a function of the two is asked
// for.
func Key[K any](w Window, k K) Windowed[K] { return Windowed[K]{k, w} }

// ErrSize reports a windowed key that cannot be read because nothing says how
// long its window is.
var ErrSize = errors.New("window size unknown: give the key serde with window.Serde(inner, size)")

// Serde is the serde of windowed keys as Kafka writes them for time windows:
// the bytes of the key, then the window's start in milliseconds, 8 bytes big
// endian. The end is not written; reading needs the size.
func Serde[K any](inner serde.Serde[K], size time.Duration) serde.Serde[Windowed[K]] {
	sizeMs := size.Milliseconds()
	if sizeMs < 1 {
		return keySerde[K]{inner: inner}
	}
	return keySerde[K]{inner, func(startMs int64) int64 { return startMs + sizeMs }}
}

// SpecSerde is Serde for windows of any kind but sessions.
func SpecSerde[K any](inner serde.Serde[K], s Spec) serde.Serde[Windowed[K]] {
	return keySerde[K]{inner, s.EndOf}
}

// SerdeFrom makes the serde of a windowed key from that of its key. It can
// write; to read, a size is needed, see Serde. It is called by package serde.
func (Windowed[K]) SerdeFrom(r *serde.Registry) (any, error) {
	inner, err := serde.For[K](r)
	if err != nil {
		return nil, err
	}
	return keySerde[K]{inner: inner}, nil
}

type keySerde[K any] struct {
	inner serde.Serde[K]
	endOf func(startMs int64) int64 // nil: unknown
}

// CheckDecode lets a topology refuse a key that it could never read when it is
// built rather than at the first record.
func (s keySerde[K]) CheckDecode() error {
	if s.endOf == nil {
		return ErrSize
	}
	return nil
}

func (s keySerde[K]) Append(dst []byte, v Windowed[K]) ([]byte, error) {
	dst, err := s.inner.Append(dst, v.Key)
	if err != nil {
		return dst, err
	}
	return binary.BigEndian.AppendUint64(dst, uint64(v.Window.StartMs())), nil
}

func (s keySerde[K]) Decode(b []byte) (Windowed[K], error) {
	if err := s.CheckDecode(); err != nil {
		return Windowed[K]{}, err
	}
	if len(b) < 8 {
		return Windowed[K]{}, fmt.Errorf("windowed key has %d bytes, its start alone takes 8", len(b))
	}
	at := len(b) - 8
	k, err := s.inner.Decode(b[:at])
	if err != nil {
		return Windowed[K]{}, err
	}
	start := int64(binary.BigEndian.Uint64(b[at:]))
	return Windowed[K]{k, Between(start, s.endOf(start))}, nil
}

// AppendRow appends the key of a window's row in a store: the start first, 8
// bytes big endian, then the key. So the rows of a window lie together, windows
// lie in order of time, and whole windows expire as one range.
func AppendRow(dst []byte, startMs int64, key []byte) []byte {
	return append(binary.BigEndian.AppendUint64(dst, uint64(startMs)), key...)
}

// SplitRow takes a row key apart.
func SplitRow(row []byte) (startMs int64, key []byte, err error) {
	if len(row) < 8 {
		return 0, nil, fmt.Errorf("window row key has %d bytes, its start alone takes 8", len(row))
	}
	return int64(binary.BigEndian.Uint64(row)), row[8:], nil
}
