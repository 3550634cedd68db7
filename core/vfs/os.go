package vfs

import (
	"fmt"
	"io"
	"os"
	"slices"
)

// OS returns the file system of the machine. Files are made with mode 0644 and
// folders with 0755, both less the umask.
func OS() FS { return osFS{} }

type osFS struct{}

func (osFS) Create(path string) (File, error) {
	return openOS(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
}

func (osFS) Open(path string) (File, error) { return openOS(path, os.O_RDWR) }

func (osFS) OpenRead(path string) (File, error) { return openOS(path, os.O_RDONLY) }

func openOS(path string, flag int) (File, error) {
	f, err := os.OpenFile(path, flag, 0o644)
	if err != nil {
		return nil, err
	}
	return &osFile{f}, nil
}

func (osFS) Rename(from, to string) error { return os.Rename(from, to) }

func (osFS) Remove(path string) error { return os.Remove(path) }

func (osFS) MkdirAll(dir string) error { return os.MkdirAll(dir, 0o755) }

func (osFS) List(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close() // read only: nothing to lose
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}

func (osFS) Stat(path string) (Info, error) {
	st, err := os.Stat(path)
	if err != nil {
		return Info{}, err
	}
	return Info{Size: st.Size(), Dir: st.IsDir(), ModTimeMs: st.ModTime().UnixMilli()}, nil
}

func (osFS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = syncDir(d)
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}

func (osFS) Lock(path string) (io.Closer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		f.Close() // the lock's error says more
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}

// osFile adds to os.File what the interface asks for. Its Sync is fdatasync
// where there is one: content and length, not access times.
type osFile struct{ *os.File }

func (f *osFile) Size() (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

func (f *osFile) Sync() error { return syncData(f.File) }

func (f *osFile) Fd() (uintptr, bool) {
	// os.File.Fd would put the descriptor into blocking mode for pipes and
	// sockets; a regular file is always blocking, so nothing changes here.
	return f.File.Fd(), true
}
