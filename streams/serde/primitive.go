package serde

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// The serdes of the basic types, in the encodings of Kafka's own clients.
var (
	String  Serde[string]    = stringSerde{}
	Bytes   Serde[[]byte]    = bytesSerde{}
	Bool    Serde[bool]      = boolSerde{}
	Int     Serde[int]       = wide[int]{"int"}
	Int8    Serde[int8]      = narrow[int8]{"int8"}
	Int16   Serde[int16]     = half[int16]{"int16"}
	Int32   Serde[int32]     = word[int32]{"int32"}
	Int64   Serde[int64]     = wide[int64]{"int64"}
	Uint    Serde[uint]      = wide[uint]{"uint"}
	Uint8   Serde[uint8]     = narrow[uint8]{"uint8"}
	Uint16  Serde[uint16]    = half[uint16]{"uint16"}
	Uint32  Serde[uint32]    = word[uint32]{"uint32"}
	Uint64  Serde[uint64]    = wide[uint64]{"uint64"}
	Float32 Serde[float32]   = float32Serde{}
	Float64 Serde[float64]   = float64Serde{}
	Time    Serde[time.Time] = timeSerde{}
)

type stringSerde struct{}

func (stringSerde) Append(dst []byte, v string) ([]byte, error) { return append(dst, v...), nil }
func (stringSerde) Decode(b []byte) (string, error)             { return string(b), nil }

type bytesSerde struct{}

func (bytesSerde) Append(dst []byte, v []byte) ([]byte, error) { return append(dst, v...), nil }

// Decode copies, and never answers nil: empty is not null.
func (bytesSerde) Decode(b []byte) ([]byte, error) { return append(make([]byte, 0, len(b)), b...), nil }

type boolSerde struct{}

func (boolSerde) Append(dst []byte, v bool) ([]byte, error) {
	if v {
		return append(dst, 1), nil
	}
	return append(dst, 0), nil
}

func (boolSerde) Decode(b []byte) (bool, error) {
	if err := wantLen("bool", 1, b); err != nil {
		return false, err
	}
	if b[0] > 1 {
		return false, fmt.Errorf("serde: bool is 0 or 1, got %d", b[0])
	}
	return b[0] == 1, nil
}

type narrow[T ~int8 | ~uint8] struct{ name string }

func (narrow[T]) Append(dst []byte, v T) ([]byte, error) { return append(dst, byte(v)), nil }
func (s narrow[T]) Decode(b []byte) (T, error) {
	if err := wantLen(s.name, 1, b); err != nil {
		return 0, err
	}
	return T(b[0]), nil
}

type half[T ~int16 | ~uint16] struct{ name string }

func (half[T]) Append(dst []byte, v T) ([]byte, error) {
	return binary.BigEndian.AppendUint16(dst, uint16(v)), nil
}
func (s half[T]) Decode(b []byte) (T, error) {
	if err := wantLen(s.name, 2, b); err != nil {
		return 0, err
	}
	return T(binary.BigEndian.Uint16(b)), nil
}

type word[T ~int32 | ~uint32] struct{ name string }

func (word[T]) Append(dst []byte, v T) ([]byte, error) {
	return binary.BigEndian.AppendUint32(dst, uint32(v)), nil
}
func (s word[T]) Decode(b []byte) (T, error) {
	if err := wantLen(s.name, 4, b); err != nil {
		return 0, err
	}
	return T(binary.BigEndian.Uint32(b)), nil
}

type wide[T ~int | ~int64 | ~uint | ~uint64] struct{ name string }

func (wide[T]) Append(dst []byte, v T) ([]byte, error) {
	return binary.BigEndian.AppendUint64(dst, uint64(v)), nil
}

// Decode refuses what an int of 32 bits cannot hold, on machines that have one.
func (s wide[T]) Decode(b []byte) (T, error) {
	if err := wantLen(s.name, 8, b); err != nil {
		return 0, err
	}
	u := binary.BigEndian.Uint64(b)
	if uint64(T(u)) != u {
		return 0, fmt.Errorf("serde: %d does not fit into %s on this machine", int64(u), s.name)
	}
	return T(u), nil
}

type float32Serde struct{}

// quietNaN32 is the one NaN that Java writes: all NaNs are equal keys.
const quietNaN32, quietNaN64 = 0x7fc00000, 0x7ff8000000000000

func (float32Serde) Append(dst []byte, v float32) ([]byte, error) {
	bits := math.Float32bits(v)
	if v != v {
		bits = quietNaN32
	}
	return binary.BigEndian.AppendUint32(dst, bits), nil
}

func (float32Serde) Decode(b []byte) (float32, error) {
	if err := wantLen("float32", 4, b); err != nil {
		return 0, err
	}
	return math.Float32frombits(binary.BigEndian.Uint32(b)), nil
}

type float64Serde struct{}

func (float64Serde) Append(dst []byte, v float64) ([]byte, error) {
	bits := math.Float64bits(v)
	if v != v {
		bits = quietNaN64
	}
	return binary.BigEndian.AppendUint64(dst, bits), nil
}

func (float64Serde) Decode(b []byte) (float64, error) {
	if err := wantLen("float64", 8, b); err != nil {
		return 0, err
	}
	return math.Float64frombits(binary.BigEndian.Uint64(b)), nil
}

type timeSerde struct{}

func (timeSerde) Append(dst []byte, v time.Time) ([]byte, error) {
	dst = binary.BigEndian.AppendUint64(dst, uint64(v.Unix()))
	return binary.BigEndian.AppendUint32(dst, uint32(v.Nanosecond())), nil
}

func (timeSerde) Decode(b []byte) (time.Time, error) {
	if err := wantLen("time.Time", 12, b); err != nil {
		return time.Time{}, err
	}
	nanos := binary.BigEndian.Uint32(b[8:])
	if nanos > 999_999_999 {
		return time.Time{}, fmt.Errorf("serde: time.Time has %d nanoseconds, more than a second", nanos)
	}
	return time.Unix(int64(binary.BigEndian.Uint64(b)), int64(nanos)).UTC(), nil
}
