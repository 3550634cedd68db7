package commitlog

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/millrace/millrace/core/vfs"
)

// folder lists the files, and removes what unfinished work of the past has left.
func (r *recovery) folder() error {
	o := &r.l.o
	names, err := r.l.at.fs.List(r.l.at.dir)
	if errors.Is(err, fs.ErrNotExist) {
		r.l.parent = true
		err = r.l.at.fs.MkdirAll(r.l.at.dir)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", o.Name, err)
	}
	for _, name := range names {
		if filepath.Ext(name) != swapSuffix {
			continue
		}
		if names, err = r.finishSwap(name, names); err != nil {
			return err
		}
	}
	r.files, r.names = map[string][]int64{}, map[string]bool{}
	for _, name := range names {
		switch suffix := filepath.Ext(name); suffix {
		case vfs.TempSuffix, deletedSuffix, cleanedSuffix:
			if err := r.l.at.fs.Remove(filepath.Join(r.l.at.dir, name)); err != nil {
				return fmt.Errorf("%s: %w", o.Name, err)
			}
			continue
		}
		r.names[name] = true
		if offset, suffix, ok := parseName(name); ok {
			r.files[suffix] = append(r.files[suffix], offset) // List is sorted, and so are 20 digits
		}
	}
	return r.loadProgress()
}

// metadata compares the folder's topic id.
func (r *recovery) metadata() error {
	o := &r.l.o
	path := filepath.Join(r.l.at.dir, metadataName)
	r.known = max(r.point.Synced, r.point.LogStart)
	r.l.parent = r.l.parent || r.known == 0
	if r.names[metadataName] {
		text, err := vfs.ReadFile(r.l.at.fs, path)
		if err != nil {
			return fmt.Errorf("%s: %w", o.Name, err)
		}
		id, err := decodeMetadata(text)
		switch {
		case err == nil && o.TopicID != [16]byte{} && id != o.TopicID:
			return fmt.Errorf("%s: %w: %s has %x, the topic is %x", o.Name, ErrTopicID, path, id, o.TopicID)
		case err == nil:
			return nil
		}
		// A file that never became durable: then nothing was acknowledged, or the journal knows this very topic id.
		r.l.logger.Warn("partition.metadata does not parse and is written anew", "partition", o.Name, "err", err)
	}
	r.write = o.TopicID != [16]byte{}
	return nil
}

// writeMetadata begins the file anew; the next flush makes it durable, before anything in the log is.
func (r *recovery) writeMetadata() error {
	o := &r.l.o
	f, err := r.l.at.fs.Create(filepath.Join(r.l.at.dir, metadataName))
	if err != nil {
		return err
	}
	r.l.metaDirty = true
	_, err = f.WriteAt(encodeMetadata(o.TopicID), 0)
	return errors.Join(err, f.Close())
}

// snapshots finds out which there are, and up to where the log was durable. A snapshot is written only after all
// that it speaks of is durable, so the newest one is a witness as good as the journal; one that does not check is none.
func (r *recovery) snapshots() error {
	o, l := &r.l.o, r.l
	for _, offset := range r.files[snapshotSuffix] {
		data, err := vfs.ReadFile(r.l.at.fs, l.snapshotPath(offset))
		if err != nil {
			return fmt.Errorf("%s: %w", o.Name, err)
		}
		if err := o.NewState().Load(data); err != nil {
			l.logger.Warn("a producer snapshot does not check and is removed", "partition", o.Name, "offset", offset, "err", err)
			if err := r.l.at.fs.Remove(l.snapshotPath(offset)); err != nil {
				return fmt.Errorf("%s: %w", o.Name, err)
			}
			continue
		}
		r.known = max(r.known, offset)
		l.snapshots = append(l.snapshots, offset)
	}
	return nil
}

// begin takes the newest snapshot that is not behind the checkpoint, nor behind the first batch that is still there.
func (r *recovery) begin() error {
	o, l := &r.l.o, r.l
	from := r.point.Checkpoint.Offset
	if list := l.list(); len(list) > 0 {
		from = max(from, list[0].base)
	}
	for _, offset := range slices.Backward(l.snapshots) {
		if offset > from {
			continue
		}
		data, err := vfs.ReadFile(r.l.at.fs, l.snapshotPath(offset))
		if err == nil {
			err = l.state.Load(data)
		}
		if err != nil {
			return fmt.Errorf("%s: snapshot at offset %d: %w", o.Name, offset, err)
		}
		r.from = offset
		break
	}
	return nil
}

// segments makes the list of segments, and looks whether one is missing.
func (r *recovery) segments() error {
	o, l := &r.l.o, r.l
	l.logStart.Store(r.point.LogStart)
	bases := r.files[logSuffix]
	var list []*segment
	for _, base := range bases {
		if _, have := slices.BinarySearch(l.snapshots, base); have {
			l.safe = max(l.safe, base)
		}
	}
	for i, base := range bases {
		s := newSegment(&l.at, base)
		if i+1 < len(bases) && bases[i+1] <= min(r.point.LogStart, l.safe) { // a deletion that did not come to its end
			if err := s.deleteFiles(); err != nil {
				return fmt.Errorf("%s: %w", o.Name, err)
			}
			continue
		}
		list = append(list, s)
	}
	l.segments.Store(&list)
	for _, suffix := range []string{indexSuffix, timeSuffix, txnSuffix, txnSumSuffix} {
		for _, base := range r.files[suffix] {
			if _, have := slices.BinarySearch(bases, base); have {
				continue
			}
			if base >= r.point.LogStart && base < r.known {
				return r.damage(fileName(base, logSuffix), -1, base, "the file is missing, its %s is there", suffix)
			}
			if err := r.l.at.fs.Remove(filepath.Join(r.l.at.dir, fileName(base, suffix))); err != nil {
				return fmt.Errorf("%s: %w", o.Name, err)
			}
		}
	}
	switch {
	case len(list) == 0 && r.known > r.point.LogStart:
		return r.damage(fileName(r.point.LogStart, logSuffix), -1, r.point.LogStart, "there is no log file")
	case len(list) > 0 && r.known > r.point.LogStart && list[0].base > r.point.LogStart:
		return r.damage(fileName(r.point.LogStart, logSuffix), -1, r.point.LogStart, "the first log file begins at offset %d", list[0].base)
	}
	for _, s := range list {
		info, err := r.l.at.fs.Stat(s.path(logSuffix))
		if err != nil {
			return fmt.Errorf("%s: %w", o.Name, err)
		}
		s.size.Store(info.Size)
		s.writtenMs.Store(info.ModTimeMs)
	}
	if err := r.headless(); err != nil {
		return err
	}
	return r.epochFile()
}

// headless removes the segments of a log whose beginning is not there and of which nothing was ever durable. More than one segment
// was begun before the first flush ended, and the power cut took the first one's name and left that of a later one. A log start
// that moves is noted before a file goes, by retention, by DeleteRecords and by whoever brings a folder here. So what is left are
// records whose predecessors are lost, and a log ends before the first thing that is missing, whatever there is behind it.
func (r *recovery) headless() error {
	list := r.l.list()
	if len(list) == 0 || list[0].base <= r.point.LogStart {
		return nil
	}
	r.l.logger.Warn("the beginning of the log, which no sync had covered, is missing; what is behind it is removed", "partition", r.l.o.Name,
		"offset", r.point.LogStart, "segment", list[0].base)
	return r.drop(list)
}

// epochFile reads the leader epochs. They are derived data: a file that is missing or does not check is made again from the
// headers of all batches.
func (r *recovery) epochFile() error {
	o, l := &r.l.o, r.l
	cause := error(fs.ErrNotExist)
	if r.names[epochsName] {
		text, err := vfs.ReadFile(r.l.at.fs, filepath.Join(r.l.at.dir, epochsName))
		if err != nil {
			return fmt.Errorf("%s: %w", o.Name, err)
		}
		if cause = l.epochs.decode(text); cause == nil {
			return nil
		}
	}
	l.epochDirty.Store(true)
	if r.point.Checkpoint.Offset == 0 {
		return nil // the file is first written with a checkpoint, and without one everything is replayed
	}
	l.logger.Warn("the leader epochs are made again from the log", "partition", o.Name, "cause", cause)
	list, _, err := l.headerEpochs()
	if err != nil {
		return err
	}
	l.epochs.list.Store(&list)
	return nil
}
