package state

import (
	"errors"
	"slices"
)

// Log gives each identity that the open transaction changed to emit, once, in
// key order; a nil value is a tombstone. It changes nothing. The slices are
// valid during the call of emit.
func (o *Overlay) Log(emit func(key, value []byte) error) error {
	o.sorter.sort(o.open)
	for _, e := range o.open {
		if e.open.kind == forgotten {
			continue
		}
		o.keys = append(o.keys[:0], e.key...)
		if err := emit(o.keys, e.open.value()); err != nil {
			return o.fail("log", err)
		}
	}
	return nil
}

// Commit is called when the transaction that holds the logged records is known
// to be committed; pos follows the last of them. From time to time (see
// [OverlayOptions]) the committed rows go to the image.
func (o *Overlay) Commit(pos Position) error {
	if pos != o.position {
		o.position, o.stale = pos, true
	}
	if len(o.open) == 0 {
		return nil
	}
	for _, e := range o.open {
		o.settle(e)
	}
	o.forget()
	o.commits++
	if o.commits >= o.options.FlushCommits || o.dirtyBytes >= o.options.FlushBytes {
		return o.Flush()
	}
	return nil
}

// settle makes the open version of an entry its committed one. The two swap
// their buffers, so the next write of this key has one to write into.
func (o *Overlay) settle(e *entry) {
	k := e.open.kind
	if k != forgotten {
		e.open, e.committed = e.committed, e.open
		if !e.dirty {
			e.dirty = true
			o.dirty = append(o.dirty, e)
			o.dirtyBytes += len(e.key) + entryCost
		}
		o.dirtyBytes += len(e.committed.val)
	}
	o.table.write(&e.open, nil, unknown)
}

// Abort drops what the open transaction wrote.
func (o *Overlay) Abort() {
	for _, e := range o.open {
		o.table.write(&e.open, nil, unknown)
	}
	o.forget()
}

func (o *Overlay) forget() {
	clear(o.open)
	o.open = o.open[:0]
	o.openBytes = 0
}

// Flush applies the committed rows that the image lacks, and their position, in
// one atomic step. It is called by Commit when due, and by the owner before it
// closes the image. Rows leave memory only after the image has them. What was made
// and deleted since the last flush never gets there.
func (o *Overlay) Flush() error {
	if !o.stale && len(o.dirty) == 0 {
		return nil
	}
	o.dirty = slices.DeleteFunc(o.dirty, func(e *entry) bool {
		gone := e.committed.kind == deleted && e.fresh
		if gone {
			e.dirty = false
		}
		return gone
	})
	o.sorter.sort(o.dirty)
	o.keys = o.keys[:0]
	for _, e := range o.dirty {
		o.keys = append(o.keys, e.key...)
	}
	rows, at := o.rows[:0], 0
	for _, e := range o.dirty {
		end := at + len(e.key)
		rows = append(rows, Row{Key: o.keys[at:end:end], Value: e.committed.value()})
		at = end
	}
	err := o.image.Apply(rows, o.position)
	clear(rows)
	o.rows = rows[:0]
	if err != nil {
		return o.fail("flush", err)
	}
	for _, e := range o.dirty {
		e.dirty, e.fresh = false, e.committed.kind == deleted
		if !e.fresh {
			o.high, o.stocked = max(o.high, e.key), true
		}
	}
	clear(o.dirty)
	o.dirty, o.dirtyBytes, o.commits, o.stale = o.dirty[:0], 0, 0, false
	if o.table.bytes > o.options.CacheBytes && len(o.open) == 0 {
		o.table.reset()
		if o.stocked {
			o.floor = o.high + "\x00"
		}
	}
	return nil
}

// Close flushes what is committed, drops what is not and closes the image.
func (o *Overlay) Close() error {
	o.Abort()
	if err := o.Flush(); err != nil {
		return errors.Join(err, o.image.Close())
	}
	return o.image.Close()
}

// Drop closes the image without writing to it, for an owner that no longer
// knows whether its rows are committed.
func (o *Overlay) Drop() error { return o.image.Close() }
