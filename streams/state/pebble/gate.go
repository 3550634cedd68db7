package pebble

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// errShut is what the file system of an abandoned database answers.
var errShut = errors.New("pebble: the store was given up")

// gate is the file system of one database. It does two things for the failures that
// Pebble has no way out of.
//
// One: Pebble panics, with locks in a state from which nothing recovers, when it
// cannot create, write, sync or close its write-ahead log, of which a full disk is a
// cause. So a running database never hears of that: the failure is noted, the image
// fails with it, and the log takes what comes and forgets it. Nothing of it is
// acknowledged to anybody.
//
// Two: a database that has failed may not be able to close soon, and a compaction of
// it may still be running. The gate can be shut: from then on the database changes
// nothing in the folder, and whoever opens that next is not disturbed. Files that are
// open stay so: their names are gone by then.
type gate struct {
	vfs.FS
	fate
	mu    sync.RWMutex // held for reading while a name changes
	shut  bool
	locks []io.Closer
}

// close shuts the gate and gives up the folder's lock.
func (g *gate) close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
	var errs []error
	for _, l := range g.locks {
		errs = append(errs, l.Close())
	}
	g.locks = nil
	return errors.Join(errs...)
}

func (g *gate) isShut() bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.shut
}

// pass runs what changes a name, unless the gate is shut.
func (g *gate) pass(f func() error) error {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.shut {
		return errShut
	}
	return f()
}

// Create implements vfs.FS.
func (g *gate) Create(name string, c vfs.DiskWriteCategory) (f vfs.File, err error) {
	err = g.pass(func() error { f, err = g.FS.Create(name, c); return err })
	return g.made(name, f, err)
}

// OpenReadWrite implements vfs.FS.
func (g *gate) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (f vfs.File, err error) {
	err = g.pass(func() error { f, err = g.FS.OpenReadWrite(name, c, opts...); return err })
	return f, err
}

// ReuseForWrite implements vfs.FS.
func (g *gate) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (f vfs.File, err error) {
	err = g.pass(func() error { f, err = g.FS.ReuseForWrite(from, to, c); return err })
	return g.made(to, f, err)
}

// made is a new file; that of a log does not fail once the database is open.
func (g *gate) made(name string, f vfs.File, err error) (vfs.File, error) {
	if !strings.HasSuffix(name, ".log") {
		return f, err
	}
	if err != nil {
		if err = g.survive(err); err != nil {
			return nil, err
		}
		return &logFile{File: vfs.NewMemFile(nil), fate: &g.fate, lost: true}, nil
	}
	return &logFile{File: f, fate: &g.fate}, nil
}

// OpenDir implements vfs.FS. The folder is synced when a log is new.
func (g *gate) OpenDir(name string) (vfs.File, error) {
	f, err := g.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &folder{f, &g.fate}, nil
}

// Link implements vfs.FS.
func (g *gate) Link(from, to string) error {
	return g.pass(func() error { return g.FS.Link(from, to) })
}

// Rename implements vfs.FS.
func (g *gate) Rename(from, to string) error {
	return g.pass(func() error { return g.FS.Rename(from, to) })
}

// Remove implements vfs.FS.
func (g *gate) Remove(name string) error {
	return g.pass(func() error { return g.FS.Remove(name) })
}

// RemoveAll implements vfs.FS.
func (g *gate) RemoveAll(name string) error {
	return g.pass(func() error { return g.FS.RemoveAll(name) })
}

// MkdirAll implements vfs.FS.
func (g *gate) MkdirAll(dir string, perm os.FileMode) error {
	return g.pass(func() error { return g.FS.MkdirAll(dir, perm) })
}

// Lock implements vfs.FS.
func (g *gate) Lock(name string) (io.Closer, error) {
	var held *gateLock
	err := g.pass(func() error {
		l, err := g.FS.Lock(name)
		if err == nil {
			held = &gateLock{l: l}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.locks = append(g.locks, held)
	return held, nil
}

// Unwrap implements vfs.FS.
func (g *gate) Unwrap() vfs.FS { return g.FS }

// gateLock is closed once, by the database or by the gate.
type gateLock struct {
	once sync.Once
	l    io.Closer
	err  error
}

// Close implements io.Closer.
func (l *gateLock) Close() error {
	l.once.Do(func() { l.err = l.l.Close() })
	return l.err
}
