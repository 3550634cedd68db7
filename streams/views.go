package streams

import (
	"fmt"

	"github.com/millrace/millrace/streams/internal/operator"
)

// View looks at the table's rows in a running application. A table that keeps no rows
// of its own, one made with Filter or MapValues for instance, has none: look at the
// table it is made of.
func (t Table[K, V]) View(r *Running, opts ...ViewOpt) View[K, V] {
	v := View[K, V]{at: newLookup(r, t.app, t.node.Name, opts), key: t.key, val: t.val}
	switch {
	case t.node.Store == nil:
		v.at.err = fmt.Errorf("%w: table %s keeps no rows of its own", ErrNoView, t.node.Name)
	case t.history > 0:
		v.at.err = fmt.Errorf("%w: table %s keeps versions of its rows, use VersionsView", ErrNoView, t.node.Name)
	}
	return v
}

// View looks at the copy of the whole topic that this process has.
func (t GlobalTable[K, V]) View(r *Running, opts ...ViewOpt) View[K, V] {
	return View[K, V]{at: newLookup(r, t.app, t.name, opts), key: t.key, val: t.val}
}

// View looks at the rows of a declared store.
func (s KVRef[K, V]) View(r *Running, opts ...ViewOpt) View[K, V] {
	v := View[K, V]{at: newLookup(r, s.app, s.name, opts), keep: s.kept.retention}
	v.key, v.val = codecsOf[K, V](s.declaration)
	return v
}

// codecsOf are those of a declared store.
func codecsOf[K, V any](d *declaration) (*operator.Codec[K], *operator.Codec[V]) {
	return d.codecs[0].(*operator.Codec[K]), d.codecs[1].(*operator.Codec[V])
}

// View looks at the rows of the table in a running application.
func (t WTable[K, V]) View(r *Running, opts ...ViewOpt) WindowView[K, V] {
	n := t.node
	for n.Store == nil && len(n.Parents) > 0 && n.Kind == "on-close" {
		n = n.Parents[0] // final results are rows that have been sent
	}
	v := WindowView[K, V]{at: newLookup(r, t.app, n.Name, opts), key: t.key, val: t.val, spec: t.windows, sessions: t.sessions}
	if n.Store == nil {
		v.at.err = fmt.Errorf("%w: table %s keeps no rows of its own", ErrNoView, n.Name)
	} else if !t.sessions && !n.Store.Windowed {
		v.sessions = true // sliding windows lie as sessions do
	}
	return v
}

// VersionsView looks at the rows of a table that is Versioned.
func (t Table[K, V]) VersionsView(r *Running, opts ...ViewOpt) VersionsView[K, V] {
	v := VersionsView[K, V]{newLookup(r, t.app, t.node.Name, opts), t.key, t.val}
	if t.node.Store == nil || t.history == 0 {
		v.at.err = fmt.Errorf("%w: table %s keeps no versions", ErrNoView, t.node.Name)
	}
	return v
}

// View looks at the rows of a declared versioned store.
func (s VersionedRef[K, V]) View(r *Running, opts ...ViewOpt) VersionsView[K, V] {
	key, val := codecsOf[K, V](s.declaration)
	return VersionsView[K, V]{newLookup(r, s.app, s.name, opts), key, val}
}
