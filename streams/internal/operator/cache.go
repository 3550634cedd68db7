package operator

import (
	"bytes"
	"container/list"

	"github.com/millrace/millrace/streams/internal/task"
)

// Cache merges the updates of a table between commits: of each key only the latest
// goes on, with the value before the first as its old one; of a row that was made
// and deleted meanwhile, nothing. Updates go in order of their last change, before
// the commit, or when there are more keys than the cache may hold.
//
// The store in front of it has every update at once: only what follows sees fewer.
type Cache[K, V any] struct {
	Node    string
	Handler task.Handler
	Key     *Codec[K]
	MaxKeys int
	Out     *Outlet[K, V]
}

// Build makes the node of one task.
func (c *Cache[K, V]) Build(b *Builder) (Sink[K, V], error) {
	n := &cache[K, V]{op: c, site: b.Site(c.Node, task.Encode, c.Handler), held: map[string]*list.Element{}}
	b.t.flushes = append(b.t.flushes, n.flush)
	next, err := c.Out.Build(b)
	n.next = next
	return n, err
}

type cache[K, V any] struct {
	op    *Cache[K, V]
	site  *Site
	next  Sink[K, V]
	held  map[string]*list.Element
	order list.List // of cached[K, V], the least recently changed first
	kbuf  []byte
}

type cached[K, V any] struct {
	key    string
	record Record[K, V]
	old    Old[V]
}

// Push implements Sink.
func (n *cache[K, V]) Push(r *Record[K, V]) error {
	encode := func() error {
		return n.site.user(func() (err error) {
			n.kbuf, err = n.op.Key.Append(n.kbuf[:0], &r.Key)
			return err
		})
	}
	if err := encode(); err != nil {
		if done, err := n.site.retry(err, encode); err != nil || !done {
			return err
		}
	}
	e := n.held[string(n.kbuf)]
	if e == nil {
		c := &cached[K, V]{key: string(n.kbuf), old: Old[V]{Null: true}}
		if r.Old != nil {
			c.old = *r.Old
		}
		e = n.order.PushBack(c)
		n.held[c.key] = e
	} else {
		n.order.MoveToBack(e)
	}
	c := e.Value.(*cached[K, V])
	headers := c.record.Headers[:0]
	for _, h := range r.Headers {
		headers = append(headers, task.Header{Key: h.Key, Value: bytes.Clone(h.Value)})
	}
	c.record = *r
	c.record.Headers, c.record.Old = headers, nil
	if r.Old != nil {
		c.record.Old = &c.old
	}
	if len(n.held) <= n.op.MaxKeys {
		return nil
	}
	return n.release()
}

// release sends the update on that is the longest unchanged.
func (n *cache[K, V]) release() error {
	c := n.order.Remove(n.order.Front()).(*cached[K, V])
	delete(n.held, c.key)
	if c.record.NullValue && c.record.Old != nil && c.old.Null {
		return nil
	}
	return pushBranch(n.site.task, n.next, &c.record)
}

// flush sends all updates on.
func (n *cache[K, V]) flush() (some bool, err error) {
	for n.order.Len() > 0 {
		some = true
		if err := n.release(); err != nil {
			return true, err
		}
	}
	return some, nil
}
