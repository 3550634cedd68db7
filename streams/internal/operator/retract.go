package operator

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/millrace/millrace/streams/internal/task"
	"github.com/millrace/millrace/streams/serde"
)

// Change is what an update of a table does to one group: a value that leaves it,
// one that joins it, or both.
type Change[V any] struct {
	Old, New       V
	HasOld, HasNew bool
}

// ChangeSerde is the serde of changes on their way through a repartition topic:
// a byte of flags (1: old, 2: new); with both, the length of the old value as a
// varint; the values.
func ChangeSerde[V any](inner serde.Serde[V]) serde.Serde[Change[V]] { return changeSerde[V]{inner} }

type changeSerde[V any] struct{ inner serde.Serde[V] }

// ForTopic implements serde.Topical, for an inner serde that is.
func (s changeSerde[V]) ForTopic(topic string, part serde.Part) serde.Serde[Change[V]] {
	if t, ok := s.inner.(serde.Topical[V]); ok {
		return changeSerde[V]{t.ForTopic(topic, part)}
	}
	return s
}

// Prepare implements serde.Prepared.
func (s changeSerde[V]) Prepare(ctx context.Context) error {
	if p, ok := s.inner.(serde.Prepared); ok {
		return p.Prepare(ctx)
	}
	return nil
}

const (
	changeOld = 1 << iota
	changeNew
)

func (s changeSerde[V]) Append(dst []byte, c Change[V]) (_ []byte, err error) {
	flags := byte(0)
	if c.HasOld {
		flags |= changeOld
	}
	if c.HasNew {
		flags |= changeNew
	}
	dst = append(dst, flags)
	if c.HasOld {
		at := len(dst)
		if dst, err = s.inner.Append(dst, c.Old); err != nil {
			return dst, err
		}
		if c.HasNew {
			dst = insertLength(dst, at)
		}
	}
	if c.HasNew {
		dst, err = s.inner.Append(dst, c.New)
	}
	return dst, err
}

// insertLength puts the length of what follows at in front of it.
func insertLength(dst []byte, at int) []byte {
	var size [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(size[:], uint64(len(dst)-at))
	dst = append(dst, size[:n]...)
	copy(dst[at+n:], dst[at:len(dst)-n])
	copy(dst[at:], size[:n])
	return dst
}

// ErrChange reports bytes that are no change of a group.
var ErrChange = errors.New("bytes are no change of a group")

func (s changeSerde[V]) Decode(b []byte) (c Change[V], err error) {
	if len(b) == 0 || b[0] == 0 || b[0] > changeOld|changeNew {
		return c, fmt.Errorf("%w: bad flags", ErrChange)
	}
	c.HasOld, c.HasNew = b[0]&changeOld != 0, b[0]&changeNew != 0
	b = b[1:]
	old := b
	if c.HasOld && c.HasNew {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return c, fmt.Errorf("%w: bad length", ErrChange)
		}
		old, b = b[n:n+int(size)], b[n+int(size):]
	}
	if c.HasOld {
		if c.Old, err = s.inner.Decode(old); err != nil {
			return c, err
		}
	}
	if c.HasNew {
		c.New, err = s.inner.Decode(b)
	}
	return c, err
}

// GroupFunc puts a row into a group; a null key or value keeps it out of all.
type GroupFunc[K, V, KR, VR any] func(ctx context.Context, in *Record[K, V], out *Record[KR, VR]) error

// GroupTable sends the changes that updates of a table make to groups of its
// rows: one record when the row stays in its group, else first the old value to
// the old group, then the new one to the new.
type GroupTable[K, V, KR, VR any] struct {
	Node    string
	Handler task.Handler
	Key     *Codec[KR]
	New     func() GroupFunc[K, V, KR, VR]
	Out     *Outlet[KR, Change[VR]]
}

// Build makes the node of one task.
func (g *GroupTable[K, V, KR, VR]) Build(b *Builder) (Sink[K, V], error) {
	n := &groupTable[K, V, KR, VR]{site: b.Site(g.Node, task.Process, g.Handler), key: g.Key, fn: g.New()}
	next, err := g.Out.Build(b)
	n.next = next
	return n, err
}

type groupTable[K, V, KR, VR any] struct {
	site     *Site
	key      *Codec[KR]
	fn       GroupFunc[K, V, KR, VR]
	next     Sink[KR, Change[VR]]
	in       Record[K, V]
	old, now member[KR, VR]
	out      Record[KR, Change[VR]]
}

// member is a row in its group.
type member[KR, VR any] struct {
	Record[KR, VR]
	has bool
	key []byte // of the group, encoded
}

// Push implements Sink.
func (n *groupTable[K, V, KR, VR]) Push(r *Record[K, V]) error {
	if r.Outdated {
		return nil
	}
	if err := n.call(r); err != nil {
		done, err := n.site.retry(err, func() error { return n.call(r) })
		if err != nil || !done {
			return err
		}
	}
	n.out.TimeMs, n.out.Headers = r.TimeMs, r.Headers
	if n.old.has && n.now.has && string(n.old.key) == string(n.now.key) {
		return n.send(n.now.Key, Change[VR]{n.old.Value, n.now.Value, true, true})
	}
	if n.old.has {
		if err := n.send(n.old.Key, Change[VR]{Old: n.old.Value, HasOld: true}); err != nil {
			return err
		}
	}
	if n.now.has {
		return n.send(n.now.Key, Change[VR]{New: n.now.Value, HasNew: true})
	}
	return nil
}

func (n *groupTable[K, V, KR, VR]) send(key KR, c Change[VR]) error {
	n.out.Key, n.out.Value = key, c
	return pushBranch(n.site.task, n.next, &n.out)
}

func (n *groupTable[K, V, KR, VR]) call(r *Record[K, V]) error {
	n.in = Record[K, V]{Key: r.Key, Value: r.Old.Value, NullValue: r.Old.Null, TimeMs: r.TimeMs, Headers: r.Headers}
	if err := n.place(&n.in, &n.old); err != nil {
		return err
	}
	return n.place(r, &n.now)
}

// place finds the group of a row.
func (n *groupTable[K, V, KR, VR]) place(r *Record[K, V], to *member[KR, VR]) (err error) {
	if to.has = !r.NullValue; !to.has {
		return nil
	}
	to.Record = Record[KR, VR]{}
	n.site.enter()
	err = n.fn(n.site.ctx, r, &to.Record)
	if err == nil && !to.NullKey {
		to.key, err = n.key.Append(to.key[:0], &to.Key)
	}
	n.site.leave()
	to.has = !to.NullKey && !to.NullValue
	return err
}

// Retractor is what an aggregation of a table does with the values of a group.
type Retractor[K, V, A any] struct {
	Adder[K, V, A]
	Subtract func() AddFunc[K, V, A]
}

// Fold makes one adder of both: subtract what leaves, then add what joins.
// Nothing is taken away from a group that has no row.
func (r Retractor[K, V, A]) Fold() Adder[K, Change[V], A] {
	return Adder[K, Change[V], A]{Init: r.Init, New: func() AddFunc[K, Change[V], A] {
		add, subtract := r.New(), r.Subtract()
		nils := NilOf[A]()
		var in Record[K, V]
		return func(ctx context.Context, c *Record[K, Change[V]], a A, fresh bool) (_ A, err error) {
			in = Record[K, V]{Key: c.Key, TimeMs: c.TimeMs, Headers: c.Headers}
			if fresh && !c.Value.HasNew {
				var none A
				return none, nil
			}
			if c.Value.HasOld && !fresh {
				in.Value = c.Value.Old
				if a, err = subtract(ctx, &in, a, false); err != nil {
					return a, err
				}
				if c.Value.HasNew && nils.Is(&a) {
					a, fresh = r.Init(), true
				}
			}
			if c.Value.HasNew {
				in.Value = c.Value.New
				a, err = add(ctx, &in, a, fresh)
			}
			return a, err
		}
	}}
}
