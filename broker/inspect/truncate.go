package inspect

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/millrace/millrace/broker/internal/flush"
)

// ErrNoCut says that a log can not be cut at an offset.
var ErrNoCut = errors.New("the log can not be cut there")

// cut is a place between two batches.
type cut struct {
	offset  int64
	segment int64 // base of the segment that it lies in
	bytes   int64 // of its log file that stay
}

// Truncate cuts the log of the one partition that was opened: every record from offset on is given up, be it damaged or not.
// Before anything changes, every file that will is copied to a folder beside the partition's, whose name it returns: brokers leave
// it alone. The journal is told, so that the broker does not take the cut for damage.
//
// A log is cut between batches. The error wraps [ErrNoCut] when offset is inside one, or below the log start, or behind the end.
func (d *Data) Truncate(offset int64, report func(Change)) (saved string, err error) {
	if len(d.Partitions) != 1 || !d.one {
		return "", fmt.Errorf("inspect: %w: %s is not the folder of one partition", ErrNoCut, d.Dir)
	}
	if p := d.Partitions[0]; len(p.swaps) > 0 {
		return "", fmt.Errorf("inspect: %w: %s is the output of a compaction that a crash interrupted; start the broker once, which finishes it", ErrNoCut, p.swaps[0].name)
	}
	release, err := d.lock()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, release()) }()
	p := d.Partitions[0]
	at, err := d.findCut(p, offset)
	if err != nil {
		return "", err
	}
	if saved, err = d.save(p, at); err != nil {
		return "", err
	}
	if d.journal != nil {
		if err := d.tellJournal(p, at); err != nil {
			return saved, err
		}
	}
	if err := d.cut(p, at, report); err != nil {
		return saved, err
	}
	again, err := Open(d.fs, p.Dir) // what the journal says has changed
	if err != nil {
		return saved, err
	}
	*d = *again
	return saved, nil
}

// findCut looks for the place, batch by batch. It ends at the first that does not check: there the log may be cut too.
func (d *Data) findCut(p *Partition, offset int64) (cut, error) {
	c := d.newGround(p, nil)
	base := p.segmentOf(offset)
	if base < 0 || offset < c.logStart {
		return cut{}, fmt.Errorf("inspect: %w: %s: offset %d is below the start of the log", ErrNoCut, p.Name(), offset)
	}
	name := fileName(base, logSuffix)
	s, err := openScan(p.fs, p.path(name))
	if err != nil {
		return cut{}, fmt.Errorf("inspect: %w", err)
	}
	defer s.close()
	c.next = base
	for {
		b, pos, err := s.next()
		var m *misfit
		if err != nil && err != io.EOF && !errors.As(err, &m) {
			return cut{}, fmt.Errorf("inspect: %s: %w", p.path(name), err)
		}
		end := err != nil || c.fits(b, nil) != ""
		switch {
		case c.next >= offset || !end && b.BaseOffset() >= offset:
			return cut{offset, base, pos}, nil
		case end && err == nil || m != nil:
			return cut{}, fmt.Errorf("inspect: %w: %s: the batch at offset %d does not check, so where offset %d is nobody knows; cut at %d or before",
				ErrNoCut, p.Name(), c.next, offset, c.next)
		case end:
			return cut{}, fmt.Errorf("inspect: %w: %s: offset %d is behind the end of the log, %d", ErrNoCut, p.Name(), offset, c.next)
		case b.LastOffset() >= offset:
			return cut{}, fmt.Errorf("inspect: %w: %s: offset %d is inside of the batch %d to %d", ErrNoCut, p.Name(), offset, b.BaseOffset(), b.LastOffset())
		}
		c.next = b.LastOffset() + 1
	}
}

// doomed tells whether a cut changes or removes a file.
func (at cut) doomed(name string) bool {
	offset, suffix, ok := parseName(name)
	switch {
	case name == epochsName:
		return true
	case !ok:
		return false
	case suffix == snapshotSuffix:
		return offset > at.offset
	}
	return offset >= at.segment
}

// save copies what will change.
func (d *Data) save(p *Partition, at cut) (dir string, err error) {
	for n := 1; ; n++ {
		dir = fmt.Sprintf("%s.%d-stray", p.Dir, n)
		if _, err := d.fs.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return "", fmt.Errorf("inspect: %w", err)
		}
	}
	if err := d.fs.MkdirAll(dir); err != nil {
		return "", fmt.Errorf("inspect: %w", err)
	}
	for _, name := range p.files {
		if at.doomed(name) || name == metadataName {
			if err := copyFile(d.fs, p.path(name), filepath.Join(dir, name)); err != nil {
				return "", fmt.Errorf("inspect: copy of %s: %w", p.path(name), err)
			}
		}
	}
	if err := errors.Join(d.fs.SyncDir(dir), d.fs.SyncDir(filepath.Dir(dir))); err != nil {
		return "", fmt.Errorf("inspect: %w", err)
	}
	return dir, nil
}

// tellJournal takes back what the journal says of offsets that go.
func (d *Data) tellJournal(p *Partition, at cut) error {
	id := newRebuild(d, p, nil).id
	err := flush.ChangeJournal(d.fs, d.Dir, func(points map[flush.ID]flush.Point) {
		point := points[id]
		point.Synced = min(point.Synced, at.offset)
		if point.Checkpoint.Offset > at.offset {
			point.Checkpoint = flush.Checkpoint{}
		}
		points[id] = point
	})
	if err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	return nil
}

// cut removes what is behind, newest first, so that what is left is a beginning of the log at every moment.
func (d *Data) cut(p *Partition, at cut, report func(Change)) error {
	log := fileName(at.segment, logSuffix)
	for _, name := range slices.Backward(p.files) {
		if !at.doomed(name) || name == log {
			continue
		}
		if err := d.fs.Remove(p.path(name)); err != nil {
			return fmt.Errorf("inspect: %w", err)
		}
		report(Change{p.Name(), name, "removed"})
	}
	f, err := d.fs.Open(p.path(log))
	if err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	if err = f.Truncate(at.bytes); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close(), d.fs.SyncDir(p.Dir)); err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	report(Change{p.Name(), log, fmt.Sprintf("cut at byte %d, offset %d", at.bytes, at.offset)})
	if err := p.list(); err != nil {
		return err
	}
	wrong := map[string]bool{epochsName: true, fileName(at.segment, indexSuffix): true}
	fresh := *d
	if d.journal != nil { // the checkpoint is gone, so nothing of the old sizes counts
		fresh.journal = &flush.Reading{Points: map[flush.ID]flush.Point{}}
	}
	_, err = fresh.rebuild(p, wrong, report)
	return err
}
