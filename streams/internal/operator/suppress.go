package operator

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/millrace/millrace/streams/internal/task"
)

// ErrBufferFull reports a table whose updates were to be held back, but of which
// there were more than it was allowed to hold.
var ErrBufferFull = errors.New("the buffer of held-back updates is full")

// Suppress holds the updates of a table back and lets the latest of each key go
// when its time has come: a wait after the first that was held back, or when its
// window closes. They go in order of (that time, key bytes). Stream time is that of
// this node.
//
// A full buffer lets the earliest go before their time, or fails the task. A
// buffered key has two rows in the store:
//
//	1, key: what it was held back for (8 bytes), time of the record (8), flags,
//	    headers, value before the first update, latest value
//	0, what it was held back for (8), key: nothing
type Suppress[K, V any] struct {
	Node       string
	Store      string
	Handler    task.Handler
	Key        *Codec[K]
	Value      *Codec[V]
	WaitMs     int64
	Due        func(*K) int64 // when the update of a window may go; nil: the record's time + wait
	Final      bool           // deletions do not go out
	MaxRecords int            // 0: no limit
	MaxBytes   int
	Fail       bool // when full
	From       View[V]
	Out        *Outlet[K, V]
}

// Build makes the node of one task.
func (s *Suppress[K, V]) Build(b *Builder) (Sink[K, V], error) {
	n := &suppress[K, V]{op: s, site: b.Site(s.Node, task.Process, s.Handler), clock: b.Clock(s.Node), uncertain: true, vbuf: buffer(), obuf: buffer()}
	var err error
	if n.store, err = openRaw(b, s.Store); err != nil {
		return nil, err
	}
	n.next, err = s.Out.Build(b)
	return n, err
}

type suppress[K, V any] struct {
	op        *Suppress[K, V]
	site      *Site
	clock     *Clock
	store     rawStore
	next      Sink[K, V]
	firstMs   int64 // nothing is due before
	uncertain bool  // firstMs is to be looked up
	counted   bool  // records and bytes are known
	records   int
	bytes     int
	key       []byte // 1, key
	index     []byte
	vbuf      []byte
	obuf      []byte
	row       []byte
	out       Record[K, V]
	old       Old[V]
}

const (
	heldNull    byte = 1 << iota // the latest value is a deletion
	heldOld                      // the value before is known
	heldOldNull                  // and there was none
)

// Push implements Sink.
func (n *suppress[K, V]) Push(r *Record[K, V]) error {
	n.clock.Advance(r.TimeMs)
	encode := func() error { return n.site.user(func() error { return n.encode(r) }) }
	if err := encode(); err != nil {
		if done, err := n.site.retry(err, encode); err != nil || !done {
			return err
		}
	}
	if err := n.count(); err != nil {
		return err
	}
	if err := n.hold(r); err != nil {
		return err
	}
	for {
		first, err := n.first()
		if err != nil {
			return err
		}
		if first > n.clock.Ms() {
			break
		}
		if err := n.release(); err != nil {
			return err
		}
	}
	for n.full() {
		if n.op.Fail {
			return fmt.Errorf("node %s: %w: %d keys, %d bytes; the limit is %d keys, %d bytes (0: none)",
				n.op.Node, ErrBufferFull, n.records, n.bytes, n.op.MaxRecords, n.op.MaxBytes)
		}
		if err := n.release(); err != nil {
			return err
		}
	}
	return nil
}

func (n *suppress[K, V]) full() bool {
	return n.op.MaxRecords > 0 && n.records > n.op.MaxRecords || n.op.MaxBytes > 0 && n.bytes > n.op.MaxBytes && n.records > 0
}

func (n *suppress[K, V]) encode(r *Record[K, V]) (err error) {
	if n.key, err = n.op.Key.Append(append(n.key[:0], 1), &r.Key); err != nil {
		return err
	}
	n.vbuf, n.obuf = n.vbuf[:0], n.obuf[:0]
	if !r.NullValue {
		if n.vbuf, err = n.op.Value.Append(n.vbuf, &r.Value); err != nil {
			return err
		}
	}
	if r.Old != nil && !r.Old.Null {
		n.obuf, err = n.op.Value.Append(n.obuf, &r.Old.Value)
	}
	return err
}

// hold puts an update into the buffer, in place of one of its key.
func (n *suppress[K, V]) hold(r *Record[K, V]) error {
	had, ok, err := n.store.Get(n.key)
	if err != nil {
		return err
	}
	var flags byte
	if r.NullValue {
		flags = heldNull
	}
	due := r.TimeMs + n.op.WaitMs
	switch {
	case ok:
		h, err := n.split(had)
		if err != nil {
			return err
		}
		due = h.dueMs
		flags |= h.flags &^ heldNull
		n.obuf = append(n.obuf[:0], h.old...)
		n.bytes -= len(n.key) + len(had)
	default:
		if n.op.Due != nil {
			due = n.op.Due(&r.Key)
		}
		if r.Old != nil {
			flags |= heldOld
			if r.Old.Null {
				flags |= heldOldNull
			}
		}
		n.index = append(binary.BigEndian.AppendUint64(append(n.index[:0], 0), uint64(due)), n.key[1:]...)
		if err := n.store.Put(n.index, []byte{}); err != nil {
			return err
		}
		n.records++
		n.firstMs = min(n.firstMs, due)
	}
	n.row = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(n.row[:0], uint64(due)), uint64(r.TimeMs))
	n.row = appendHeaders(append(n.row, flags), r.Headers)
	n.row = append(binary.AppendUvarint(n.row, uint64(len(n.obuf))), n.obuf...)
	n.row = append(n.row, n.vbuf...)
	n.bytes += len(n.key) + len(n.row)
	return n.store.Put(n.key, n.row)
}

// count learns, once, how much a task that comes back holds.
func (n *suppress[K, V]) count() error {
	if n.counted || n.op.MaxRecords == 0 && n.op.MaxBytes == 0 {
		return nil
	}
	n.counted, n.records, n.bytes = true, 0, 0
	for row, err := range n.store.Range([]byte{1}, nil) {
		if err != nil {
			return err
		}
		n.records++
		n.bytes += len(row.Key) + len(row.Value)
	}
	return nil
}

// first is when the next update may go.
func (n *suppress[K, V]) first() (int64, error) {
	if !n.uncertain {
		return n.firstMs, nil
	}
	n.firstMs, n.uncertain = never, false
	for row, err := range n.store.Range(nil, []byte{1}) {
		if err != nil {
			return 0, err
		}
		n.firstMs = int64(binary.BigEndian.Uint64(row.Key[1:]))
		break
	}
	return n.firstMs, nil
}

// release lets the update go that is due first.
func (n *suppress[K, V]) release() error {
	n.uncertain = true
	n.index = n.index[:0]
	for row, err := range n.store.Range(nil, []byte{1}) {
		if err != nil {
			return err
		}
		n.index = append(n.index, row.Key...)
		break
	}
	n.key = append(append(n.key[:0], 1), n.index[9:]...)
	row, ok, err := n.store.Get(n.key)
	if err != nil {
		return err
	}
	if !ok {
		return n.store.wrap(errors.New("an update that is due has no row"))
	}
	n.row = append(n.row[:0], row...)
	n.records--
	n.bytes -= len(n.key) + len(n.row)
	if err := n.store.Delete(n.index); err != nil {
		return err
	}
	if err := n.store.Delete(n.key); err != nil {
		return err
	}
	return n.send()
}

// send passes the update in row on.
func (n *suppress[K, V]) send() error {
	h, err := n.split(n.row)
	if err != nil {
		return err
	}
	if h.flags&heldNull != 0 && n.op.Final {
		return nil
	}
	n.out = Record[K, V]{TimeMs: h.timeMs, NullValue: h.flags&heldNull != 0, Headers: h.headers}
	if n.out.Key, err = keyOf(n.site, n.op.Key, n.op.Store, n.key[1:]); err != nil {
		return err
	}
	decode := func(b []byte, null bool, v *V) {
		if null || err != nil {
			return
		}
		err = n.site.user(func() (err error) {
			*v, err = n.op.Value.Serde.Decode(b)
			return err
		})
	}
	decode(h.value, n.out.NullValue, &n.out.Value)
	if h.flags&heldOld != 0 {
		n.old = Old[V]{Null: h.flags&heldOldNull != 0}
		decode(h.old, n.old.Null, &n.old.Value)
		n.out.Old = &n.old
	}
	if err != nil {
		return n.store.wrap(err)
	}
	return pushBranch(n.site.task, n.next, &n.out)
}
