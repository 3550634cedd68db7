package sim

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/millrace/millrace/broker/internal/flush"
	"github.com/millrace/millrace/core/vfs"
)

var errPowerCut = errors.New("the power is cut")

// disk is the file system of one run of the broker: memory that can crash, with what goes wrong with disks. Its power may be
// cut between any two operations; from then on nothing works, and what is left was decided at that moment.
type disk struct {
	w   *world
	mem *vfs.Mem
	off bool
	// cutAt is the number of the change at which the power goes, 0 for none.
	cutAt, changes int64
	left           *vfs.Mem // after a cut: what the disk holds
	// failing answers changes while it is set; syncFails the next syncs of logs.
	failing   error
	kinds     vfs.Kind // which changes
	syncFails int
	broken    bool // a sync has failed: something may be offline until the next run
	// slow is how long a sync may take, 0 for no time. A sync that takes time lets other steps run, which only a flush can
	// bear: wait says so.
	slow time.Duration
	wait func() bool
	// last is how long the next sync takes, in which the power fails; 0 for none.
	last time.Duration
	cuts *int // how often the power has failed, over all runs
}

// cut turns the power off. What was not synced is lost as the seed says.
func (d *disk) cut() {
	if !d.off {
		d.off, d.left = true, d.mem.CrashClone(d.w.rng.Uint64())
		*d.cuts++
	}
}

// kill ends the process: the operating system keeps everything.
func (d *disk) kill() {
	if !d.off {
		d.off, d.left = true, d.mem.Clone()
	}
}

// before decides about one operation.
func (d *disk) before(kind vfs.Kind, path string) error {
	if d.off {
		return errPowerCut
	}
	if kind == vfs.OpOpen && d.kinds&kind != 0 && d.failing != nil {
		return &fs.PathError{Op: "open", Path: path, Err: d.failing}
	}
	if kind&vfs.OpChanges == 0 {
		return nil
	}
	d.changes++
	if d.changes == d.cutAt {
		d.w.log("power cut before %s %s", kind.String(), path)
		d.cut()
		return errPowerCut
	}
	if kind == vfs.OpSync && (strings.HasSuffix(path, ".log") || strings.HasPrefix(filepath.Base(path), flush.CarryName)) {
		if slow := max(d.slow, d.last); slow > 0 && d.w.depth < 4 && d.wait() {
			d.w.see("steps in a sync")
			d.w.pass(d.w.between(0, slow))
			if d.last > 0 && !d.off {
				d.w.log("power cut in the sync of %s", path)
				d.cut()
			}
		}
		if d.syncFails > 0 && !d.off {
			d.syncFails--
			d.broken = true
			d.w.log("sync of %s fails", path)
			d.w.see("sync fails")
			return &fs.PathError{Op: "sync", Path: path, Err: errors.New("input/output error")}
		}
		if d.off {
			return errPowerCut
		}
	}
	if d.failing != nil && d.kinds&kind != 0 {
		// What can not be undone, or is not known to be durable, takes a partition offline; so does an error that is not want of space
		// where one is made.
		d.broken = d.broken || kind&(vfs.OpSync|vfs.OpSyncDir|vfs.OpTruncate) != 0 || d.failing == syscall.EIO
		return &fs.PathError{Op: kind.String(), Path: path, Err: d.failing}
	}
	return nil
}

func (d *disk) do(kind vfs.Kind, path string, op func() error) error {
	if err := d.before(kind, path); err != nil {
		return err
	}
	return op()
}

func (d *disk) file(kind vfs.Kind, path string, op func(string) (vfs.File, error)) (vfs.File, error) {
	if err := d.before(kind, path); err != nil {
		return nil, err
	}
	f, err := op(path)
	if err != nil {
		return nil, err
	}
	return &file{f, d, path}, nil
}

func (d *disk) Create(path string) (vfs.File, error) { return d.file(vfs.OpCreate, path, d.mem.Create) }
func (d *disk) Open(path string) (vfs.File, error)   { return d.file(vfs.OpOpen, path, d.mem.Open) }
func (d *disk) OpenRead(path string) (vfs.File, error) {
	return d.file(vfs.OpOpen, path, d.mem.OpenRead)
}

func (d *disk) Rename(from, to string) error {
	return d.do(vfs.OpRename, from, func() error { return d.mem.Rename(from, to) })
}

func (d *disk) Remove(path string) error {
	return d.do(vfs.OpRemove, path, func() error { return d.mem.Remove(path) })
}

func (d *disk) MkdirAll(dir string) error {
	return d.do(vfs.OpMkdir, dir, func() error { return d.mem.MkdirAll(dir) })
}

func (d *disk) SyncDir(dir string) error {
	if d.failing == syscall.EMFILE && !d.off {
		return &fs.PathError{Op: "open", Path: dir, Err: d.failing}
	}
	return d.do(vfs.OpSyncDir, dir, func() error { return d.mem.SyncDir(dir) })
}

func (d *disk) List(dir string) ([]string, error) {
	if err := d.before(vfs.OpList, dir); err != nil {
		return nil, err
	}
	return d.mem.List(dir)
}

func (d *disk) Stat(path string) (vfs.Info, error) {
	if err := d.before(vfs.OpStat, path); err != nil {
		return vfs.Info{}, err
	}
	return d.mem.Stat(path)
}

func (d *disk) Lock(path string) (io.Closer, error) {
	if err := d.before(vfs.OpLock, path); err != nil {
		return nil, err
	}
	return d.mem.Lock(path)
}

// file is an open file of a disk.
type file struct {
	vfs.File
	d    *disk
	path string
}

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	if err := f.d.before(vfs.OpRead, f.path); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, off)
}

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	err := f.d.before(vfs.OpWrite, f.path)
	if err == nil {
		return f.File.WriteAt(p, off)
	}
	if f.d.off {
		return 0, err
	}
	n, werr := f.File.WriteAt(p[:f.d.w.rng.IntN(len(p)+1)], off) // a full disk takes a part
	return n, errors.Join(err, werr)
}

func (f *file) Truncate(n int64) error {
	return f.d.do(vfs.OpTruncate, f.path, func() error { return f.File.Truncate(n) })
}

func (f *file) Sync() error { return f.d.do(vfs.OpSync, f.path, f.File.Sync) }

func (f *file) Size() (int64, error) {
	if err := f.d.before(vfs.OpSize, f.path); err != nil {
		return 0, err
	}
	return f.File.Size()
}
