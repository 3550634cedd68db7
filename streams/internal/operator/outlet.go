package operator

// Outlet is the typed end of a node: constructors of the nodes that follow.
type Outlet[K, V any] struct {
	children []attached[K, V]
}

// attached is a node behind an outlet.
type attached[K, V any] struct {
	node  string
	build func(*Builder) (Sink[K, V], error)
}

// Attach adds a node behind the outlet. Records reach nodes in the order they
// were attached in, each branch to its end before the next. The name is that
// under which the node's records are counted; "" for a part of another node.
func (o *Outlet[K, V]) Attach(node string, child func(*Builder) (Sink[K, V], error)) {
	o.children = append(o.children, attached[K, V]{node, child})
}

// Used reports whether anything is attached.
func (o *Outlet[K, V]) Used() bool { return len(o.children) > 0 }

// Build makes the nodes behind the outlet for one task.
func (o *Outlet[K, V]) Build(b *Builder) (Sink[K, V], error) {
	if len(o.children) == 1 {
		return watch(b, o.children[0])
	}
	f := &fan[K, V]{task: b.t}
	for _, child := range o.children {
		s, err := watch(b, child)
		if err != nil {
			return nil, err
		}
		f.to = append(f.to, s)
	}
	return f, nil
}

// watch builds a node and what stands in front of it.
func watch[K, V any](b *Builder, child attached[K, V]) (Sink[K, V], error) {
	var count *seen
	if b.t.env.Watch && child.node != "" {
		count = b.t.seenBy(child.node) // before those that follow
	}
	to, err := child.build(b)
	if err != nil || child.node == "" {
		return to, err
	}
	if b.t.env.Around != nil {
		if around := b.t.env.Around(child.node); around != nil {
			to = wrap(b.t, around, to)
		}
	}
	if count != nil {
		to = &counted[K, V]{next: to, seen: count}
	}
	return to, nil
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
