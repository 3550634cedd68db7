package state

import "iter"

// Backward implements [Store].
func (o *Overlay) Backward(from, to []byte) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		err := o.mergeBackward(from, to, func(m merged) bool {
			switch {
			case m.open == present:
				return yield(Row{m.key, m.value}, nil)
			case m.open == deleted, !m.hasCommitted:
				return true
			}
			return yield(Row{m.key, m.committed}, nil)
		})
		if err != nil {
			yield(Row{}, err)
		}
	}
}

// mergeBackward is merge in descending order.
func (o *Overlay) mergeBackward(from, to []byte, visit func(merged) bool) error {
	if emptyRange(from, to) {
		return nil
	}
	o.table.index()
	w := climb{table: o.table, at: o.table.below(to), from: string(from)}
	for row, err := range o.image.Backward(from, to) {
		if err != nil {
			return o.fail("range", err)
		}
		for w.more() && w.at.key > string(row.Key) {
			if !visit(w.take()) {
				return nil
			}
		}
		if !visit(w.match(row)) {
			return nil
		}
	}
	for w.more() {
		if !visit(w.take()) {
			return nil
		}
	}
	return nil
}

// climb is a walk that goes down from the end.
type climb struct {
	table *table
	at    *entry
	from  string
	key   []byte // scratch
}

func (c *climb) more() bool { return c.at != nil && c.at.key >= c.from }

func (c *climb) take() merged {
	e := c.at
	c.at = c.table.before(e.key)
	c.key = append(c.key[:0], e.key...)
	return merged{
		key:          c.key,
		open:         e.open.kind,
		value:        e.open.value(),
		committed:    e.committed.value(),
		hasCommitted: e.committed.kind == present,
	}
}

func (c *climb) match(row Row) merged {
	if c.at == nil || c.at.key != string(row.Key) {
		return merged{key: row.Key, committed: row.Value, hasCommitted: true}
	}
	known := c.at.committed.kind != unknown
	m := c.take()
	if !known {
		m.committed, m.hasCommitted = row.Value, true
	}
	return m
}
