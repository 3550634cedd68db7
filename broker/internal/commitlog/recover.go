package commitlog

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"github.com/millrace/millrace/broker/internal/flush"
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
	if o.Files == nil {
		o.Files = unbounded()
	}
	if o.CheckpointBytes == 0 {
		o.CheckpointBytes = defaultCheckpointBytes
	}
	l := &Log{
		o:      origin{o.Name, o.TopicID, o.NowMs, o.NewState, o.CheckpointBytes},
		at:     place{o.FS, o.Dir, o.Files},
		logger: o.Logger, state: o.NewState(), dirDirty: true,
	}
	l.Reconfigure(o.Config)
	r := &recovery{l: l, point: o.Point}
	if err := r.run(); err != nil {
		r.abandon()
		return nil, err
	}
	if err := l.shelve(); err != nil { // only what was synced is closed
		l.logger.Warn("closing a segment", "partition", o.Name, "err", err)
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
	// doubts are the places from which on nobody knows that batches were durable, in segments that have any.
	doubts []doubt
	write  bool // partition.metadata is missing
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
	return &DamageError{
		Partition: r.l.o.Name, File: file, Position: pos, Offset: offset, Durable: r.known, Reason: fmt.Sprintf(format, args...),
	}
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
		l.epochDirty.Store(true)
	}
	l.checkpoint = r.point.Checkpoint
	l.sinceCheck = l.active().size.Load()
	if l.active().base == l.checkpoint.Segment {
		l.sinceCheck -= l.checkpoint.Position
	}
	for _, s := range l.unfinished {
		s.noteTime(s.mem.Load())
	}
	if err := r.clearTxns(); err != nil {
		return err
	}
	if r.next == r.known && !r.changed {
		for _, s := range l.list() {
			s.syncedSize = s.size.Load()
		}
		return nil
	}
	if err := r.renew(); err != nil {
		return err
	}
	plan := l.Begin(false)
	return errors.Join(plan.Data(), plan.Done())
}

// clearTxns removes transaction indexes that a crash has left of segments in which no transaction was aborted, as far as they are
// there now: nobody would write these files again.
func (r *recovery) clearTxns() error {
	for _, s := range r.l.list() {
		if mem := s.mem.Load(); mem == nil || len(mem.txns.view()) > 0 {
			continue
		}
		if r.names[fileName(s.base, txnSuffix)] || r.names[fileName(s.base, txnSumSuffix)] {
			if err := s.removeTxns(); err != nil {
				return err
			}
		}
	}
	return nil
}

// doubt is the part of a segment from a position on.
type doubt struct {
	s   *segment
	pos int64
}

// renew writes the bytes whose durability nobody knows once more, as they are. A sync of them may have failed in an earlier process;
// then the kernel takes them for written, and the next sync says nil without a byte going to the disk. Written anew they are
// dirty again, and the sync that follows means them.
func (r *recovery) renew() error {
	var buf []byte
	for _, d := range r.doubts {
		if buf == nil {
			buf = make([]byte, scanChunk)
		}
		f, err := d.s.fs.Open(d.s.path(logSuffix))
		if err != nil {
			return err
		}
		for at, end := d.pos, d.s.size.Load(); at < end && err == nil; {
			part := buf[:min(int64(len(buf)), end-at)]
			if _, err = f.ReadAt(part, at); err == nil {
				_, err = f.WriteAt(part, at)
			}
			at += int64(len(part))
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
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
	if written := s.writtenMs.Load(); written > 0 { // it is at least as old as its last append
		s.createdMs = min(written, l.o.NowMs)
	}
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
