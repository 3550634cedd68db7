package inspect

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/millrace/millrace/broker/internal/flush"
	"github.com/millrace/millrace/core/vfs"
)

// ErrInUse says that a broker has the data folder.
var ErrInUse = errors.New("the data folder is in use by a broker")

// Change is something that a repair did.
type Change struct {
	Partition string `json:"partition,omitempty"`
	File      string `json:"file"`
	What      string `json:"what"`
}

func (c Change) String() string {
	if c.Partition == "" {
		return c.File + ": " + c.What
	}
	return c.Partition + ": " + c.File + ": " + c.What
}

// lockFile is what a broker locks while it has the folder, ours and Kafka's. The two lock in different ways: the lock does not keep
// a repair from a folder that Kafka runs on.
const lockFile = ".lock"

// lock takes the data folder for as long as something is written, and brings it up to the append journals, as a start of the broker
// would: what they hold must not come back over what is written here. Where there is no data folder around a partition's folder
// there is nothing to lock.
func (d *Data) lock() (release func() error, err error) {
	if d.Properties == nil && d.journal == nil {
		return func() error { return nil }, nil
	}
	l, err := d.fs.Lock(filepath.Join(d.Dir, lockFile))
	if errors.Is(err, vfs.ErrLocked) {
		return nil, fmt.Errorf("inspect: %s: %w", d.Dir, ErrInUse)
	}
	if err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	if err := d.redo(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l.Close, nil
}

// ErrLostMore says that more is lost than the journal.
var ErrLostMore = errors.New("more is wrong than that the journal is missing")

// redo looks at the folder again if append journals were worked in. Without a recovery journal nobody can tell which of their bytes
// still count.
func (d *Data) redo() error {
	if d.pending == 0 {
		return nil
	}
	if d.journal == nil {
		return fmt.Errorf("inspect: %s: %w: a broker that was killed has left append journals", d.Dir, ErrLostMore)
	}
	if _, err := flush.Redo(d.fs, d.Dir); err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	dir := d.Dir
	if d.one {
		dir = d.Partitions[0].Dir
	}
	again, err := Open(d.fs, dir)
	if err != nil {
		return err
	}
	*d = *again
	return nil
}

// Repair verifies the folder and makes anew what is derived and wrong. No record is touched. report hears of every file that was
// written; left hears of every finding that a repair can do nothing about. A partition with damage in its log is left as it is:
// what is derived from a damaged log is damaged too.
func (d *Data) Repair(o VerifyOptions, report func(Change), left func(Finding)) (err error) {
	release, err := d.lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if !d.one {
		if err := d.repairJournal(report, left); err != nil {
			return err
		}
	}
	for _, p := range d.Partitions {
		var found []Finding
		if err := d.verifyPartition(p, o, func(f Finding) { found = append(found, f) }); err != nil {
			return err
		}
		if err := d.repairPartition(p, found, report, left); err != nil {
			return err
		}
	}
	return nil
}

// repairJournal writes a journal anew that has flipped bits. What such a record said is lost; the records around it still say most.
func (d *Data) repairJournal(report func(Change), left func(Finding)) error {
	rewrite := false
	d.verifyFolder(func(f Finding) {
		if f.File == flush.JournalName && f.Severity == Rebuildable {
			rewrite = true
		} else if f.Severity > Note {
			left(f)
		}
	})
	if !rewrite {
		return nil
	}
	if err := flush.ChangeJournal(d.fs, d.Dir, func(map[flush.ID]flush.Point) {}); err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	report(Change{File: flush.JournalName, What: "written anew with the records that check"})
	return nil
}

// repairPartition makes anew the files that the findings name.
func (d *Data) repairPartition(p *Partition, found []Finding, report func(Change), left func(Finding)) error {
	wrong := map[string]bool{}
	damaged := false
	for _, f := range found {
		switch {
		case f.Severity == Rebuildable && f.File == progressName: // only the broker can: by another round of compaction
			left(f)
		case f.Severity == Rebuildable:
			wrong[f.File] = true
		case f.Severity > Note:
			damaged = damaged || f.Severity == Damage
			left(f)
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	if damaged {
		for _, f := range found {
			if f.Severity == Rebuildable {
				left(f)
			}
		}
		return nil
	}
	beyond, err := d.rebuild(p, wrong, report)
	for _, f := range found {
		if slices.Contains(beyond, f.File) {
			left(f)
		}
	}
	return err
}

// rebuild writes the files with the given names from the batches. It gives the names of the snapshots that it could not make, as
// the log ends before their offset.
func (d *Data) rebuild(p *Partition, wrong map[string]bool, report func(Change)) (beyond []string, err error) {
	r := newRebuild(d, p, wrong)
	if err := r.run(); err != nil {
		return nil, err
	}
	for _, offset := range r.snapshots {
		beyond = append(beyond, fileName(offset, snapshotSuffix))
	}
	// A snapshot is a witness of what was durable, so that has to be true first.
	for _, base := range p.logs {
		if err := syncFile(d.fs, p.path(fileName(base, logSuffix))); err != nil {
			return nil, err
		}
	}
	for _, f := range r.files {
		if err := vfs.WriteFile(d.fs, p.path(f.name), f.data, false); err != nil {
			return nil, fmt.Errorf("inspect: %w", err)
		}
		report(Change{p.Name(), f.name, fmt.Sprintf("made anew from the log, %d bytes", len(f.data))})
	}
	if err := d.fs.SyncDir(p.Dir); err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	if r.checkpoint != nil {
		if err := flush.ChangeJournal(d.fs, d.Dir, func(points map[flush.ID]flush.Point) {
			point := points[r.id]
			point.Checkpoint = *r.checkpoint
			points[r.id] = point
		}); err != nil {
			return nil, fmt.Errorf("inspect: %w", err)
		}
	}
	return beyond, p.list()
}

func syncFile(fsys vfs.FS, path string) error {
	f, err := fsys.Open(path)
	if err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	err = f.Sync()
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	return nil
}

// copyFile copies a file and makes the copy durable, but for its name.
func copyFile(fsys vfs.FS, from, to string) error {
	in, err := fsys.OpenRead(from)
	if err != nil {
		return err
	}
	defer in.Close() // read only: nothing to lose
	size, err := in.Size()
	if err != nil {
		return err
	}
	out, err := fsys.Create(to)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(io.NewOffsetWriter(out, 0), struct{ io.Reader }{io.NewSectionReader(in, 0, size)}, make([]byte, 1<<20))
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}
