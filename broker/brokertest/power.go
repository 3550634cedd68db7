package brokertest

import (
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/millrace/millrace/core/vfs"
)

var errPowerCut = errors.New("the power is cut")

// power is a file system that stops at one instant: an operation either ended
// before cut returns, and a crash clone taken then knows of it, or it fails. So no
// broker acknowledges after its crash what the clone does not have.
type power struct {
	fs vfs.FS

	mu     sync.RWMutex // held for reading by every operation
	off    bool
	faults []*fault
}

// fault makes operations of some kinds fail on paths that contain part.
type fault struct {
	kinds vfs.Kind
	part  string
	err   error
}

func (p *power) add(f *fault) (remove func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, f)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.faults = slices.DeleteFunc(p.faults, func(have *fault) bool { return have == f })
	}
}

func (p *power) cut() {
	p.mu.Lock()
	p.off = true
	p.mu.Unlock()
}

// do runs an operation unless the power is cut or a fault is set for it.
func (p *power) do(kind vfs.Kind, path string, op func() error) error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.off {
		return errPowerCut
	}
	for _, f := range p.faults {
		if f.kinds&kind != 0 && strings.Contains(path, f.part) {
			return &fs.PathError{Op: kind.String(), Path: path, Err: f.err}
		}
	}
	return op()
}

// get is do for operations with a result.
func get[T any](p *power, kind vfs.Kind, path string, op func() (T, error)) (v T, err error) {
	err = p.do(kind, path, func() error {
		var e error
		v, e = op()
		return e
	})
	return v, err
}

func (p *power) file(kind vfs.Kind, path string, op func(string) (vfs.File, error)) (vfs.File, error) {
	f, err := get(p, kind, path, func() (vfs.File, error) { return op(path) })
	if err != nil {
		return nil, err
	}
	return &poweredFile{f, p, path}, nil
}

func (p *power) Create(path string) (vfs.File, error) { return p.file(vfs.OpCreate, path, p.fs.Create) }

func (p *power) Open(path string) (vfs.File, error) { return p.file(vfs.OpOpen, path, p.fs.Open) }

func (p *power) OpenRead(path string) (vfs.File, error) {
	return p.file(vfs.OpOpen, path, p.fs.OpenRead)
}

func (p *power) Rename(from, to string) error {
	return p.do(vfs.OpRename, from, func() error { return p.fs.Rename(from, to) })
}

func (p *power) Remove(path string) error {
	return p.do(vfs.OpRemove, path, func() error { return p.fs.Remove(path) })
}

func (p *power) MkdirAll(dir string) error {
	return p.do(vfs.OpMkdir, dir, func() error { return p.fs.MkdirAll(dir) })
}

func (p *power) List(dir string) ([]string, error) {
	return get(p, vfs.OpList, dir, func() ([]string, error) { return p.fs.List(dir) })
}

func (p *power) Stat(path string) (vfs.Info, error) {
	return get(p, vfs.OpStat, path, func() (vfs.Info, error) { return p.fs.Stat(path) })
}

func (p *power) SyncDir(dir string) error {
	return p.do(vfs.OpSyncDir, dir, func() error { return p.fs.SyncDir(dir) })
}

func (p *power) Lock(path string) (io.Closer, error) {
	return get(p, vfs.OpLock, path, func() (io.Closer, error) { return p.fs.Lock(path) })
}

// poweredFile is an open file of a power.
type poweredFile struct {
	vfs.File
	p    *power
	path string
}

func (f *poweredFile) ReadAt(b []byte, off int64) (int, error) {
	return get(f.p, vfs.OpRead, f.path, func() (int, error) { return f.File.ReadAt(b, off) })
}

func (f *poweredFile) WriteAt(b []byte, off int64) (int, error) {
	return get(f.p, vfs.OpWrite, f.path, func() (int, error) { return f.File.WriteAt(b, off) })
}

func (f *poweredFile) Size() (int64, error) { return get(f.p, vfs.OpSize, f.path, f.File.Size) }

func (f *poweredFile) Truncate(n int64) error {
	return f.p.do(vfs.OpTruncate, f.path, func() error { return f.File.Truncate(n) })
}

func (f *poweredFile) Sync() error { return f.p.do(vfs.OpSync, f.path, f.File.Sync) }
