package operator

import (
	"slices"

	"github.com/millrace/millrace/streams/internal/task"
)

// SelfJoin joins a stream with itself, with one buffer. A record meets itself
// once. The pairs that have it as left come first, then those that have it as
// right, itself among them, each in order of the other's time.
type SelfJoin[K, V, VR any] struct {
	Node    string
	Rows    string // store
	Handler task.Handler
	Reach   Reach
	LateTo  string // see WindowedAggregate
	Key     *Codec[K]
	Value   *Codec[V]
	New     func() PairFunc[K, V, V, VR]
	Out     *Outlet[K, VR]
}

// Build makes the node of one task.
func (j *SelfJoin[K, V, VR]) Build(b *Builder) (Sink[K, V], error) {
	c := &streamJoin[K, VR]{site: b.Site(j.Node, task.Process, j.Handler), clock: b.Clock(j.Node), seq: b.Clock(j.Node + " count"),
		reach: j.Reach, lateTo: j.LateTo, key: j.Key, nils: NilOf[VR]()}
	var err error
	if c.next, err = j.Out.Build(b); err != nil {
		return nil, err
	}
	rows, err := newJoinBuffer(b, c.site, j.Rows, j.Value, j.Reach.segmentMs())
	return &selfJoin[K, V, VR]{streamSide[K, V, V, VR]{join: c, own: rows, other: rows, fn: j.New()}}, err
}

// selfJoin uses of a side what passes results on.
type selfJoin[K, V, VR any] struct {
	streamSide[K, V, V, VR]
}

// Push implements Sink.
func (n *selfJoin[K, V, VR]) Push(r *Record[K, V]) error {
	c := n.join
	switch {
	case r.NullKey:
		c.site.drop(dropNullKey)
		return nil
	case r.NullValue:
		c.site.drop(dropNullValue)
		return nil
	case c.reach.Strict && r.TimeMs+c.reach.GraceMs < c.clock.Ms():
		return c.site.late(c.lateTo, c.clock)
	}
	before := c.clock.Ms()
	c.clock.Advance(r.TimeMs)
	fatal, err := n.compute(r)
	if err != nil {
		done, err := c.site.retry(err, func() (err error) {
			fatal, err = n.compute(r)
			return err
		})
		if err != nil {
			return err
		}
		if !done {
			return n.due(before, r.TimeMs)
		}
	}
	if fatal != nil {
		return fatal
	}
	if err := n.own.put(n.kbuf, r.TimeMs, c.count()); err != nil {
		return err
	}
	if err := n.pass(r); err != nil || c.clock.Ms() == before {
		return err
	}
	return c.moveOn(n.own)
}

func (n *selfJoin[K, V, VR]) compute(r *Record[K, V]) (fatal, err error) {
	c := n.join
	clear(n.results)
	n.results = n.results[:0]
	c.site.enter()
	n.kbuf, err = c.key.Append(n.kbuf[:0], &r.Key)
	c.site.leave()
	if err == nil {
		err = n.own.encode(&r.Value)
	}
	if err != nil {
		return nil, err
	}
	if fatal = n.look(r.TimeMs-c.reach.BeforeMs, r.TimeMs+c.reach.AfterMs); fatal != nil {
		return fatal, nil
	}
	n.in = Record[K, struct{}]{Key: r.Key, Headers: r.Headers}
	for i := range n.found {
		n.in.TimeMs = max(r.TimeMs, n.found[i].timeMs)
		if err := n.pair(r.Value, n.found[i].value, true); err != nil {
			return nil, err
		}
	}
	if fatal = n.look(r.TimeMs-c.reach.AfterMs, r.TimeMs+c.reach.BeforeMs); fatal != nil {
		return fatal, nil
	}
	at := len(n.found)
	for at > 0 && n.found[at-1].timeMs > r.TimeMs {
		at--
	}
	n.found = slices.Insert(n.found, at, held[V]{timeMs: r.TimeMs, value: r.Value})
	for i := range n.found {
		n.in.TimeMs = max(r.TimeMs, n.found[i].timeMs)
		if err := n.pair(n.found[i].value, r.Value, true); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func (n *selfJoin[K, V, VR]) look(from, to int64) (err error) {
	clear(n.found)
	n.found, err = n.own.near(n.kbuf, from, to, n.found[:0])
	return err
}
