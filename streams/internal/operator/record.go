package operator

import (
	"reflect"
	"unsafe"

	"github.com/millrace/millrace/streams/internal/task"
)

// Record is one typed record on its way through a task.
type Record[K, V any] struct {
	Key       K
	Value     V
	TimeMs    int64
	Headers   []task.Header
	NullKey   bool // Key is the zero value and stands for null
	NullValue bool // Value is the zero value and stands for null
	// Outdated, in updates of a versioned table, says that a newer version of the
	// row is there already.
	Outdated bool
	// Old, in updates of a table, is what the row was before, if the node that
	// keeps the row was asked for it; else nil. Records of streams have none.
	Old *Old[V]
}

// Old is the value of a row before an update.
type Old[V any] struct {
	Value V
	Null  bool // there was no row
}

// Demand is raised, while the topology is being written, by nodes that need the
// old values of a table's updates.
type Demand struct{ raised bool }

// Raise asks for old values.
func (d *Demand) Raise() { d.raised = true }

// Sink takes records; see the package comment for who owns them.
type Sink[K, V any] interface {
	Push(*Record[K, V]) error
}

// Nil knows whether a type has a nil that stands for null.
type Nil[T any] struct{ has bool }

// NilOf looks at the type once.
func NilOf[T any]() Nil[T] {
	switch reflect.TypeFor[T]().Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		return Nil[T]{true}
	}
	return Nil[T]{}
}

// Is reports whether *v is nil. The first word of a pointer, slice, map or
// interface is nil exactly when the value is.
func (n Nil[T]) Is(v *T) bool { return n.has && *(*unsafe.Pointer)(unsafe.Pointer(v)) == nil }

// Strict reports a null that must not reach a function over T.
func (n Nil[T]) Strict(null bool) bool { return null && !n.has }
