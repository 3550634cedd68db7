package vfs

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// Mem is a file system in memory. It carries the in-memory broker; for tests it can crash, see [Mem.CrashClone].
type Mem struct {
	mu    sync.Mutex
	root  *memDir
	locks map[string]bool // paths whose lock is held
}

// memDir is a folder. names is what is there; durable is what was there at the last SyncDir, and changes are the
// operations since then, in order, of which a crash keeps some.
type memDir struct {
	names, durable map[string]memNode
	changes        []change
}

// memNode is a file or a folder, one of the two.
type memNode struct {
	file *memFile
	dir  *memDir
}

// change is one operation on the names of a folder; an empty name means that half is not there. A rename within a folder
// is one change, so that a crash takes it whole or not at all.
type change struct {
	remove, set string
	node        memNode
}

// NewMem returns an empty memory file system with a root folder.
func NewMem() *Mem { return &Mem{root: newMemDir(), locks: map[string]bool{}} }

func newMemDir() *memDir {
	return &memDir{names: map[string]memNode{}, durable: map[string]memNode{}}
}

func (d *memDir) apply(c change) {
	if c.remove != "" {
		delete(d.names, c.remove)
	}
	if c.set != "" {
		d.names[c.set] = c.node
	}
	d.changes = append(d.changes, c)
}

func split(path string) []string {
	parts := strings.Split(filepath.ToSlash(filepath.Clean(path)), "/")
	return slices.DeleteFunc(parts, func(p string) bool { return p == "" || p == "." })
}

func pathError(op, path string, err error) error { return &fs.PathError{Op: op, Path: path, Err: err} }

// find returns the folder that holds path, and the last part of it. The caller holds mu.
func (m *Mem) find(op, path string) (*memDir, string, error) {
	parts := split(path)
	if len(parts) == 0 {
		return nil, "", pathError(op, path, fs.ErrInvalid)
	}
	d := m.root
	for _, p := range parts[:len(parts)-1] {
		n, ok := d.names[p]
		if !ok {
			return nil, "", pathError(op, path, fs.ErrNotExist)
		}
		if n.dir == nil {
			return nil, "", pathError(op, path, syscall.ENOTDIR)
		}
		d = n.dir
	}
	return d, parts[len(parts)-1], nil
}

// folder returns the folder at path. The caller holds mu.
func (m *Mem) folder(op, path string) (*memDir, error) {
	if len(split(path)) == 0 {
		return m.root, nil
	}
	d, name, err := m.find(op, path)
	if err != nil {
		return nil, err
	}
	n, ok := d.names[name]
	switch {
	case !ok:
		return nil, pathError(op, path, fs.ErrNotExist)
	case n.dir == nil:
		return nil, pathError(op, path, syscall.ENOTDIR)
	}
	return n.dir, nil
}

// Create implements [FS].
func (m *Mem) Create(path string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, name, err := m.find("create", path)
	if err != nil {
		return nil, err
	}
	n, ok := d.names[name]
	switch {
	case ok && n.dir != nil:
		return nil, pathError("create", path, syscall.EISDIR)
	case ok:
		n.file.truncate(0)
	default:
		n = memNode{file: new(memFile)}
		d.apply(change{set: name, node: n})
	}
	return &memHandle{file: n.file, path: path}, nil
}

func (m *Mem) open(path string, readOnly bool) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, name, err := m.find("open", path)
	if err != nil {
		return nil, err
	}
	n, ok := d.names[name]
	switch {
	case !ok:
		return nil, pathError("open", path, fs.ErrNotExist)
	case n.dir != nil:
		return nil, pathError("open", path, syscall.EISDIR)
	}
	return &memHandle{file: n.file, path: path, readOnly: readOnly}, nil
}

// Open implements [FS].
func (m *Mem) Open(path string) (File, error) { return m.open(path, false) }

// OpenRead implements [FS].
func (m *Mem) OpenRead(path string) (File, error) { return m.open(path, true) }

// Rename implements [FS].
func (m *Mem) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, name, err := m.find("rename", from)
	if err != nil {
		return err
	}
	d2, name2, err := m.find("rename", to)
	if err != nil {
		return err
	}
	n, ok := d.names[name]
	if !ok {
		return pathError("rename", from, fs.ErrNotExist)
	}
	if old, ok := d2.names[name2]; ok && (old.dir != nil || n.dir != nil) && old != n {
		return pathError("rename", to, fs.ErrExist)
	}
	if d == d2 {
		if name != name2 {
			d.apply(change{remove: name, set: name2, node: n})
		}
		return nil
	}
	d2.apply(change{set: name2, node: n})
	d.apply(change{remove: name})
	return nil
}

// Remove implements [FS]. Open handles of a removed file go on working.
func (m *Mem) Remove(path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, name, err := m.find("remove", path)
	if err != nil {
		return err
	}
	n, ok := d.names[name]
	switch {
	case !ok:
		return pathError("remove", path, fs.ErrNotExist)
	case n.dir != nil && len(n.dir.names) > 0:
		return pathError("remove", path, syscall.ENOTEMPTY)
	}
	d.apply(change{remove: name})
	return nil
}

// MkdirAll implements [FS].
func (m *Mem) MkdirAll(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.root
	for _, p := range split(dir) {
		n, ok := d.names[p]
		switch {
		case ok && n.dir == nil:
			return pathError("mkdir", dir, syscall.ENOTDIR)
		case !ok:
			n = memNode{dir: newMemDir()}
			d.apply(change{set: p, node: n})
		}
		d = n.dir
	}
	return nil
}

// List implements [FS].
func (m *Mem) List(dir string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, err := m.folder("list", dir)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(d.names)), nil
}

// Stat implements [FS].
func (m *Mem) Stat(path string) (Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(split(path)) == 0 {
		return Info{Dir: true}, nil
	}
	d, name, err := m.find("stat", path)
	if err != nil {
		return Info{}, err
	}
	n, ok := d.names[name]
	switch {
	case !ok:
		return Info{}, pathError("stat", path, fs.ErrNotExist)
	case n.dir != nil:
		return Info{Dir: true}, nil
	}
	return Info{Size: n.file.length()}, nil
}

// SyncDir implements [FS].
func (m *Mem) SyncDir(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, err := m.folder("syncdir", dir)
	if err != nil {
		return err
	}
	d.durable, d.changes = maps.Clone(d.names), nil
	return nil
}

// Lock implements [FS].
func (m *Mem) Lock(path string) (io.Closer, error) {
	f, err := m.Open(path)
	if err != nil {
		if f, err = m.Create(path); err != nil {
			return nil, err
		}
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	key := strings.Join(split(path), "/")
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locks[key] {
		return nil, fmt.Errorf("lock %s: %w", path, ErrLocked)
	}
	m.locks[key] = true
	return &memLock{m: m, key: key}, nil
}

type memLock struct {
	m    *Mem
	key  string
	once sync.Once
}

func (l *memLock) Close() error {
	l.once.Do(func() {
		l.m.mu.Lock()
		delete(l.m.locks, l.key)
		l.m.mu.Unlock()
	})
	return nil
}

// CrashClone returns what a disk may hold if the power went at this moment: all that was synced, and of the rest what the
// seed chooses (see the package comment for the rules). The original goes on undisturbed, no lock is held in the clone,
// and the same seed at the same moment gives the same clone.
func (m *Mem) CrashClone(seed uint64) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	rng := rand.New(rand.NewPCG(seed, 0x6d696c6c))
	seen := map[*memFile]*memFile{} // a file that two surviving names lead to stays one file
	c := NewMem()
	c.root = m.root.crash(rng, seen)
	return c
}

func (d *memDir) crash(rng *rand.Rand, seen map[*memFile]*memFile) *memDir {
	left := &memDir{names: maps.Clone(d.durable)}
	all, prefix := rng.IntN(4), 0
	if len(d.changes) > 0 {
		prefix = rng.IntN(len(d.changes) + 1)
	}
	for i, c := range d.changes {
		keep := false
		switch all {
		case 0: // nothing of it
		case 1: // everything
			keep = true
		case 2: // in order up to some point, as journaling file systems do
			keep = i < prefix
		default:
			keep = rng.IntN(2) == 0
		}
		if keep {
			left.apply(c)
		}
	}
	out := newMemDir()
	for _, name := range slices.Sorted(maps.Keys(left.names)) {
		n := left.names[name]
		if n.dir != nil {
			out.names[name] = memNode{dir: n.dir.crash(rng, seen)}
			continue
		}
		if seen[n.file] == nil {
			seen[n.file] = n.file.crash(rng)
		}
		out.names[name] = memNode{file: seen[n.file]}
	}
	out.durable = maps.Clone(out.names)
	return out
}

// Clone returns a copy of everything as it is, synced or not: what another process finds after this one was killed.
func (m *Mem) Clone() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := NewMem()
	c.root = m.root.clone()
	return c
}

func (d *memDir) clone() *memDir {
	out := newMemDir()
	for name, n := range d.names {
		if n.dir != nil {
			out.names[name] = memNode{dir: n.dir.clone()}
			continue
		}
		out.names[name] = memNode{file: n.file.clone()}
	}
	out.durable = maps.Clone(out.names)
	return out
}
