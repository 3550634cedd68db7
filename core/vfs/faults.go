package vfs

import (
	"io"
	"path/filepath"
	"strings"
	"sync"
)

// Kind is a kind of file operation.
type Kind uint16

// The kinds, which Rule.Kinds combines.
const (
	OpCreate Kind = 1 << iota
	OpOpen
	OpRename
	OpRemove
	OpMkdir
	OpList
	OpStat
	OpSyncDir
	OpLock
	OpRead
	OpWrite
	OpTruncate
	OpSync
	OpSize
	OpClose

	// OpChanges are the operations that change what is on the disk or make it durable.
	OpChanges = OpCreate | OpRename | OpRemove | OpMkdir | OpSyncDir | OpWrite | OpTruncate | OpSync
)

// String names the kinds, joined by "|".
func (k Kind) String() string {
	names := [...]string{"create", "open", "rename", "remove", "mkdir", "list", "stat", "syncdir", "lock", "read", "write",
		"truncate", "sync", "size", "close"}
	var on []string
	for i, n := range names {
		if k&(1<<i) != 0 {
			on = append(on, n)
		}
	}
	return strings.Join(on, "|")
}

// Op is one operation that is about to happen.
type Op struct {
	Seq  int64 // 1 for the first operation of the wrapper
	Kind Kind
	Path string
	Len  int // bytes, for reads and writes
}

// Rule makes operations fail.
type Rule struct {
	Kinds Kind   // any of these; 0 is all
	Path  string // a pattern of path/filepath.Match for the last part of the path; "" is all
	Nth   int    // the n-th matching operation from now on, counted from 1; 0 is every one
	// When, if set, decides too. It is asked on the goroutine that does the operation, so it can tell who does it, and must not use
	// the wrapper.
	When func(Op) bool
	Err  error // what it fails with
	// Short is how many bytes of a matching write are written before it fails; the error is then Err.
	Short int
}

// Faults is a file system that fails on demand. It is safe for concurrent use.
type Faults struct {
	fs FS

	mu    sync.Mutex
	seq   int64
	hook  func(Op)
	rules []*rule
}

type rule struct {
	Rule
	hits int
}

// WithFaults wraps a file system. Without rules it changes nothing.
func WithFaults(fsys FS) *Faults { return &Faults{fs: fsys} }

// Add adds a rule and returns a function that takes it away.
func (f *Faults) Add(r Rule) (remove func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	added := &rule{Rule: r}
	f.rules = append(f.rules, added)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for i, have := range f.rules {
			if have == added {
				f.rules = append(f.rules[:i:i], f.rules[i+1:]...)
				return
			}
		}
	}
}

// OnOp calls fn before each operation, on the goroutine that does it; nil stops that. It is where a test takes a crash
// clone. fn may use the wrapped file system, not this one.
func (f *Faults) OnOp(fn func(Op)) {
	f.mu.Lock()
	f.hook = fn
	f.mu.Unlock()
}

// Ops is the number of operations so far.
func (f *Faults) Ops() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seq
}

// before counts an operation, tells the hook, and says whether and how it fails.
func (f *Faults) before(kind Kind, path string, n int) (short int, err error) {
	f.mu.Lock()
	f.seq++
	op := Op{Seq: f.seq, Kind: kind, Path: path, Len: n}
	hook := f.hook
	for _, r := range f.rules {
		if r.Kinds != 0 && r.Kinds&kind == 0 {
			continue
		}
		if r.Path != "" {
			if ok, merr := filepath.Match(r.Path, filepath.Base(path)); merr != nil || !ok {
				continue
			}
		}
		if r.When != nil && !r.When(op) {
			continue
		}
		r.hits++
		if err == nil && (r.Nth == 0 || r.Nth == r.hits) {
			short, err = r.Short, pathError(kind.String(), path, r.Err)
		}
	}
	f.mu.Unlock()
	if hook != nil {
		hook(op)
	}
	return short, err
}

func (f *Faults) do(kind Kind, path string, op func() error) error {
	if _, err := f.before(kind, path, 0); err != nil {
		return err
	}
	return op()
}

func (f *Faults) file(kind Kind, path string, open func(string) (File, error)) (File, error) {
	if _, err := f.before(kind, path, 0); err != nil {
		return nil, err
	}
	file, err := open(path)
	if err != nil {
		return nil, err
	}
	return &faultyFile{File: file, f: f, path: path}, nil
}

// Create implements [FS].
func (f *Faults) Create(path string) (File, error) { return f.file(OpCreate, path, f.fs.Create) }

// Open implements [FS].
func (f *Faults) Open(path string) (File, error) { return f.file(OpOpen, path, f.fs.Open) }

// OpenRead implements [FS].
func (f *Faults) OpenRead(path string) (File, error) { return f.file(OpOpen, path, f.fs.OpenRead) }

// Rename implements [FS]; rules see the new name.
func (f *Faults) Rename(from, to string) error {
	return f.do(OpRename, to, func() error { return f.fs.Rename(from, to) })
}

// Remove implements [FS].
func (f *Faults) Remove(path string) error {
	return f.do(OpRemove, path, func() error { return f.fs.Remove(path) })
}

// MkdirAll implements [FS].
func (f *Faults) MkdirAll(dir string) error {
	return f.do(OpMkdir, dir, func() error { return f.fs.MkdirAll(dir) })
}

// List implements [FS].
func (f *Faults) List(dir string) (names []string, err error) {
	err = f.do(OpList, dir, func() error { names, err = f.fs.List(dir); return err })
	return names, err
}

// Stat implements [FS].
func (f *Faults) Stat(path string) (info Info, err error) {
	err = f.do(OpStat, path, func() error { info, err = f.fs.Stat(path); return err })
	return info, err
}

// SyncDir implements [FS].
func (f *Faults) SyncDir(dir string) error {
	return f.do(OpSyncDir, dir, func() error { return f.fs.SyncDir(dir) })
}

// Lock implements [FS].
func (f *Faults) Lock(path string) (c io.Closer, err error) {
	err = f.do(OpLock, path, func() error { c, err = f.fs.Lock(path); return err })
	return c, err
}

// faultyFile asks the wrapper before each operation.
type faultyFile struct {
	File
	f    *Faults
	path string
}

func (h *faultyFile) ReadAt(p []byte, off int64) (int, error) {
	if _, err := h.f.before(OpRead, h.path, len(p)); err != nil {
		return 0, err
	}
	return h.File.ReadAt(p, off)
}

func (h *faultyFile) WriteAt(p []byte, off int64) (int, error) {
	short, err := h.f.before(OpWrite, h.path, len(p))
	if err == nil {
		return h.File.WriteAt(p, off)
	}
	n, werr := h.File.WriteAt(p[:min(short, len(p))], off)
	if werr != nil {
		return n, werr
	}
	return n, err
}

func (h *faultyFile) Truncate(size int64) error {
	return h.f.do(OpTruncate, h.path, func() error { return h.File.Truncate(size) })
}

// Sync lets a failed one cost what it may cost in the world: see rule 3 of the package.
func (h *faultyFile) Sync() error {
	if _, err := h.f.before(OpSync, h.path, 0); err != nil {
		if m, ok := h.File.(interface{ syncFailed() }); ok {
			m.syncFailed()
		}
		return err
	}
	return h.File.Sync()
}

func (h *faultyFile) Size() (n int64, err error) {
	err = h.f.do(OpSize, h.path, func() error { n, err = h.File.Size(); return err })
	return n, err
}

func (h *faultyFile) Close() error {
	_, err := h.f.before(OpClose, h.path, 0)
	if cerr := h.File.Close(); err == nil { // the handle is gone either way, as with close(2)
		err = cerr
	}
	return err
}
