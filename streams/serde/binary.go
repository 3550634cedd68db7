package serde

import (
	"encoding"
	"reflect"
)

var (
	appenderType    = reflect.TypeFor[encoding.BinaryAppender]()
	marshalerType   = reflect.TypeFor[encoding.BinaryMarshaler]()
	unmarshalerType = reflect.TypeFor[encoding.BinaryUnmarshaler]()
)

// speaksBinary reports a type whose pointer has both directions: a method of
// the value is one of the pointer too.
func speaksBinary(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(unmarshalerType) && (p.Implements(appenderType) || p.Implements(marshalerType))
}

// appendBinary encodes what p, a pointer to the value, says of itself.
func appendBinary(dst []byte, p any) ([]byte, error) {
	if a, ok := p.(encoding.BinaryAppender); ok {
		return a.AppendBinary(dst)
	}
	b, err := p.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		return dst, err
	}
	return append(dst, b...), nil
}

type binarySerde[T any] struct{}

func (binarySerde[T]) Append(dst []byte, v T) ([]byte, error) { return appendBinary(dst, &v) }

func (binarySerde[T]) Decode(b []byte) (T, error) {
	var v T
	err := any(&v).(encoding.BinaryUnmarshaler).UnmarshalBinary(b)
	return v, err
}
