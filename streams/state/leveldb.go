package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"os"

	"github.com/syndtr/goleveldb/leveldb"
	lerrors "github.com/syndtr/goleveldb/leveldb/errors"
	"github.com/syndtr/goleveldb/leveldb/filter"
	"github.com/syndtr/goleveldb/leveldb/iterator"
	"github.com/syndtr/goleveldb/leveldb/opt"
	"github.com/syndtr/goleveldb/leveldb/util"

	"github.com/millrace/millrace/core/vfs"
)

// LevelDBFormat is the version of what this release writes into a goleveldb
// store. Stores of a higher version are refused with [ErrNewerFormat].
const LevelDBFormat = 1

// Keys in the database: one byte says what follows.
var (
	formatKey   = []byte("\x00format")
	positionKey = []byte("\x00position")
)

const (
	rowPrefix    = 0x01
	rowPrefixEnd = 0x02
)

// LevelDB is an [Image] on disk. Rows and position go into one synced batch, so
// the journal holds both or neither.
//
// goleveldb by default skips a damaged chunk of its journal and goes on with the
// next: batch n vanishes, batch n+1 stays, and no fold of the changelog equals
// that. It is therefore opened with strict journal, manifest, block and
// compaction checks, and its recovery function, which rebuilds a manifest from
// whatever tables it finds, is never called. Damage is reported as [ErrCorrupt].
type LevelDB struct {
	dir      string
	db       *leveldb.DB
	position Position
	damaged  bool   // found while open: Close removes the files
	key      []byte // scratch
	batch    leveldb.Batch
}

var _ Image = (*LevelDB)(nil)

func levelOptions() *opt.Options {
	return &opt.Options{
		Strict:                 opt.StrictAll,
		Filter:                 filter.NewBloomFilter(10),
		WriteBuffer:            2 << 20,
		BlockCacheCapacity:     8 << 20,
		OpenFilesCacheCapacity: 64,
	}
}

// OpenLevelDB opens the store in dir, a new one when there is none.
func OpenLevelDB(dir string) (*LevelDB, error) {
	s := &LevelDB{dir: dir}
	if err := s.open(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *LevelDB) open() error {
	db, err := leveldb.OpenFile(s.dir, levelOptions())
	if err != nil {
		return s.fail("open", err)
	}
	s.db = db
	if err := s.load(); err != nil {
		return errors.Join(err, db.Close())
	}
	return nil
}

// load checks the format, writes it into a new store, and reads the position.
func (s *LevelDB) load() error {
	raw, err := s.db.Get(formatKey, nil)
	switch {
	case errors.Is(err, leveldb.ErrNotFound):
		return s.create()
	case err != nil:
		return s.fail("read format", err)
	case len(raw) != 4:
		return fmt.Errorf("%w: %s: format has %d bytes, not 4", ErrCorrupt, s.dir, len(raw))
	}
	if v := binary.BigEndian.Uint32(raw); v > LevelDBFormat {
		return fmt.Errorf("%w: %s has version %d, this release reads up to %d", ErrNewerFormat, s.dir, v, LevelDBFormat)
	}
	raw, err = s.db.Get(positionKey, nil)
	if errors.Is(err, leveldb.ErrNotFound) {
		return nil
	}
	if err != nil {
		return s.fail("read position", err)
	}
	if s.position, err = DecodePosition(raw); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrCorrupt, s.dir, err)
	}
	return nil
}

func (s *LevelDB) create() error {
	it := s.db.NewIterator(nil, nil)
	used := it.First()
	it.Release()
	if err := it.Error(); err != nil {
		return s.fail("create", err)
	}
	if used {
		return fmt.Errorf("%w: %s has rows but no format", ErrCorrupt, s.dir)
	}
	err := s.db.Put(formatKey, binary.BigEndian.AppendUint32(nil, LevelDBFormat), &opt.WriteOptions{Sync: true})
	if err != nil {
		return s.fail("create", err)
	}
	return nil
}

// Get implements [Image].
func (s *LevelDB) Get(key []byte) ([]byte, bool, error) {
	v, err := s.db.Get(s.rowKey(key), nil)
	if err == nil {
		return v, true, nil
	}
	if errors.Is(err, leveldb.ErrNotFound) {
		return nil, false, nil
	}
	return nil, false, s.fail("get", err)
}

func (s *LevelDB) rowKey(key []byte) []byte {
	s.key = append(append(s.key[:0], rowPrefix), key...)
	return s.key
}

// Range implements [Image].
func (s *LevelDB) Range(from, to []byte) iter.Seq2[Row, error] {
	return s.scan(from, to, iterator.Iterator.First, iterator.Iterator.Next)
}

// Backward implements [Image].
func (s *LevelDB) Backward(from, to []byte) iter.Seq2[Row, error] {
	return s.scan(from, to, iterator.Iterator.Last, iterator.Iterator.Prev)
}

func (s *LevelDB) scan(from, to []byte, first, next func(iterator.Iterator) bool) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		if emptyRange(from, to) {
			return
		}
		bounds := util.Range{Start: append([]byte{rowPrefix}, from...), Limit: []byte{rowPrefixEnd}}
		if to != nil {
			bounds.Limit = append([]byte{rowPrefix}, to...)
		}
		it := s.db.NewIterator(&bounds, nil)
		defer it.Release()
		for ok := first(it); ok; ok = next(it) {
			if !yield(Row{it.Key()[1:], it.Value()}, nil) {
				return
			}
		}
		if err := it.Error(); err != nil {
			yield(Row{}, s.fail("range", err))
		}
	}
}

// Apply implements [Image].
func (s *LevelDB) Apply(rows []Row, pos Position) error {
	s.batch.Reset()
	for _, r := range rows {
		if r.Value == nil {
			s.batch.Delete(s.rowKey(r.Key))
		} else {
			s.batch.Put(s.rowKey(r.Key), r.Value)
		}
	}
	s.batch.Put(positionKey, pos.Append(make([]byte, 0, PositionSize)))
	if err := s.db.Write(&s.batch, &opt.WriteOptions{Sync: true}); err != nil {
		return s.unwritten(err)
	}
	s.position = pos
	return nil
}

// unwritten says what a batch that was not written means. Of a failed sync nobody
// knows what it left, in the next process either, so the files are given up; a full
// disk leaves a torn batch at most, which the next opening recognises.
func (s *LevelDB) unwritten(err error) error {
	err = s.fail("apply", err)
	if errors.Is(err, ErrClosed) || errors.Is(err, ErrNoRoom) || errors.Is(err, ErrCorrupt) {
		return err
	}
	s.damaged = true
	return fmt.Errorf("%w: %w", ErrCorrupt, err)
}

// Position implements [Image].
func (s *LevelDB) Position() Position { return s.position }

// Wipe implements [Image]. The files are removed and a new store is made.
func (s *LevelDB) Wipe() error {
	if err := s.db.Close(); err != nil {
		return s.fail("wipe", err)
	}
	s.position, s.damaged = Position{}, false
	if err := RemoveLevelDB(s.dir); err != nil {
		return err
	}
	return s.open()
}

// Close implements [Image]. A store in which damage was found is removed, so
// that the next owner rebuilds it from the changelog.
func (s *LevelDB) Close() error {
	if err := s.db.Close(); err != nil && !errors.Is(err, leveldb.ErrClosed) {
		return s.fail("close", err)
	}
	if s.damaged {
		return RemoveLevelDB(s.dir)
	}
	return nil
}

// RemoveLevelDB deletes the store in dir, which must be closed.
func RemoveLevelDB(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("state: remove store %s: %w", dir, err)
	}
	return nil
}

// fail says what went wrong where, in this package's terms.
func (s *LevelDB) fail(op string, err error) error {
	switch {
	case lerrors.IsCorrupted(err):
		s.damaged = true
		return fmt.Errorf("%w: %s: %s: %w", ErrCorrupt, s.dir, op, err)
	case errors.Is(err, leveldb.ErrClosed):
		return fmt.Errorf("%w: %s: %s", ErrClosed, s.dir, op)
	case vfs.NoRoom(err):
		return fmt.Errorf("%w: %s: %s: %w", ErrNoRoom, s.dir, op, err)
	}
	return fmt.Errorf("state: %s: %s: %w", s.dir, op, err)
}
