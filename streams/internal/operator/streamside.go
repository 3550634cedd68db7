package operator

// streamSide takes the records of one side of a stream-stream join: VO are its
// own values, VX those of the other side.
type streamSide[K, VO, VX, V any] struct {
	join    *streamJoin[K, V]
	side    byte
	own     *joinBuffer[VO]
	other   *joinBuffer[VX]
	fn      PairFunc[K, VO, VX, V]
	backMs  int64 // how far before a record of this side one of the other may be
	forthMs int64 // and how far after
	lone    bool  // records may go out alone

	kbuf    []byte
	in      Record[K, struct{}]
	found   []held[VX]
	results []result[V]
	mine    VO
}

// result is one joined value, not yet passed on.
type result[V any] struct {
	value  V
	null   bool
	timeMs int64
}

func (n *streamSide[K, VO, VX, V]) aheadMs() int64 { return n.forthMs }

// Push implements Sink.
func (n *streamSide[K, VO, VX, V]) Push(r *Record[K, VO]) error {
	c := n.join
	switch {
	case r.NullValue:
		c.site.drop(dropNullValue)
		return nil
	case r.NullKey && !n.lone:
		c.site.drop(dropNullKey)
		return nil
	case c.reach.Strict && !r.NullKey && r.TimeMs+c.reach.GraceMs < c.clock.Ms():
		return c.site.late(c.lateTo, c.clock)
	}
	before := c.clock.Ms()
	if !r.NullKey {
		c.clock.Advance(r.TimeMs)
	}
	fatal, err := n.compute(r)
	if err != nil {
		done, err := c.site.retry(err, func() (err error) {
			fatal, err = n.compute(r)
			return err
		})
		if err != nil {
			return err
		}
		if !done { // this record is left out, what its time made due is not
			n.found, n.results = n.found[:0], n.results[:0]
			return n.due(before, r.TimeMs)
		}
	}
	if fatal != nil {
		return fatal
	}
	return n.emit(r, before)
}

// compute finds whom the record meets and makes the results, without a trace.
// fatal is an error of a store.
func (n *streamSide[K, VO, VX, V]) compute(r *Record[K, VO]) (fatal, err error) {
	c := n.join
	clear(n.found)
	clear(n.results)
	n.found, n.results = n.found[:0], n.results[:0]
	n.in = Record[K, struct{}]{Key: r.Key, NullKey: r.NullKey, TimeMs: r.TimeMs, Headers: r.Headers}
	if !r.NullKey {
		c.site.enter()
		n.kbuf, err = c.key.Append(n.kbuf[:0], &r.Key)
		c.site.leave()
		if err != nil {
			return nil, err
		}
		if err = n.own.encode(&r.Value); err != nil {
			return nil, err
		}
		if n.found, fatal = n.other.near(n.kbuf, r.TimeMs-n.backMs, r.TimeMs+n.forthMs, n.found); fatal != nil {
			return fatal, nil
		}
	}
	for i := range n.found {
		n.in.TimeMs = max(r.TimeMs, n.found[i].timeMs)
		if err := n.pair(r.Value, n.found[i].value, true); err != nil {
			return nil, err
		}
	}
	if n.nobody(r) {
		var none VX
		return nil, n.pair(r.Value, none, false)
	}
	return nil, nil
}

// nobody reports whether the record goes out alone at once.
func (n *streamSide[K, VO, VX, V]) nobody(r *Record[K, VO]) bool {
	if !n.lone || len(n.found) > 0 {
		return false
	}
	return r.NullKey || !n.join.reach.Strict && r.TimeMs+n.forthMs < n.join.clock.Ms()
}

func (n *streamSide[K, VO, VX, V]) pair(own VO, other VX, has bool) error {
	s := n.join.site
	s.enter()
	v, err := n.fn(s.ctx, &n.in, own, true, other, has)
	s.leave()
	n.results = append(n.results, result[V]{v, n.join.nils.Is(&v), n.in.TimeMs})
	return err
}

// emit writes the record down and passes on what follows from it.
func (n *streamSide[K, VO, VX, V]) emit(r *Record[K, VO], before int64) error {
	c := n.join
	if r.NullKey {
		return n.pass(r)
	}
	seq := c.count()
	if err := n.own.put(n.kbuf, r.TimeMs, seq); err != nil {
		return err
	}
	if c.wait != nil {
		for i := range n.found {
			if err := c.wait.met(1-n.side, n.kbuf, n.found[i].timeMs, n.found[i].seq); err != nil {
				return err
			}
		}
		if n.lone && len(n.results) == 0 {
			if err := c.wait.put(n.side, n.kbuf, r.TimeMs, seq); err != nil {
				return err
			}
		}
		if r.TimeMs == c.clock.Ms() {
			if err := c.emitWaiting(n.forthMs); err != nil {
				return err
			}
		}
	}
	if err := n.pass(r); err != nil || c.clock.Ms() == before {
		return err
	}
	return c.moveOn(n.own, n.other)
}

// due does what the time of a record makes due that is itself left out.
func (n *streamSide[K, VO, VX, V]) due(before, timeMs int64) error {
	c := n.join
	if c.wait != nil && timeMs == c.clock.Ms() {
		if err := c.emitWaiting(n.forthMs); err != nil {
			return err
		}
	}
	if c.clock.Ms() == before {
		return nil
	}
	return c.moveOn(n.own, n.other)
}

func (n *streamSide[K, VO, VX, V]) pass(r *Record[K, VO]) error {
	c := n.join
	for i := range n.results {
		x := &n.results[i]
		c.out = Record[K, V]{Key: r.Key, NullKey: r.NullKey, Value: x.value, NullValue: x.null, TimeMs: x.timeMs, Headers: r.Headers}
		if err := pushBranch(c.site.task, c.next, &c.out); err != nil {
			return err
		}
	}
	return nil
}

// alone implements loner.
func (n *streamSide[K, VO, VX, V]) alone(w *waiter) error {
	c := n.join
	ok, err := n.own.get(w.key, w.timeMs, w.seq, &n.mine)
	if err != nil {
		return err
	}
	if !ok {
		return missing(n.own.name)
	}
	c.out = Record[K, V]{TimeMs: w.timeMs}
	if err := rowAs(c.key, w.key, &c.out); err != nil {
		return err
	}
	n.in = Record[K, struct{}]{Key: c.out.Key, TimeMs: w.timeMs}
	var none VX
	c.site.enter()
	c.out.Value, err = n.fn(c.site.ctx, &n.in, n.mine, true, none, false)
	c.site.leave()
	if err != nil {
		return &FunctionError{err}
	}
	c.out.NullValue = c.nils.Is(&c.out.Value)
	return nil
}
