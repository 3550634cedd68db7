package serde

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Registry holds the serdes that a program registered by type. The zero value
// works. Registering is for the time before topologies are built; after that a
// registry may be read by any number of goroutines.
type Registry struct {
	typed  map[reflect.Type]any // Serde[T] by T
	erased map[reflect.Type]erased
}

// Register makes s the serde of type T, and of *T.
func Register[T any](r *Registry, s Serde[T]) {
	if r.typed == nil {
		r.typed, r.erased = map[reflect.Type]any{}, map[reflect.Type]erased{}
	}
	t := reflect.TypeFor[T]()
	r.typed[t], r.erased[t] = s, erasedOf[T]{s}
}

// Composite is a type that makes its serde from those of its parts, such as a
// windowed key. SerdeFrom is called on the zero value and returns a Serde of
// the type itself.
type Composite interface {
	SerdeFrom(r *Registry) (any, error)
}

// For returns the serde of T, by the rules in the package comment. The error
// wraps ErrNoSerde and names the type.
func For[T any](r *Registry) (Serde[T], error) {
	t := reflect.TypeFor[T]()
	if s, ok := r.typed[t]; ok {
		return s.(Serde[T]), nil
	}
	if s := basic[T](); s != nil {
		return s, nil
	}
	if c, ok := any(*new(T)).(Composite); ok && t.Kind() != reflect.Pointer {
		s, err := c.SerdeFrom(r)
		if err != nil {
			return nil, err
		}
		return s.(Serde[T]), nil
	}
	if f, ok, err := find(t); err != nil {
		return nil, err
	} else if ok {
		return foundSerde[T]{f}, nil
	}
	switch {
	case t.Kind() == reflect.Pointer:
		e, err := r.erasedFor(t.Elem())
		if err != nil {
			return nil, err
		}
		return pointerSerde[T]{e, t.Elem()}, nil
	case isUUID(t):
		return named[T, [16]byte]{UUID[[16]byte]()}, nil
	case speaksBinary(t):
		return binarySerde[T]{}, nil
	}
	if s := ofKind[T](t); s != nil {
		return s, nil
	}
	if err := checkJSON(t); err != nil {
		return nil, fmt.Errorf("%w for type %s: %w", ErrNoSerde, t, err)
	}
	return JSON[T](), nil
}

// erasedFor is For without a type parameter, for the element of a pointer.
func (r *Registry) erasedFor(t reflect.Type) (erased, error) {
	if e, ok := r.erased[t]; ok {
		return e, nil
	}
	switch {
	case t.Kind() == reflect.Pointer:
		return nil, fmt.Errorf("%w for a pointer to %s: null is one level deep", ErrNoSerde, t)
	case t == reflect.TypeFor[time.Time]():
		return erasedOf[time.Time]{Time}, nil
	case t == reflect.TypeFor[[]byte]():
		return erasedOf[[]byte]{Bytes}, nil
	case isUUID(t):
		return erasedOf[[16]byte]{UUID[[16]byte]()}, nil
	case speaksBinary(t):
		return erasedBinary{t}, nil
	}
	if e, ok := erasedKinds[t.Kind()]; ok {
		return e, nil
	}
	if err := checkJSON(t); err != nil {
		return nil, fmt.Errorf("%w for type %s: %w", ErrNoSerde, t, err)
	}
	return erasedJSON{t}, nil
}

// isUUID recognises the identifier types of the usual libraries without
// depending on one.
func isUUID(t reflect.Type) bool {
	return t.Kind() == reflect.Array && t.Len() == 16 && t.Elem().Kind() == reflect.Uint8 && strings.EqualFold(t.Name(), "uuid")
}

// basic answers for the predeclared types and time.Time.
func basic[T any]() Serde[T] {
	for _, s := range [...]any{
		String, Bytes, Bool, Int, Int8, Int16, Int32, Int64,
		Uint, Uint8, Uint16, Uint32, Uint64, Float32, Float64, Time,
	} {
		if s, ok := s.(Serde[T]); ok {
			return s
		}
	}
	return nil
}

// ofKind answers for named types of a basic kind.
func ofKind[T any](t reflect.Type) Serde[T] {
	switch t.Kind() {
	case reflect.String:
		return named[T, string]{String}
	case reflect.Bool:
		return named[T, bool]{Bool}
	case reflect.Int:
		return named[T, int]{Int}
	case reflect.Int8:
		return named[T, int8]{Int8}
	case reflect.Int16:
		return named[T, int16]{Int16}
	case reflect.Int32:
		return named[T, int32]{Int32}
	case reflect.Int64:
		return named[T, int64]{Int64}
	case reflect.Uint:
		return named[T, uint]{Uint}
	case reflect.Uint8:
		return named[T, uint8]{Uint8}
	case reflect.Uint16:
		return named[T, uint16]{Uint16}
	case reflect.Uint32:
		return named[T, uint32]{Uint32}
	case reflect.Uint64:
		return named[T, uint64]{Uint64}
	case reflect.Float32:
		return named[T, float32]{Float32}
	case reflect.Float64:
		return named[T, float64]{Float64}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return named[T, []byte]{Bytes}
		}
	}
	return nil
}
