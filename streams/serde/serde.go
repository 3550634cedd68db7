package serde

import (
	"errors"
	"fmt"
)

// ErrNoSerde reports a type that has no serde.
var ErrNoSerde = errors.New("no serde")

// Serde encodes and decodes values of one type. Implementations are used by
// many tasks at once and must be safe for that; the usual one has no state.
type Serde[T any] interface {
	// Append appends the encoding of v to dst and returns the longer slice, as
	// append does. It must not keep dst.
	Append(dst []byte, v T) ([]byte, error)
	// Decode decodes b, all of it. It must not keep b or parts of it: the
	// bytes belong to the batch that carried them.
	Decode(b []byte) (T, error)
}

// Of makes a serde of two functions.
func Of[T any](appendTo func(dst []byte, v T) ([]byte, error), decode func(b []byte) (T, error)) Serde[T] {
	return funcs[T]{appendTo, decode}
}

type funcs[T any] struct {
	appendTo func([]byte, T) ([]byte, error)
	decode   func([]byte) (T, error)
}

func (f funcs[T]) Append(dst []byte, v T) ([]byte, error) { return f.appendTo(dst, v) }
func (f funcs[T]) Decode(b []byte) (T, error)             { return f.decode(b) }

// wantLen is the error of a fixed-size encoding with the wrong number of bytes.
func wantLen(what string, want int, b []byte) error {
	if len(b) == want {
		return nil
	}
	return fmt.Errorf("serde: %s takes %d bytes, got %d", what, want, len(b))
}
