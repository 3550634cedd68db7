package state

import (
	"fmt"
	"iter"
)

// OverlayOptions tunes an [Overlay]. The zero value works.
type OverlayOptions struct {
	// Name is the store's name in error messages.
	Name string

	// CacheBytes is how much settled data, already in the image, is kept in
	// memory to answer reads. Default 16 MiB.
	CacheBytes int

	// FlushBytes is how much settled data may wait before Commit flushes it.
	// Default 4 MiB.
	FlushBytes int

	// Windowed says that rows begin with the start of a window, 8 bytes, and are
	// expired by it: then Expire needs no order of the rows in memory.
	Windowed bool

	// FlushCommits is after how many commits with changes Commit flushes.
	// Default 10; 1 flushes at every commit.
	FlushCommits int
}

const (
	defaultCacheBytes   = 16 << 20
	defaultFlushBytes   = 4 << 20
	defaultFlushCommits = 10
)

// Validate names the field that is out of its limits.
func (o OverlayOptions) Validate() error {
	switch {
	case o.CacheBytes < 0:
		return fmt.Errorf("state: OverlayOptions.CacheBytes is %d, must not be negative", o.CacheBytes)
	case o.FlushBytes < 0:
		return fmt.Errorf("state: OverlayOptions.FlushBytes is %d, must not be negative", o.FlushBytes)
	case o.FlushCommits < 0:
		return fmt.Errorf("state: OverlayOptions.FlushCommits is %d, must not be negative", o.FlushCommits)
	}
	return nil
}

func (o OverlayOptions) withDefaults() OverlayOptions {
	if o.CacheBytes == 0 {
		o.CacheBytes = defaultCacheBytes
	}
	if o.FlushBytes == 0 {
		o.FlushBytes = defaultFlushBytes
	}
	if o.FlushCommits == 0 {
		o.FlushCommits = defaultFlushCommits
	}
	return o
}

// Overlay is a [Store] over an [Image]. It holds in memory, by key, the write
// of the open transaction, and the committed row where that is not yet in the
// image or is kept to answer reads. A read asks the open side, the committed
// side and the image, in this order. The task that owns the overlay is its only
// user.
type Overlay struct {
	image   Image
	options OverlayOptions

	table     *table
	open      []*entry // what the open transaction touched
	openBytes int

	position   Position // of the committed rows, in memory or in the image
	stale      bool     // position is ahead of the image's
	dirty      []*entry // committed, not yet in the image
	dirtyBytes int
	commits    int // commits with changes since the last flush
	// Every row of the image with a key from floor on is in memory, too: what is
	// not there, does not exist. It holds as the rows that a flush writes stay in
	// memory, and rises when they go. No row of the image is above high.
	floor, high string
	floored     bool  // floor is known
	stocked     bool  // the image has had a row
	rows        []Row // scratch of Flush
	keys        []byte
	sorter      sorter
}

var _ Store = (*Overlay)(nil)

// NewOverlay puts an empty overlay over image. The image belongs to the overlay
// from now on: only Flush may change it.
func NewOverlay(image Image, options OverlayOptions) *Overlay {
	o := &Overlay{
		image:    image,
		options:  options.withDefaults(),
		table:    newTable(),
		position: image.Position(),
		floored:  true,
	}
	if o.options.Windowed {
		o.table.windows = newWindows[*entry]()
	}
	for row, err := range image.Backward(nil, nil) {
		o.high, o.stocked = string(row.Key), true
		o.floor, o.floored = o.high+"\x00", err == nil // an error shows with the next read
		break
	}
	return o
}

// absent reports a key that has no row in the image, if it has none in memory.
func (o *Overlay) absent(key []byte) bool { return o.floored && string(key) >= o.floor }

// Get implements [Store].
func (o *Overlay) Get(key []byte) ([]byte, bool, error) {
	e := o.table.get(key)
	if e != nil {
		if e.open.kind == present || e.open.kind == deleted {
			return e.open.value(), e.open.kind == present, nil
		}
		if e.committed.kind != unknown {
			return e.committed.value(), e.committed.kind == present, nil
		}
	}
	if e != nil && e.fresh || e == nil && o.absent(key) {
		return nil, false, nil
	}
	v, ok, err := o.image.Get(key)
	if err != nil {
		return nil, false, o.fail("get", err)
	}
	// Remember what the image said, absence included, so that a hot key is
	// read from it once. A cache that is full is emptied by the next flush.
	if e == nil && o.table.bytes > o.options.CacheBytes {
		return v, ok, nil
	}
	k := deleted
	if ok {
		k = present
	}
	e = o.table.at(key)
	e.fresh = !ok
	o.table.write(&e.committed, v, k)
	return e.committed.value(), ok, nil
}

// Put implements [Store].
func (o *Overlay) Put(key, value []byte) error {
	if value == nil {
		return o.Delete(key)
	}
	o.write(key, value, present)
	return nil
}

// Delete implements [Store].
func (o *Overlay) Delete(key []byte) error {
	o.write(key, nil, deleted)
	return nil
}

func (o *Overlay) write(key, value []byte, k kind) {
	e := o.table.get(key)
	if e == nil {
		e = o.table.at(key)
		e.fresh = o.absent(key)
	}
	o.change(e, value, k)
}

func (o *Overlay) change(e *entry, value []byte, k kind) {
	if e.open.kind == unknown {
		o.open = append(o.open, e)
		o.openBytes += len(e.key) + entryCost
	}
	o.openBytes += len(value) - len(e.open.val)
	o.table.write(&e.open, value, k)
}

// Range implements [Store].
func (o *Overlay) Range(from, to []byte) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		err := o.merge(from, to, func(m merged) bool {
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

// Expire implements [Store].
func (o *Overlay) Expire(from, to []byte) error {
	if o.table.windows != nil && len(from) == windowBytes && len(to) == windowBytes {
		return o.expireWindows(from, to)
	}
	return o.merge(from, to, func(m merged) bool {
		switch {
		case m.hasCommitted:
			o.write(m.key, nil, deleted)
		case m.open == present:
			o.write(m.key, nil, forgotten)
		}
		return true
	})
}

// Dirty reports whether the open transaction has changed anything.
func (o *Overlay) Dirty() bool { return len(o.open) > 0 }

// Size is roughly the memory held by the open transaction, in bytes. The owner
// commits early when it grows too large.
func (o *Overlay) Size() int { return o.openBytes }

// Position is how much of the changelog this store contains. The image may be
// behind it until the next flush.
func (o *Overlay) Position() Position { return o.position }

func (o *Overlay) fail(op string, err error) error {
	if o.options.Name == "" {
		return fmt.Errorf("state: %s: %w", op, err)
	}
	return fmt.Errorf("state: store %s: %s: %w", o.options.Name, op, err)
}
