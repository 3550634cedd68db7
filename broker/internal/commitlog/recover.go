package commitlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/millrace/millrace/broker/internal/flush"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/vfs"
)

// defaultCheckpointBytes is what a restart reads again of a busy partition, at most and roughly: some 10 ms of work.
const defaultCheckpointBytes = 16 << 20

// Open opens a log, or begins one, and recovers it: see the package comment. The whole log is durable on return. An error that
// wraps [ErrDamaged] is for a person to look at; the disk is as it was.
func Open(o Options) (*Log, error) {
	if err := o.Config.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", o.Name, err)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.CheckpointBytes == 0 {
		o.CheckpointBytes = defaultCheckpointBytes
	}
	o.Config = o.Config.WithDefaults()
	l := &Log{o: o, config: o.Config, logger: o.Logger, state: o.NewState(), dirDirty: true}
	r := &recovery{l: l, point: o.Point}
	if err := r.run(); err != nil {
		r.abandon()
		return nil, err
	}
	return l, nil
}

// recovery is the state of one opening.
type recovery struct {
	l     *Log
	point flush.Point
	files map[string][]int64 // by suffix, ascending
	names map[string]bool

	known   int64 // everything below was durable once
	from    int64 // the first offset that is replayed
	next    int64 // the offset after the last good batch
	changed bool  // something was cut or removed
	write   bool  // partition.metadata is missing
}

func (r *recovery) run() error {
	if err := r.folder(); err != nil {
		return err
	}
	if err := r.metadata(); err != nil {
		return err
	}
	if err := r.snapshots(); err != nil {
		return err
	}
	if err := r.segments(); err != nil {
		return err
	}
	if err := r.begin(); err != nil {
		return err
	}
	if err := r.replay(); err != nil {
		return err
	}
	if err := r.finish(); err != nil {
		return fmt.Errorf("%s: %w", r.l.o.Name, err)
	}
	return nil
}

// abandon closes what was opened.
func (r *recovery) abandon() {
	if list := r.l.segments.Load(); list != nil {
		for _, s := range *list {
			if err := s.release(); err != nil {
				r.l.logger.Warn("closing a segment that could not be recovered", "partition", r.l.o.Name, "err", err)
			}
		}
	}
}

func (r *recovery) damage(file string, pos, offset int64, format string, args ...any) error {
	return &DamageError{Partition: r.l.o.Name, File: file, Position: pos, Offset: offset, Durable: r.known, Reason: fmt.Sprintf(format, args...)}
}

// folder lists the files, and removes what unfinished work of the past has left.
func (r *recovery) folder() error {
	o := &r.l.o
	names, err := o.FS.List(o.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		r.l.parent = true
		if err = o.FS.MkdirAll(o.Dir); err == nil {
			names, err = o.FS.List(o.Dir)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", o.Name, err)
	}
	r.files, r.names = map[string][]int64{}, map[string]bool{}
	for _, name := range names {
		switch suffix := filepath.Ext(name); suffix {
		case vfs.TempSuffix, deletedSuffix, cleanedSuffix:
			if err := o.FS.Remove(filepath.Join(o.Dir, name)); err != nil {
				return fmt.Errorf("%s: %w", o.Name, err)
			}
			continue
		case swapSuffix:
			return fmt.Errorf("%s: %s is left of a compaction that another program did not finish; start that program once more, or remove the file if its segment is whole",
				o.Name, name)
		}
		r.names[name] = true
		if offset, suffix, ok := parseName(name); ok {
			r.files[suffix] = append(r.files[suffix], offset) // List is sorted, and so are 20 digits
		}
	}
	return nil
}

// metadata compares the folder's topic id.
func (r *recovery) metadata() error {
	o := &r.l.o
	path := filepath.Join(o.Dir, metadataName)
	r.known = max(r.point.Synced, r.point.LogStart)
	r.l.parent = r.l.parent || r.known == 0
	if r.names[metadataName] {
		text, err := vfs.ReadFile(o.FS, path)
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
	f, err := o.FS.Create(filepath.Join(o.Dir, metadataName))
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
		data, err := vfs.ReadFile(o.FS, l.snapshotPath(offset))
		if err != nil {
			return fmt.Errorf("%s: %w", o.Name, err)
		}
		if err := o.NewState().Load(data); err != nil {
			l.logger.Warn("a producer snapshot does not check and is removed", "partition", o.Name, "offset", offset, "err", err)
			if err := o.FS.Remove(l.snapshotPath(offset)); err != nil {
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
		data, err := vfs.ReadFile(o.FS, l.snapshotPath(offset))
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
		s := newSegment(o.FS, o.Dir, base)
		if i+1 < len(bases) && bases[i+1] <= min(r.point.LogStart, l.safe) { // a deletion that did not come to its end
			if err := s.deleteFiles(); err != nil {
				return fmt.Errorf("%s: %w", o.Name, err)
			}
			continue
		}
		list = append(list, s)
	}
	l.segments.Store(&list)
	for _, suffix := range []string{indexSuffix, timeSuffix, txnSuffix} {
		for _, base := range r.files[suffix] {
			if _, have := slices.BinarySearch(bases, base); have {
				continue
			}
			if base >= r.point.LogStart && base < r.known {
				return r.damage(fileName(base, logSuffix), -1, base, "the file is missing, its %s is there", suffix)
			}
			if err := o.FS.Remove(filepath.Join(o.Dir, fileName(base, suffix))); err != nil {
				return fmt.Errorf("%s: %w", o.Name, err)
			}
		}
	}
	switch {
	case len(list) == 0 && r.known > r.point.LogStart:
		return r.damage(fileName(r.point.LogStart, logSuffix), -1, r.point.LogStart, "there is no log file")
	case len(list) > 0 && r.point.Synced > 0 && list[0].base > r.point.LogStart:
		return r.damage(fileName(r.point.LogStart, logSuffix), -1, r.point.LogStart, "the first log file begins at offset %d", list[0].base)
	}
	for _, s := range list {
		info, err := o.FS.Stat(s.path(logSuffix))
		if err != nil {
			return fmt.Errorf("%s: %w", o.Name, err)
		}
		s.size.Store(info.Size)
	}
	return r.epochFile()
}

// epochFile reads the leader epochs. They are derived data: a file that is missing or does not check is made again from the
// headers of all batches.
func (r *recovery) epochFile() error {
	o, l := &r.l.o, r.l
	cause := error(fs.ErrNotExist)
	if r.names[epochsName] {
		text, err := vfs.ReadFile(o.FS, filepath.Join(o.Dir, epochsName))
		if err != nil {
			return fmt.Errorf("%s: %w", o.Name, err)
		}
		if cause = l.epochs.decode(text); cause == nil {
			return nil
		}
	}
	l.epochDirty = true
	for _, s := range l.list() {
		if s.size.Load() == 0 || s.base >= r.point.Checkpoint.Offset {
			continue // what is behind the checkpoint is replayed anyway, and the file is first written with a checkpoint
		}
		l.logger.Warn("the leader epochs are made again from the log", "partition", o.Name, "segment", s.base, "cause", cause)
		file, err := s.handle()
		if err != nil {
			return fmt.Errorf("%s: %w", o.Name, err)
		}
		w := newWalker(file, s.size.Load())
		for pos := int64(0); ; {
			head, size, err := w.at(pos)
			if err != nil { // the end, or what the replay judges
				break
			}
			l.epochs.assign(head.LeaderEpoch(), head.BaseOffset())
			pos += size
		}
		w.done()
	}
	return nil
}

// replay reads everything from the checkpoint on (or from the newest snapshot before it), checks it, and derives from it what
// the log keeps beside the batches.
func (r *recovery) replay() error {
	l := r.l
	cp := r.point.Checkpoint
	list := l.list()
	if len(list) > 0 && find(list, cp.Offset) < 0 {
		cp = flush.Checkpoint{} // deleted since: begin at the first segment
	}
	r.next = r.from
	for i, s := range list {
		end := int64(-1) // unknown: s is the last
		if i+1 < len(list) {
			end = list[i+1].base
		}
		if end >= 0 && end <= min(r.from, cp.Offset) {
			if err := r.keep(s); err != nil {
				return err
			}
			r.next = end
			continue
		}
		if s.base > l.safe && s.base >= r.from {
			l.starts = append(l.starts, start{s.base, l.state.Snapshot(nil)})
		}
		cut, err := r.segment(s, cp)
		if err != nil {
			return err
		}
		if end >= 0 && !cut {
			if cut, err = r.joint(s, end); err != nil {
				return err
			}
		}
		if cut {
			return r.drop(list[i+1:])
		}
	}
	return nil
}

// joint looks whether the segment behind s begins where s ends; cut tells that it does not and may be dropped. Only compaction
// leaves gaps, and only in what is durable.
func (r *recovery) joint(s *segment, begin int64) (cut bool, err error) {
	switch {
	case r.next == begin:
		return false, nil
	case r.next > begin && begin < r.known, r.next < min(begin, r.known) && !r.l.o.Config.Compacted:
		return false, r.damage(fileName(s.base, logSuffix), s.size.Load(), r.next, "the segment ends here, the next one begins at offset %d", begin)
	}
	return r.next > begin || r.next >= r.known, nil
}

// keep takes a segment as it is: finished before the checkpoint. Only what is plainly missing is made again.
func (r *recovery) keep(s *segment) error {
	if r.names[fileName(s.base, indexSuffix)] && r.names[fileName(s.base, timeSuffix)] {
		return nil
	}
	return r.l.rebuild(s, fs.ErrNotExist)
}

// segment replays one segment, from the checkpoint if that lies in it. cut tells that it ended in a torn tail.
func (r *recovery) segment(s *segment, cp flush.Checkpoint) (cut bool, err error) {
	l := r.l
	pos, indexed := int64(0), s.base // batches before indexed are in the indexes
	switch {
	case s.base > cp.Segment || cp == flush.Checkpoint{}:
		s.fresh()
	case s.base < cp.Segment:
		if err := r.keep(s); err != nil {
			return false, err
		}
		indexed = cp.Offset
	case s.size.Load() < cp.Position:
		return false, r.damage(fileName(s.base, logSuffix), s.size.Load(), cp.Offset, "the file has %d bytes, %d were durable", s.size.Load(), cp.Position)
	case s.load(cp):
		indexed = cp.Offset
		if r.from == cp.Offset {
			pos = cp.Position
		}
	default:
		l.logger.Warn("indexes do not fit the checkpoint and are built again", "partition", l.o.Name, "segment", s.base)
		s.fresh()
		if r.from > s.base {
			if err := r.stateAt(s.base); err != nil {
				return false, err
			}
		}
	}
	if r.next = s.base; pos > 0 {
		r.next = cp.Offset
	}
	if s.mem.Load() != nil {
		l.unfinished = append(l.unfinished, s)
	}
	return r.scan(s, pos, indexed)
}

// stateAt goes back to the state at the beginning of a segment, by its snapshot or by replaying what stands before it.
func (r *recovery) stateAt(base int64) error {
	l := r.l
	list := l.list()
	first := max(find(list, base), 0)
	l.state, r.from = l.o.NewState(), base
	for ; first >= 0; first-- {
		data, err := vfs.ReadFile(l.o.FS, l.snapshotPath(list[first].base))
		if err == nil && l.state.Load(data) == nil {
			break
		}
		l.state = l.o.NewState()
	}
	for _, s := range list[max(first, 0):max(find(list, base), 0)] {
		if err := l.replayOne(s, func(b record.Batch, _ int64) error {
			_, _, err := l.state.Replay(b)
			return err
		}); err != nil {
			return fmt.Errorf("%s: %w", l.o.Name, err)
		}
	}
	return nil
}

// scan checks the batches of a segment from pos on. The first that does not check is damage below the known durable offset,
// a torn tail above it.
func (r *recovery) scan(s *segment, pos, indexed int64) (cut bool, err error) {
	l := r.l
	file, err := s.handle()
	if err != nil {
		return false, fmt.Errorf("%s: %w", l.o.Name, err)
	}
	sc := newScanner(file, pos, s.size.Load())
	defer sc.done()
	for {
		pos := sc.pos
		b, err := sc.next()
		if err == io.EOF {
			return false, nil
		}
		if err != nil && !errors.Is(err, errBadHeader) {
			return false, fmt.Errorf("%s: %s: %w", l.o.Name, s.path(logSuffix), err)
		}
		if err == nil {
			err = r.check(b)
		}
		if err != nil {
			if r.next < r.known {
				return false, r.damage(fileName(s.base, logSuffix), pos, r.next, "%v", err)
			}
			return true, r.truncate(s, pos, err)
		}
		if err := r.take(s, b, pos, indexed); err != nil {
			return false, err
		}
	}
}

// check tells whether a batch can stand where it was found.
func (r *recovery) check(b record.Batch) error {
	if err := b.CheckCRC(); err != nil {
		return err
	}
	base := b.BaseOffset()
	gap := base > r.next && !(r.l.o.Config.Compacted && base <= r.known) // only compaction leaves gaps, and only in what is durable
	if base < r.next || b.LastOffsetDelta() < 0 || gap {
		return fmt.Errorf("the batch has base offset %d and last offset %d, expected is %d", base, b.LastOffset(), r.next)
	}
	return nil
}

// take accepts a batch.
func (r *recovery) take(s *segment, b record.Batch, pos, indexed int64) error {
	l := r.l
	r.next = b.LastOffset() + 1
	if l.epochs.assign(b.LeaderEpoch(), b.BaseOffset()) {
		l.epochDirty = true
	}
	fresh := b.BaseOffset() >= indexed && s.mem.Load() != nil
	if fresh {
		s.note(b, pos, l.o.Config.IndexIntervalBytes)
	}
	if b.BaseOffset() < r.from {
		return nil
	}
	a, aborted, err := l.state.Replay(b)
	if err != nil {
		return fmt.Errorf("%s: %s at byte %d: %w", l.o.Name, s.path(logSuffix), pos, err)
	}
	if aborted && fresh {
		s.mem.Load().txns.add(a)
	}
	return nil
}

// truncate cuts a torn tail off.
func (r *recovery) truncate(s *segment, pos int64, cause error) error {
	l := r.l
	l.logger.Warn("a torn tail that nobody was told of is cut off", "partition", l.o.Name, "segment", s.base,
		"byte", pos, "offset", r.next, "bytes", s.size.Load()-pos, "cause", cause)
	if err := s.openForAppend(); err != nil {
		return fmt.Errorf("%s: %w", l.o.Name, err)
	}
	file, err := s.handle()
	if err == nil {
		err = file.Truncate(pos)
	}
	if err != nil {
		return fmt.Errorf("%s: cut at byte %d: %w", l.o.Name, pos, err)
	}
	s.size.Store(pos)
	s.syncedSize, r.changed = -1, true
	return nil
}

// drop removes the segments behind a cut, newest first: what is left is always a beginning of the log.
func (r *recovery) drop(behind []*segment) error {
	l := r.l
	for _, s := range slices.Backward(behind) {
		l.logger.Warn("a segment behind a torn tail is removed", "partition", l.o.Name, "segment", s.base, "bytes", s.size.Load())
		if err := s.deleteFiles(); err != nil {
			return fmt.Errorf("%s: %w", l.o.Name, err)
		}
	}
	list := l.list()
	list = slices.Clone(list[:len(list)-len(behind)])
	l.segments.Store(&list)
	r.changed = r.changed || len(behind) > 0
	return nil
}

// finish makes the last segment active and everything durable.
func (r *recovery) finish() error {
	l := r.l
	list := l.list()
	if len(list) == 0 {
		r.next = max(r.next, r.point.LogStart)
	} else if last := list[len(list)-1]; r.next < r.known {
		return r.damage(fileName(last.base, logSuffix), last.size.Load(), r.next, "the log ends here")
	}
	if n := len(list); n == 0 || list[n-1].mem.Load() == nil { // mem is nil when the segment behind was just begun, and lost
		if err := l.begin(r.next, l.o.NowMs); err != nil {
			return err
		}
	} else if err := r.reopen(list[n-1]); err != nil {
		return err
	}
	if r.write {
		if err := r.writeMetadata(); err != nil {
			return err
		}
	}
	l.next = r.next
	l.logStart.Store(max(l.list()[0].base, r.point.LogStart))
	if l.epochs.trim(l.LogStart(), l.next) {
		l.epochDirty = true
	}
	l.checkpoint = r.point.Checkpoint
	l.sinceCheck = l.active().size.Load()
	if l.active().base == l.checkpoint.Segment {
		l.sinceCheck -= l.checkpoint.Position
	}
	for _, s := range l.unfinished {
		s.noteTime(s.mem.Load())
	}
	if r.next == r.known && !r.changed {
		for _, s := range l.list() {
			s.syncedSize = s.size.Load()
		}
		return nil
	}
	plan := l.Begin(false)
	return errors.Join(plan.Data(), plan.Done())
}

// reopen makes a replayed segment the one that is appended to.
func (r *recovery) reopen(s *segment) error {
	l := r.l
	l.unfinished = slices.DeleteFunc(l.unfinished, func(u *segment) bool { return u == s })
	if err := s.openForAppend(); err != nil {
		return err
	}
	file, err := s.handle()
	if err != nil {
		return err
	}
	s.createdMs = l.o.NowMs
	w := newWalker(file, s.size.Load())
	defer w.done()
	head, _, err := w.at(0)
	if err == io.EOF {
		return nil
	}
	if err == nil {
		s.firstTime = max(head.MaxTimestamp(), noTimestamp)
	}
	return err
}
