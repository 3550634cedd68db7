package flush

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"github.com/millrace/millrace/core/vfs"
)

// CarryName begins the names of the append journals in the broker's data folder; a number follows.
const CarryName = "append-journal-"

const (
	// carryFiles bounds how many append journals there are. Two take turns; more are only begun while earlier ones wait for files
	// that can't be synced.
	carryFiles = 4
	// An append journal is made longer by zeros ahead of its entries, so that a sync has no metadata to write: by as much as it has,
	// within these bounds.
	growMin, growMax = 16 << 10, 512 << 10
)

// filer is whoever has bytes in an append journal that its own file may not have on the disk.
type filer interface {
	// file asks it to sync its own file soon, and to say so with carryLog.filed.
	file()
}

// carryFile is one append journal.
type carryFile struct {
	name       string
	file       vfs.File
	generation uint64
	at         int64 // end of the entries
	room       int64 // end of the zeros
	begun      bool  // it has the head of this generation
	// live are those whose file has not been synced since they put something in, with numbers that tell their order. While there
	// are any the file may not begin anew.
	live map[filer]int64
}

// carryLog is the append journals as one. A round (one at a time) calls ready, put and sync; filed and done may come from anywhere.
type carryLog struct {
	fs     vfs.FS
	dir    string
	limit  int64     // size of one file
	random io.Reader // of salts

	generation uint64     // of the last file begun; the round's own
	salt       uint64     // of its entries; the round's own
	current    *carryFile // nil before the first; the round's own, all but live

	mu     sync.Mutex // guards files, every file's live, and broken
	files  []*carryFile
	lives  int64 // numbers given out in live
	broken bool  // an fsync of an append journal failed: nothing is put into any
}

func newCarryLog(fsys vfs.FS, dir string, limit int64, random io.Reader, generation uint64) *carryLog {
	return &carryLog{fs: fsys, dir: dir, limit: limit, random: random, generation: generation}
}

// ready finds room for n bytes of entries, in the current file or by beginning another one; false when there is none now.
func (c *carryLog) ready(n int) (ok bool, err error) {
	c.mu.Lock()
	broken := c.broken
	c.mu.Unlock()
	if broken {
		return false, nil
	}
	if f := c.current; f != nil && f.at+int64(n) <= c.limit {
		return true, nil
	}
	if int64(n)+carryHead > c.limit {
		return false, nil
	}
	next, err := c.free()
	if next == nil || err != nil {
		return false, err
	}
	var salt [8]byte
	if _, err := io.ReadFull(c.random, salt[:]); err != nil {
		return false, fmt.Errorf("flush: a salt for an append journal: %w", err)
	}
	old := c.current
	c.generation++
	c.salt = binary.BigEndian.Uint64(salt[:])
	next.generation, next.at, next.begun = c.generation, carryHead, false
	c.current = next
	if old != nil {
		c.each(old, filer.file)
	}
	return true, nil
}

// each calls do for everyone who is live in a file, in the order in which they came.
func (c *carryLog) each(f *carryFile, do func(filer)) {
	c.mu.Lock()
	live := slices.SortedFunc(maps.Keys(f.live), func(a, b filer) int { return cmp.Compare(f.live[a], f.live[b]) })
	c.mu.Unlock()
	for _, l := range live {
		do(l)
	}
}

// free is a file that nobody needs, a new one if need be; nil when there are too many that somebody does.
func (c *carryLog) free() (*carryFile, error) {
	c.mu.Lock()
	for _, f := range c.files {
		if f != c.current && len(f.live) == 0 {
			c.mu.Unlock()
			return f, nil
		}
	}
	n := len(c.files)
	c.mu.Unlock()
	if n == carryFiles {
		return nil, nil
	}
	name := fmt.Sprintf("%s%d", CarryName, n)
	file, err := c.fs.Create(filepath.Join(c.dir, name))
	if err != nil {
		return nil, err
	}
	if err := c.fs.SyncDir(c.dir); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	f := &carryFile{name: name, file: file, live: map[filer]int64{}}
	c.mu.Lock()
	c.files = append(c.files, f)
	c.mu.Unlock()
	return f, nil
}

// put writes entries of the current generation, for which ready has found room, and syncs them. An error says that none of them
// is durable for sure, and the room is free again.
func (c *carryLog) put(entries []byte, by []filer) error {
	f := c.current
	at := f.at
	if !f.begun { // in one write with the first entries: a head alone says that there are none
		at, entries = 0, append(appendCarryHead(make([]byte, 0, carryHead+len(entries)), f.generation, c.salt), entries...)
	}
	if _, err := f.file.WriteAt(entries, at); err != nil {
		return err
	}
	end := at + int64(len(entries))
	if end > f.room {
		c.extend(f, end)
	}
	c.mu.Lock()
	for _, b := range by { // before the sync: what it makes durable counts from then on
		if _, ok := f.live[b]; !ok {
			c.lives++
			f.live[b] = c.lives
		}
	}
	c.mu.Unlock()
	if err := f.file.Sync(); err != nil {
		c.mu.Lock()
		c.broken = true
		all := c.files
		c.mu.Unlock()
		for _, f := range all {
			c.each(f, filer.file)
		}
		return err
	}
	f.at, f.begun = end, true
	return nil
}

var zeros [growMax]byte

// extend writes zeros behind the entries. Without them it works too, only slower, so errors don't matter.
func (c *carryLog) extend(f *carryFile, end int64) {
	f.room = end
	n := min(max(end, growMin), growMax, c.limit-end)
	if n <= 0 {
		return
	}
	if _, err := f.file.WriteAt(zeros[:n], end); err == nil {
		f.room = end + n
	}
}

// filed says that everything that l has put in so far is durable in its own file.
func (c *carryLog) filed(l filer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.files {
		delete(f.live, l)
	}
}

// close closes the files, and removes them if nobody needs them: their entries say what is on the disk anyway, and the recovery
// journal knows that.
func (c *carryLog) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	needed := false
	var err error
	for _, f := range c.files {
		needed = needed || len(f.live) > 0
		err = errors.Join(err, f.file.Close())
	}
	for _, f := range c.files {
		if needed {
			break
		}
		if rerr := c.fs.Remove(filepath.Join(c.dir, f.name)); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	return err
}
