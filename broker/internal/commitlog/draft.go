package commitlog

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/txn/isolation"
)

// Pieces are the finished segments from the first one on, as far as they lie below limit as a whole. waiting tells that one more
// does but is not finished: the next flush finishes it. The append lock is held.
func (l *Log) Pieces(limit int64) (pieces []Piece, waiting bool) {
	list := l.list()
	for i, s := range list[:len(list)-1] {
		if list[i+1].base > limit {
			break
		}
		if slices.Contains(l.unfinished, s) {
			return pieces, true
		}
		pieces = append(pieces, Piece{s.base, list[i+1].base, s.size.Load(), s})
	}
	return pieces, false
}

// WantCheckpoint has the next flush make a checkpoint in any case: the recovery journal does not know of the last one, as when there was
// no room for the note. The append lock is held.
func (l *Log) WantCheckpoint() { l.sinceCheck = max(l.sinceCheck, l.o.CheckpointBytes) }

// FirstTime is the greatest timestamp of a piece's first batch, -1 without one.
func (l *Log) FirstTime(p Piece) (ts int64, err error) {
	if !p.s.acquire() {
		return noTimestamp, nil
	}
	defer func() { err = errors.Join(err, p.s.release()) }()
	if ts := p.s.headTime.Load(); ts != unknownTime {
		return ts, nil
	}
	file, err := p.s.handle()
	if err != nil {
		return noTimestamp, err
	}
	w := newWalker(file, p.s.size.Load())
	defer w.done()
	head, _, err := w.at(0)
	switch {
	case err == io.EOF:
		ts = noTimestamp
	case err != nil:
		return noTimestamp, err
	default:
		ts = max(head.MaxTimestamp(), noTimestamp)
	}
	p.s.headTime.Store(ts)
	return ts, nil
}

// GreatestTime is the greatest timestamp of a piece, -1 without one.
func (l *Log) GreatestTime(p Piece) (ts int64, err error) {
	if !p.s.acquire() {
		return noTimestamp, nil
	}
	ts, err = l.greatest(p.s)
	return ts, errors.Join(err, p.s.release())
}

// Scan calls fn for every batch of a piece, checked as for a reader: checksum, offsets, leader epoch. The batch is valid during
// the call. An error of fn ends it, and comes back.
func (l *Log) Scan(p Piece, fn func(record.Batch) error) (err error) {
	if !p.s.acquire() {
		return ErrOutOfRange
	}
	defer func() { err = errors.Join(err, p.s.release()) }()
	file, err := p.s.handle()
	if err != nil {
		return err
	}
	sc := newScanner(file, 0, p.s.size.Load())
	defer sc.done()
	for next := p.s.base; ; {
		pos := sc.pos
		b, err := sc.next()
		if err == io.EOF {
			return nil
		}
		if err != nil && !errors.Is(err, errBadHeader) {
			return err
		}
		if err == nil {
			err = b.CheckCRC()
		}
		if err == nil {
			err = l.checkPlace(b, next, -1)
		}
		if err == nil {
			err = below(b, p.End)
		}
		if err != nil {
			return l.damaged(p.s.base, pos, next, err)
		}
		next = b.LastOffset() + 1
		if err := fn(b); err != nil {
			return err
		}
	}
}

// draftChunk is how much a draft writes at a time.
const draftChunk = 256 << 10

// NewDraft begins a segment for what is left of consecutive pieces. Commit or Discard must follow.
func (l *Log) NewDraft(pieces []Piece) (*Draft, error) {
	d := &Draft{l: l, pieces: pieces, s: newSegment(&l.at, pieces[0].Base), changed: len(pieces) > 1}
	d.s.fresh()
	var err error
	if d.file, err = l.at.fs.Create(d.path()); err != nil {
		return nil, fmt.Errorf("%s: %w", l.o.Name, err)
	}
	return d, nil
}

func (d *Draft) path() string { return d.s.path(logSuffix) + cleanedSuffix }

// Add appends what is left of the next batch of the pieces: the batch itself, a smaller one, or nil.
func (d *Draft) Add(b, left record.Batch) error {
	d.changed = d.changed || len(left) != len(b) || &left[0] != &b[0]
	if left == nil {
		return nil
	}
	pos := d.at + int64(len(d.buf))
	d.buf = append(d.buf, left...)
	d.s.note(left, pos, d.l.Config().IndexIntervalBytes)
	d.s.size.Store(pos + int64(len(left)))
	if len(d.buf) >= draftChunk {
		return d.flush()
	}
	return nil
}

// AddAborted puts transactions into the index; their abort markers have been added.
func (d *Draft) AddAborted(list []isolation.AbortedTxn) {
	for _, a := range list {
		d.s.mem.Load().txns.add(a)
	}
}

// Changed tells whether anything differs from the pieces.
func (d *Draft) Changed() bool { return d.changed }

// Bytes is the size of the new segment so far.
func (d *Draft) Bytes() int64 { return d.s.size.Load() }

func (d *Draft) flush() error {
	if len(d.buf) == 0 {
		return nil
	}
	if _, err := d.file.WriteAt(d.buf, d.at); err != nil {
		return fmt.Errorf("%s: %w", d.path(), err)
	}
	d.at += int64(len(d.buf))
	d.buf = d.buf[:0]
	return nil
}

// Discard gives the draft up. The log is as it was.
func (d *Draft) Discard() error {
	d.s.take() // it is the draft's
	for _, p := range d.pieces {
		p.s.unpin()
	}
	return errors.Join(d.file.Close(), d.l.at.fs.Remove(d.path()))
}

// complete makes the content durable.
func (d *Draft) complete() error {
	if err := d.flush(); err != nil {
		return err
	}
	if err := d.file.Sync(); err != nil { // nobody has relied on the file, so nothing is lost with it
		return fmt.Errorf("%s: %w", d.path(), err)
	}
	s := d.s
	s.noteTime(s.mem.Load())
	s.put(d.file)
	s.syncedSize = s.size.Load()
	for _, p := range d.pieces { // rewriting a record makes it no younger
		s.writtenMs.Store(max(s.writtenMs.Load(), p.s.writtenMs.Load()))
	}
	return nil
}

// pin makes a segment independent of its files' names: its log file is open and its indexes are in memory. So readers who hold it
// can go on while another segment takes the names. The caller has a reference.
func (l *Log) pin(s *segment) error {
	if err := s.pin(); err != nil {
		return err
	}
	err := s.pinIndexes()
	if !errors.Is(err, errBadIndex) {
		return err
	}
	return l.rebuild(s, err)
}

func (s *segment) pinIndexes() error {
	s.rebuilding.Lock()
	defer s.rebuilding.Unlock()
	if s.mem.Load() != nil {
		return nil
	}
	txns, err := s.abortedTxns()
	if err != nil {
		return err
	}
	if _, err := s.greatestTime(); err != nil {
		return err
	}
	mem := new(memIndex)
	read := func(suffix string, add func([]byte) bool) error {
		data, err := s.readFile(suffix)
		if err != nil {
			return fmt.Errorf("%w: %w", errBadIndex, err)
		}
		if !add(data) {
			return fmt.Errorf("%w: %s", errBadIndex, s.path(suffix))
		}
		return nil
	}
	err = errors.Join(read(indexSuffix, func(p []byte) bool {
		list, ok := parseOffsets(p, s.size.Load())
		for _, e := range list {
			mem.offsets.add(e)
		}
		return ok
	}), read(timeSuffix, func(p []byte) bool {
		list, ok := parseTimes(p)
		for _, e := range list {
			mem.times.add(e)
		}
		return ok
	}))
	if err != nil {
		return err
	}
	for _, a := range txns {
		mem.txns.add(a)
	}
	s.mem.Store(mem)
	return nil
}
