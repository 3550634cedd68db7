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

// Outlet is the typed end of a node: constructors of the nodes that follow.
type Outlet[K, V any] struct {
	children []func(*Builder) (Sink[K, V], error)
}

// Attach adds a node behind the outlet. Records reach nodes in the order they
// were attached in, each branch to its end before the next.
func (o *Outlet[K, V]) Attach(child func(*Builder) (Sink[K, V], error)) {
	o.children = append(o.children, child)
}

// Used reports whether anything is attached.
func (o *Outlet[K, V]) Used() bool { return len(o.children) > 0 }

// Build makes the nodes behind the outlet for one task.
func (o *Outlet[K, V]) Build(b *Builder) (Sink[K, V], error) {
	if len(o.children) == 1 {
		return o.children[0](b)
	}
	f := &fan[K, V]{task: b.t}
	for _, child := range o.children {
		s, err := child(b)
		if err != nil {
			return nil, err
		}
		f.to = append(f.to, s)
	}
	return f, nil
}

// Join gives a node with several parents its only instance in a task: the
// first parent builds it, the others get the same.
func Join[T any](b *Builder, id any, build func() (T, error)) (T, error) {
	if made, ok := b.joints[id]; ok {
		return made.(T), nil
	}
	made, err := build()
	if err == nil {
		b.joints[id] = made
	}
	return made, err
}

// fan pushes to all nodes of an outlet; to none, when nothing is attached.
type fan[K, V any] struct {
	task *Task
	to   []Sink[K, V]
}

func (f *fan[K, V]) Push(r *Record[K, V]) error {
	for _, s := range f.to {
		if err := pushBranch(f.task, s, r); err != nil {
			return err
		}
	}
	return nil
}

// pushBranch pushes to a node that is not the only thing to come: what follows
// is done even if user code behind the node panics and the record is left out.
func pushBranch[K, V any](t *Task, to Sink[K, V], r *Record[K, V]) (err error) {
	defer t.recovered(&err)
	return to.Push(r)
}
