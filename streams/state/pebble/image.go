package pebble

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"

	corevfs "github.com/millrace/millrace/core/vfs"
	"github.com/millrace/millrace/streams/state"
)

// Format is the version of what this release writes into a store. Stores of a higher
// version are refused with [state.ErrNewerFormat].
const Format = 1

// Keys in the database: one byte says what follows.
var (
	formatKey   = []byte("\x00format")
	positionKey = []byte("\x00position")
)

const (
	rowPrefix    = 0x01
	rowPrefixEnd = 0x02
)

// image is a [state.Image]. It belongs to one task.
type image struct {
	engine   engine
	dir      string
	db       *pebble.DB
	gate     *gate
	held     *pebble.Lock // released by the gate
	listener *listener
	position state.Position
	closed   bool
	damaged  bool   // found while open: Close removes the files
	key, val []byte // scratch
}

var _ state.Image = (*image)(nil)

func (s *image) open() (err error) {
	s.gate = &gate{FS: s.engine.fs}
	s.listener = &listener{gate: s.gate, failed: make(chan struct{})}
	s.gate.note = s.listener.note
	s.closed = false
	if err := s.lock(); err != nil {
		return err
	}
	settings := s.engine.settings(take(s.engine.options), s.gate, s.listener)
	settings.Lock = s.held
	err = guard(func() (err error) {
		s.db, err = pebble.Open(s.dir, settings)
		return err
	})
	if err == nil {
		s.gate.live.Store(true)
		err = s.listener.failure()
	}
	if err != nil {
		err = s.unopened(err)
		if s.db == nil {
			give(s.engine.options)
			return errors.Join(err, s.gate.close())
		}
	} else {
		err = s.load()
	}
	if err != nil {
		s.closed = true
		return errors.Join(err, s.shut())
	}
	return nil
}

// lock takes the folder, so that what fails afterwards is not that somebody has it.
func (s *image) lock() (err error) {
	if err := s.make(s.dir); err != nil {
		return s.fail("open", err)
	}
	if s.held, err = pebble.LockDirectory(s.dir, s.gate); err != nil {
		return errors.Join(s.fail("open", err), s.gate.close())
	}
	return nil
}

// make makes a folder, and those above it, so that they survive a power cut.
func (s *image) make(dir string) error {
	if _, err := s.gate.Stat(dir); err == nil {
		return nil
	}
	above := s.gate.PathDir(dir)
	if above != dir && above != "." {
		if err := s.make(above); err != nil {
			return err
		}
	}
	if err := s.gate.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	d, err := s.gate.OpenDir(above)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// unopened says what it means that a folder does not open. Pebble has many words for
// files that do not fit together; if the system has none about it, it is damage.
func (s *image) unopened(err error) error {
	said := s.fail("open", err)
	if errors.Is(said, state.ErrNoRoom) || errors.Is(said, state.ErrCorrupt) {
		return said
	}
	if strings.Contains(err.Error(), "unknown format major version") {
		return fmt.Errorf("%w: %s: %w", state.ErrNewerFormat, s.dir, err)
	}
	if code, ok := errors.AsType[syscall.Errno](err); ok && code != syscall.ENOENT {
		return said
	}
	return fmt.Errorf("%w: %w", state.ErrCorrupt, said)
}

// load checks the format, writes it into a new store, and reads the position.
func (s *image) load() error {
	raw, ok, err := s.get(formatKey)
	switch {
	case err != nil:
		return s.fail("read format", err)
	case !ok:
		return s.create()
	case len(raw) != 4:
		return fmt.Errorf("%w: %s: format has %d bytes, not 4", state.ErrCorrupt, s.dir, len(raw))
	}
	if v := binary.BigEndian.Uint32(raw); v > Format {
		return fmt.Errorf("%w: %s has version %d, this release reads up to %d", state.ErrNewerFormat, s.dir, v, Format)
	}
	raw, ok, err = s.get(positionKey)
	if err != nil {
		return s.fail("read position", err)
	}
	if ok {
		if s.position, err = state.DecodePosition(raw); err != nil {
			return fmt.Errorf("%w: %s: %w", state.ErrCorrupt, s.dir, err)
		}
	}
	return nil
}

func (s *image) create() error {
	it, err := s.db.NewIter(nil)
	if err != nil {
		return s.fail("create", err)
	}
	used := it.First()
	if err := it.Close(); err != nil {
		return s.fail("create", err)
	}
	if used {
		return fmt.Errorf("%w: %s has rows but no format", state.ErrCorrupt, s.dir)
	}
	b := s.db.NewBatch()
	if err := b.Set(formatKey, binary.BigEndian.AppendUint32(nil, Format), nil); err != nil {
		return s.fail("create", err)
	}
	return s.commit("create", b)
}

// Get implements state.Image.
func (s *image) Get(key []byte) ([]byte, bool, error) {
	if s.closed {
		return nil, false, s.fail("get", pebble.ErrClosed)
	}
	s.key = append(append(s.key[:0], rowPrefix), key...)
	v, ok, err := s.get(s.key)
	if err != nil {
		return nil, false, s.fail("get", err)
	}
	return v, ok, nil
}

// get reads any key of the database; the value is valid until the next call.
func (s *image) get(key []byte) ([]byte, bool, error) {
	v, release, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	s.val = append(s.val[:0], v...)
	return s.val, true, release.Close()
}

// Range implements state.Image.
func (s *image) Range(from, to []byte) iter.Seq2[state.Row, error] {
	return s.scan(from, to, (*pebble.Iterator).First, (*pebble.Iterator).Next)
}

// Backward implements state.Image.
func (s *image) Backward(from, to []byte) iter.Seq2[state.Row, error] {
	return s.scan(from, to, (*pebble.Iterator).Last, (*pebble.Iterator).Prev)
}

func (s *image) scan(from, to []byte, first, next func(*pebble.Iterator) bool) iter.Seq2[state.Row, error] {
	return func(yield func(state.Row, error) bool) {
		if s.closed {
			yield(state.Row{}, s.fail("range", pebble.ErrClosed))
			return
		}
		bounds := pebble.IterOptions{LowerBound: append([]byte{rowPrefix}, from...), UpperBound: []byte{rowPrefixEnd}}
		if to != nil {
			bounds.UpperBound = append([]byte{rowPrefix}, to...)
		}
		if string(bounds.LowerBound) >= string(bounds.UpperBound) {
			return
		}
		it, err := s.db.NewIter(&bounds)
		if err != nil {
			yield(state.Row{}, s.fail("range", err))
			return
		}
		stopped := false
		for ok := first(it); ok && !stopped; ok = !stopped && next(it) {
			stopped = !yield(state.Row{Key: it.Key()[1:], Value: it.Value()}, nil)
		}
		if err := it.Close(); err != nil && !stopped {
			yield(state.Row{}, s.fail("range", err))
		}
	}
}

// Apply implements state.Image.
func (s *image) Apply(rows []state.Row, pos state.Position) error {
	if s.closed {
		return s.fail("apply", pebble.ErrClosed)
	}
	size := 64
	for _, r := range rows {
		size += len(r.Key) + len(r.Value) + 16
	}
	b := s.db.NewBatchWithSize(size)
	for _, r := range rows {
		if err := s.add(b, r); err != nil {
			return s.fail("apply", err)
		}
	}
	if err := b.Set(positionKey, pos.Append(nil), nil); err != nil {
		return s.fail("apply", err)
	}
	if err := s.commit("apply", b); err != nil {
		return err
	}
	s.position = pos
	return nil
}

// add puts a row into a batch without a copy in between.
func (s *image) add(b *pebble.Batch, r state.Row) error {
	if r.Value == nil {
		op := b.DeleteDeferred(len(r.Key) + 1)
		op.Key[0] = rowPrefix
		copy(op.Key[1:], r.Key)
		return op.Finish()
	}
	op := b.SetDeferred(len(r.Key)+1, len(r.Value))
	op.Key[0] = rowPrefix
	copy(op.Key[1:], r.Key)
	copy(op.Value, r.Value)
	return op.Finish()
}

// commit writes a batch, synced. It waits no longer than until something fails: a
// write behind a flush that does not succeed would wait for ever.
func (s *image) commit(op string, b *pebble.Batch) error {
	done, db := make(chan error, 1), s.db
	go func() {
		done <- guard(func() error { return errors.Join(db.Apply(b, pebble.Sync), b.Close()) })
	}()
	var err error
	select {
	case err = <-done:
	case <-s.listener.failed:
	}
	if failed := s.listener.failure(); failed != nil {
		err = failed
	}
	if err != nil {
		s.listener.note(err) // what is not known to be written ends the use of this image
		return s.fail(op, err)
	}
	return nil
}

// guard turns a panic of Pebble into an error.
func guard(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			var ok bool
			if err, ok = v.(error); !ok {
				err = fmt.Errorf("%v", v)
			}
			err = fmt.Errorf("pebble panicked: %w", err)
		}
	}()
	return f()
}

// Position implements state.Image.
func (s *image) Position() state.Position { return s.position }

// Wipe implements state.Image. The files are removed and a new store is made.
func (s *image) Wipe() error {
	if s.closed {
		return s.fail("wipe", pebble.ErrClosed)
	}
	s.closed = true
	if err := s.shut(); err != nil {
		return err
	}
	s.position, s.damaged = state.Position{}, false
	if err := s.remove(); err != nil {
		return err
	}
	return s.open()
}

// Close implements state.Image. A store in which damage was found is removed, so
// that the next owner rebuilds it from the changelog.
func (s *image) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	err := s.shut()
	if s.damaged {
		return errors.Join(err, s.remove())
	}
	return err
}

// shut lets go of the database. One that has failed may never close: its folder is
// taken from it, and it is left to close when it can.
func (s *image) shut() error {
	db, options := s.db, s.engine.options
	if s.listener.failure() == nil {
		err := guard(db.Close)
		if err == nil {
			give(options)
			return s.gate.close()
		}
		return errors.Join(s.fail("close", err), s.gate.close())
	}
	err := s.gate.close()
	go func() {
		if guard(db.Close) == nil {
			give(options)
		}
	}()
	return err
}

func (s *image) remove() error {
	if err := s.engine.fs.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("state: remove store %s: %w", s.dir, err)
	}
	return nil
}

// fail says what went wrong where, in the terms of package state.
func (s *image) fail(op string, err error) error {
	_, named := errors.AsType[*fs.PathError](err)
	switch {
	case errors.Is(err, pebble.ErrClosed):
		return fmt.Errorf("%w: %s: %s", state.ErrClosed, s.dir, op)
	case named && corevfs.NoRoom(err):
		// Only an operation that is named is known to be no sync.
		return fmt.Errorf("%w: %s: %s: %w", state.ErrNoRoom, s.dir, op, err)
	case pebble.IsCorruptionError(err), s.missing(err), s.db != nil && s.listener.failure() != nil:
		s.damaged = true
		return fmt.Errorf("%w: %s: %s: %w", state.ErrCorrupt, s.dir, op, err)
	}
	return fmt.Errorf("state: %s: %s: %w", s.dir, op, err)
}

// missing reports a file that ought to be there.
func (s *image) missing(err error) bool {
	p, ok := errors.AsType[*fs.PathError](err)
	return ok && errors.Is(err, fs.ErrNotExist) && filepath.Dir(p.Path) == filepath.Clean(s.dir)
}
