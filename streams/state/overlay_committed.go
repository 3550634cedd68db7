package state

import "iter"

// Committed is a store as the last commit left it: what the open transaction has
// written is not there. It is for the owner of the overlay, and valid until the
// owner's next call to it.
type Committed struct{ overlay *Overlay }

// Committed returns the committed contents, of which the image may be behind.
func (o *Overlay) Committed() Committed { return Committed{o} }

// Get returns the committed value of key. The slice is valid until the next call on
// the store and must not be changed.
func (c Committed) Get(key []byte) (value []byte, ok bool, err error) {
	if e := c.overlay.table.get(key); e != nil && e.committed.kind != unknown {
		return e.committed.value(), e.committed.kind == present, nil
	}
	v, ok, err := c.overlay.image.Get(key)
	if err != nil {
		return nil, false, c.overlay.fail("get", err)
	}
	return v, ok, nil
}

// Range yields the committed rows with from <= key < to, as [Store.Range] does.
func (c Committed) Range(from, to []byte) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		err := c.overlay.merge(from, to, func(m merged) bool {
			return !m.hasCommitted || yield(Row{m.key, m.committed}, nil)
		})
		if err != nil {
			yield(Row{}, err)
		}
	}
}

// Position is how much of the changelog the committed contents have.
func (c Committed) Position() Position { return c.overlay.position }
