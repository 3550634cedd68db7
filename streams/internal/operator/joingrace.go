package operator

import (
	"encoding/binary"

	"github.com/millrace/millrace/streams/internal/task"
)

// graceBuffer holds the records of a stream until stream time, that of the stream,
// is a grace past them, so that the versioned table they are to meet has had time
// to be told. They leave in order of (time, key bytes, arrival). A row is
//
//	time (8 bytes), key, sequence (8)
//
// with headers and value as its value.
type graceBuffer[K, V any] struct {
	site      *Site
	clock     *Clock
	seq       *Clock
	store     rawStore
	key       *Codec[K]
	val       *Codec[V]
	graceMs   int64
	firstMs   int64 // nothing is due before
	uncertain bool
	kbuf, row []byte
	vbuf      []byte
	out       Record[K, V]
}

func newGraceBuffer[K, V any](b *Builder, site *Site, node, store string, key *Codec[K], val *Codec[V], graceMs int64) (*graceBuffer[K, V], error) {
	raw, err := openRaw(b, store)
	return &graceBuffer[K, V]{site: site, clock: b.Clock(node), seq: b.Clock(node + " count"), store: raw, key: key, val: val,
		graceMs: graceMs, uncertain: true, vbuf: buffer()}, err
}

// put holds a record; ok is false if it is too late for that.
func (g *graceBuffer[K, V]) put(r *Record[K, V]) (ok bool, err error) {
	g.clock.Advance(r.TimeMs)
	if r.TimeMs < g.clock.Ms()-g.graceMs {
		return false, nil
	}
	encode := func() error {
		return g.site.user(func() (err error) {
			g.kbuf = binary.BigEndian.AppendUint64(g.kbuf[:0], uint64(r.TimeMs))
			if g.kbuf, err = g.key.Append(g.kbuf, &r.Key); err != nil {
				return err
			}
			g.vbuf, err = g.val.Append(appendHeaders(g.vbuf[:0], r.Headers), &r.Value)
			return err
		})
	}
	if err := encode(); err != nil {
		if done, err := g.site.retry(err, encode); err != nil || !done {
			return true, err
		}
	}
	seq := g.seq.Ms() + 1
	g.seq.Advance(seq)
	g.firstMs = min(g.firstMs, r.TimeMs)
	return true, g.store.Put(binary.BigEndian.AppendUint64(g.kbuf, uint64(seq)), g.vbuf)
}

// due takes the records out whose time has come.
func (g *graceBuffer[K, V]) due(visit func(*Record[K, V]) error) error {
	for {
		bound := g.clock.Ms() - g.graceMs + 1
		if !g.uncertain && g.firstMs >= bound || bound <= 0 {
			return nil
		}
		g.row, g.firstMs, g.uncertain = g.row[:0], never, false
		for row, err := range g.store.Range(nil, nil) {
			if err != nil {
				return err
			}
			g.firstMs = int64(binary.BigEndian.Uint64(row.Key))
			g.row, g.vbuf = append(g.row, row.Key...), append(g.vbuf[:0], row.Value...)
			break
		}
		if g.firstMs >= bound {
			return nil
		}
		g.uncertain = true
		if err := g.store.Delete(g.row); err != nil {
			return err
		}
		if err := g.take(visit); err != nil {
			return err
		}
	}
}

// take gives out the record in row and vbuf.
func (g *graceBuffer[K, V]) take(visit func(*Record[K, V]) error) (err error) {
	g.out = Record[K, V]{TimeMs: g.firstMs}
	if g.out.Key, err = keyOf(g.site, g.key, g.store.name, g.row[8:len(g.row)-8]); err != nil {
		return err
	}
	headers, value, ok := splitHeaders(g.vbuf)
	if !ok {
		return g.store.wrap(errHeld)
	}
	g.out.Headers = headers
	g.site.enter()
	g.out.Value, err = g.val.Serde.Decode(value)
	g.site.leave()
	if err != nil {
		return g.store.wrap(err)
	}
	return visit(&g.out)
}

// JoinGrace is JoinTable with a versioned table and a grace; see graceBuffer. A
// record that is too late to wait meets the table at once, and so does one without
// a key.
type JoinGrace[K, V, VT, VR any] struct {
	JoinTable[K, V, VT, VR]
	Store   string
	Value   *Codec[V]
	GraceMs int64
}

// Build makes the node of one task.
func (j *JoinGrace[K, V, VT, VR]) Build(b *Builder) (Sink[K, V], error) {
	join, err := j.JoinTable.Build(b)
	if err != nil {
		return nil, err
	}
	n := &joinGrace[K, V]{site: b.Site(j.Node, task.Process, j.Handler), left: j.Left, join: join}
	n.buffer, err = newGraceBuffer(b, n.site, j.Node, j.Store, j.Key, j.Value, j.GraceMs)
	return n, err
}

type joinGrace[K, V any] struct {
	site   *Site
	left   bool
	join   Sink[K, V]
	buffer *graceBuffer[K, V]
}

// Push implements Sink.
func (n *joinGrace[K, V]) Push(r *Record[K, V]) error {
	if r.NullKey || r.NullValue {
		return n.join.Push(r) // which drops it, or sends it on alone
	}
	ok, err := n.buffer.put(r)
	if err != nil {
		return err
	}
	if !ok {
		if err := pushBranch(n.site.task, n.join, r); err != nil {
			return err
		}
	}
	return n.buffer.due(func(r *Record[K, V]) error { return pushBranch(n.site.task, n.join, r) })
}
