package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
)

// FS is a file system. Paths are those of path/filepath; a missing file is
// reported as an error that wraps fs.ErrNotExist.
type FS interface {
	// Create opens the file for reading and writing, and empties it if it exists.
	Create(path string) (File, error)
	// Open opens an existing file for reading and writing.
	Open(path string) (File, error)
	// OpenRead opens an existing file for reading only.
	OpenRead(path string) (File, error)
	// Rename moves a file or folder; an existing file at to is replaced atomically.
	Rename(from, to string) error
	// Remove deletes a file or an empty folder.
	Remove(path string) error
	// MkdirAll makes the folder and its missing parents.
	MkdirAll(dir string) error
	// List returns the names in a folder, sorted.
	List(dir string) ([]string, error)
	// Stat describes a file or folder.
	Stat(path string) (Info, error)
	// SyncDir makes the names in a folder durable.
	SyncDir(dir string) error
	// Lock takes an exclusive lock on path, which is created when missing, until
	// the result is closed or the process ends. If somebody else holds it the
	// error wraps ErrLocked. The file stays: removing it would let two owners in.
	Lock(path string) (io.Closer, error)
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Size is the current length in bytes.
	Size() (int64, error)
	// Truncate sets the length; growing fills with zeros.
	Truncate(size int64) error
	// Sync makes the content and the length durable (not the name: see SyncDir).
	Sync() error
	// Fd is the descriptor, for sendfile; false when there is none. It is valid
	// until Close, and its cursor is nobody's: use explicit offsets only.
	Fd() (uintptr, bool)
}

// Info is what Stat knows.
type Info struct {
	Size int64
	Dir  bool
	// ModTimeMs is when the content last changed, in ms since 1970; 0 where the file system keeps no time (memory).
	ModTimeMs int64
}

// ErrLocked is wrapped by the error of Lock when another owner holds the lock.
var ErrLocked = errors.New("locked by another process")

// TempSuffix marks files that WriteFile had not finished. They mean nothing and
// may be removed by whoever opens the folder.
const TempSuffix = ".tmp"

// ReadFile returns the whole content of a file.
func ReadFile(fsys FS, path string) ([]byte, error) {
	f, err := fsys.OpenRead(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only: nothing to lose
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	buf := make([]byte, size)
	n, err := f.ReadAt(buf, 0)
	if err != nil && !(errors.Is(err, io.EOF) && int64(n) == size) {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return buf[:n], nil
}

// WriteFile replaces the content of a file atomically: after a crash at any
// point the name leads to the whole old or the whole new content. The content
// is durable on return; the name is durable too unless the caller passes
// syncDir false and syncs the folder itself.
func WriteFile(fsys FS, path string, data []byte, syncDir bool) error {
	tmp := path + TempSuffix
	f, err := fsys.Create(tmp)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(data, 0); err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = fsys.Rename(tmp, path)
	}
	if err != nil {
		if rerr := fsys.Remove(tmp); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			return errors.Join(fmt.Errorf("write %s: %w", path, err), rerr)
		}
		return fmt.Errorf("write %s: %w", path, err)
	}
	if !syncDir {
		return nil
	}
	return fsys.SyncDir(filepath.Dir(path))
}

// RemoveAll deletes a folder with everything in it; a missing folder is fine.
// It goes on past a failure and returns the first one.
func RemoveAll(fsys FS, dir string) error {
	info, err := fsys.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.Dir {
		return fsys.Remove(dir)
	}
	names, err := fsys.List(dir)
	if err != nil {
		return err
	}
	var first error
	for _, name := range names {
		if err := RemoveAll(fsys, filepath.Join(dir, name)); err != nil && first == nil {
			first = err
		}
	}
	if first != nil {
		return first
	}
	return fsys.Remove(dir)
}

// RemoveTemp removes leftovers of unfinished WriteFile calls from a folder.
func RemoveTemp(fsys FS, dir string) error {
	names, err := fsys.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasSuffix(name, TempSuffix) {
			if err := fsys.Remove(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}
