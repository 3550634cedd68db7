package serde

import (
	"fmt"
	"reflect"
	"sync"
)

// Found is a serde without its type, of a value in an interface. Packages that
// know many types by what they have in common make one for each; see AddFinder.
type Found struct {
	Append func(dst []byte, v any) ([]byte, error)
	Decode func(b []byte) (any, error)
}

// Finder answers for types that it knows. The error is for types that it knows
// and has no serde for.
type Finder func(reflect.Type) (Found, bool, error)

// finders are those of the packages that are linked in; written by their init
// functions.
var finders struct {
	sync.RWMutex
	all []Finder
}

// AddFinder makes For ask f about types that are neither registered nor basic. It is for the init function of a
// package with an encoding, such as serde/protobuf: who imports it has its types
// found.
func AddFinder(f Finder) {
	finders.Lock()
	defer finders.Unlock()
	finders.all = append(finders.all, f)
}

// find asks all finders. Without one that knows it, a Protobuf message is an
// error: as JSON it would be written with its fields in Go's names, which
// nobody else reads.
func find(t reflect.Type) (Found, bool, error) {
	finders.RLock()
	defer finders.RUnlock()
	for _, f := range finders.all {
		if found, ok, err := f(t); ok || err != nil {
			return found, ok, err
		}
	}
	if isMessage(t) || isMessage(reflect.PointerTo(t)) {
		return Found{}, false, fmt.Errorf("%w for type %s: it is a Protobuf message; import the package streams/serde/protobuf to have its serde found", ErrNoSerde, t)
	}
	return Found{}, false, nil
}

// isMessage recognises Protobuf messages without depending on their library.
func isMessage(t reflect.Type) bool {
	_, ok := t.MethodByName("ProtoReflect")
	return ok && t.Kind() == reflect.Pointer
}

// foundSerde is a Found with its type.
type foundSerde[T any] struct{ Found }

func (s foundSerde[T]) Append(dst []byte, v T) ([]byte, error) { return s.Found.Append(dst, v) }

func (s foundSerde[T]) Decode(b []byte) (T, error) {
	v, err := s.Found.Decode(b)
	if err != nil {
		var none T
		return none, err
	}
	return v.(T), nil
}
