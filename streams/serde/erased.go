package serde

import (
	"context"
	"encoding"
	"encoding/json/v2"
	"reflect"
	"unsafe"
)

// erased is a serde without its type, working on a pointer to the value. It
// exists for pointer types alone: from P = *T the type T is known to reflect,
// but no generic function can be called with it.
type erased interface {
	appendAt(dst []byte, p unsafe.Pointer) ([]byte, error)
	decodeAt(b []byte, p unsafe.Pointer) error
}

// erasedOf is a typed serde as an erased one. The memory behind p holds a T, or
// a named type of the same kind, which has the same layout.
type erasedOf[T any] struct{ s Serde[T] }

func (e erasedOf[T]) appendAt(dst []byte, p unsafe.Pointer) ([]byte, error) {
	return e.s.Append(dst, *(*T)(p))
}

func (e erasedOf[T]) decodeAt(b []byte, p unsafe.Pointer) error {
	v, err := e.s.Decode(b)
	if err == nil {
		*(*T)(p) = v
	}
	return err
}

// of is the serde inside, for what it is besides a serde.
func (e erasedOf[T]) of() any { return e.s }

// forTopic is the erased form of Topical.
func (e erasedOf[T]) forTopic(topic string, part Part) erased {
	if t, ok := e.s.(Topical[T]); ok {
		return erasedOf[T]{t.ForTopic(topic, part)}
	}
	return e
}

// erasedKinds are the basic kinds and those structs with an encoding of ours.
var erasedKinds = map[reflect.Kind]erased{
	reflect.String: erasedOf[string]{String}, reflect.Bool: erasedOf[bool]{Bool},
	reflect.Int: erasedOf[int]{Int}, reflect.Int8: erasedOf[int8]{Int8}, reflect.Int16: erasedOf[int16]{Int16},
	reflect.Int32: erasedOf[int32]{Int32}, reflect.Int64: erasedOf[int64]{Int64},
	reflect.Uint: erasedOf[uint]{Uint}, reflect.Uint8: erasedOf[uint8]{Uint8}, reflect.Uint16: erasedOf[uint16]{Uint16},
	reflect.Uint32: erasedOf[uint32]{Uint32}, reflect.Uint64: erasedOf[uint64]{Uint64},
	reflect.Float32: erasedOf[float32]{Float32}, reflect.Float64: erasedOf[float64]{Float64},
}

type erasedBinary struct{ t reflect.Type }

func (e erasedBinary) appendAt(dst []byte, p unsafe.Pointer) ([]byte, error) {
	return appendBinary(dst, reflect.NewAt(e.t, p).Interface())
}

func (e erasedBinary) decodeAt(b []byte, p unsafe.Pointer) error {
	return reflect.NewAt(e.t, p).Interface().(encoding.BinaryUnmarshaler).UnmarshalBinary(b)
}

type erasedJSON struct{ t reflect.Type }

func (e erasedJSON) appendAt(dst []byte, p unsafe.Pointer) ([]byte, error) {
	b, err := json.Marshal(reflect.NewAt(e.t, p).Interface(), json.Deterministic(true))
	if err != nil {
		return dst, err
	}
	return append(dst, b...), nil
}

func (e erasedJSON) decodeAt(b []byte, p unsafe.Pointer) error {
	return json.Unmarshal(b, reflect.NewAt(e.t, p).Interface())
}

// pointerSerde is the serde of P = *T, given that of T. A nil P is null and
// never comes here.
type pointerSerde[P any] struct {
	elem erased
	t    reflect.Type // T
}

func (s pointerSerde[P]) Append(dst []byte, v P) ([]byte, error) {
	return s.elem.appendAt(dst, *(*unsafe.Pointer)(unsafe.Pointer(&v)))
}

func (s pointerSerde[P]) Decode(b []byte) (P, error) {
	var none P
	p := reflect.New(s.t).UnsafePointer()
	if err := s.elem.decodeAt(b, p); err != nil {
		return none, err
	}
	return *(*P)(unsafe.Pointer(&p)), nil
}

// ForTopic implements Topical, for serdes inside that are.
func (s pointerSerde[P]) ForTopic(topic string, part Part) Serde[P] {
	if e, ok := s.elem.(interface{ forTopic(string, Part) erased }); ok {
		return pointerSerde[P]{e.forTopic(topic, part), s.t}
	}
	return s
}

// Check implements Checked.
func (s pointerSerde[P]) Check() error {
	if c, ok := s.inner().(Checked); ok {
		return c.Check()
	}
	return nil
}

// Prepare implements Prepared.
func (s pointerSerde[P]) Prepare(ctx context.Context) error {
	if p, ok := s.inner().(Prepared); ok {
		return p.Prepare(ctx)
	}
	return nil
}

func (s pointerSerde[P]) inner() any {
	if e, ok := s.elem.(interface{ of() any }); ok {
		return e.of()
	}
	return nil
}

// named is the serde of a named type T whose kind is that of the basic type B.
type named[T, B any] struct{ s Serde[B] }

func (n named[T, B]) Append(dst []byte, v T) ([]byte, error) {
	return n.s.Append(dst, *(*B)(unsafe.Pointer(&v)))
}

func (n named[T, B]) Decode(b []byte) (T, error) {
	v, err := n.s.Decode(b)
	return *(*T)(unsafe.Pointer(&v)), err
}
