package state

import (
	"fmt"
	"iter"
)

// Memory is an [Image] that lives as long as the process. After a restart its
// position is zero, so it is rebuilt from the whole changelog.
type Memory struct {
	rows     *table
	position Position
	closed   bool
}

var _ Image = (*Memory)(nil)

// NewMemory returns an empty image.
func NewMemory() *Memory { return &Memory{rows: newTable()} }

// Get implements [Image].
func (m *Memory) Get(key []byte) ([]byte, bool, error) {
	if m.closed {
		return nil, false, fmt.Errorf("%w: memory image", ErrClosed)
	}
	e := m.rows.get(key)
	if e == nil {
		return nil, false, nil
	}
	return e.committed.value(), true, nil
}

// Range implements [Image].
func (m *Memory) Range(from, to []byte) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		if m.closed {
			yield(Row{}, fmt.Errorf("%w: memory image", ErrClosed))
			return
		}
		if emptyRange(from, to) {
			return
		}
		m.rows.index()
		var key []byte
		for e := m.rows.seek(from); e != nil && inRange(e.key, to); e = e.next[0] {
			key = append(key[:0], e.key...)
			if !yield(Row{key, e.committed.value()}, nil) {
				return
			}
		}
	}
}

// Backward implements [Image].
func (m *Memory) Backward(from, to []byte) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		if m.closed {
			yield(Row{}, fmt.Errorf("%w: memory image", ErrClosed))
			return
		}
		if emptyRange(from, to) {
			return
		}
		m.rows.index()
		var key []byte
		for e := m.rows.below(to); e != nil && e.key >= string(from); e = m.rows.before(e.key) {
			key = append(key[:0], e.key...)
			if !yield(Row{key, e.committed.value()}, nil) {
				return
			}
		}
	}
}

// Apply implements [Image].
func (m *Memory) Apply(rows []Row, pos Position) error {
	if m.closed {
		return fmt.Errorf("%w: memory image", ErrClosed)
	}
	for _, r := range rows {
		if r.Value == nil {
			m.rows.remove(r.Key)
			continue
		}
		m.rows.write(&m.rows.at(r.Key).committed, r.Value, present)
	}
	m.position = pos
	return nil
}

// Position implements [Image].
func (m *Memory) Position() Position { return m.position }

// Wipe implements [Image].
func (m *Memory) Wipe() error {
	if m.closed {
		return fmt.Errorf("%w: memory image", ErrClosed)
	}
	m.rows.reset()
	m.position = Position{}
	return nil
}

// Close implements [Image].
func (m *Memory) Close() error {
	m.closed = true
	m.rows.reset()
	return nil
}
