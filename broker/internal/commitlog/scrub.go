package commitlog

import (
	"errors"
	"io"
	"slices"

	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/vfs"
)

// Scrub goes over the segments of a log that are not appended to any more, a few batches at a time, and looks at every byte: what
// was right when it was written or first served may not be so any more, and nobody reads it. It holds no lock, a reference to a
// segment only during a step, and opens files of its own, so that old segments hold no descriptors. One goroutine owns it.
type Scrub struct {
	l     *Log
	s     *segment // under way; nil before a segment is begun
	base  int64    // of the next segment to begin, or above
	pos   int64    // in s
	bound int64    // of the offsets in s: where the next segment begins
	next  int64    // offset that must come at pos
	// after says that the batch before did not check: what it says of the next offset is not believed.
	after   bool
	leap    checked // the place of the batch before, if it left a gap; else its pos is -1
	damaged bool    // a batch of s did not check
	index   []offsetEntry
	times   []timeEntry
	own     bool // s has index files, and they could be read so far
	greatest,
	from int64 // the greatest timestamp so far, and the last offset of the batch that has it
}

// Scrubbed is what a step did.
type Scrubbed struct {
	Bytes    int64
	Segments int64 // finished
	Rebuilt  int64 // index files that did not fit, and were made again
	// Damage is what did not check, and was not known yet. Batches named there are served no more.
	Damage []*DamageError
	// Done says that this was the last of the log.
	Done bool
}

// Scrub begins at the log's first segment.
func (l *Log) Scrub() *Scrub { return &Scrub{l: l} }

// Step looks at about so many bytes. An error is one of reading: the segment is left for this time.
func (c *Scrub) Step(budget int64) (did Scrubbed, err error) {
	if !c.begin() {
		did.Done = true
		return did, nil
	}
	if !c.s.acquire() { // deleted since
		c.s = nil
		return did, nil
	}
	s := c.s
	err = c.some(budget, &did)
	if !slices.Contains(c.l.list(), s) { // replaced or deleted meanwhile: what was met there says nothing
		did.Damage, did.Rebuilt, err = nil, 0, nil
		c.s = nil
	}
	did.Damage = slices.DeleteFunc(did.Damage, func(d *DamageError) bool { return !s.condemn(d) })
	if err != nil {
		c.s = nil
	}
	return did, errors.Join(err, s.release())
}

// begin sees to it that a segment is under way; false at the end of the log.
func (c *Scrub) begin() bool {
	list := c.l.list()
	if c.s != nil && slices.Contains(list, c.s) {
		return true
	}
	for i, s := range list[:len(list)-1] {
		if s.base < c.base {
			continue
		}
		c.s, c.base, c.bound = s, s.base+1, list[i+1].base
		c.pos, c.next, c.after, c.damaged, c.leap = 0, s.base, false, false, checked{-1, 0}
		c.index, c.times, c.greatest, c.from = nil, nil, noTimestamp, s.base
		c.own = s.mem.Load() == nil && c.load()
		return true
	}
	c.s = nil
	return false
}

// load reads the index files; false when that does not work, which others find out and mend.
func (c *Scrub) load() bool {
	offsets, err1 := c.s.readFile(indexSuffix)
	times, err2 := c.s.readFile(timeSuffix)
	ok := err1 == nil && err2 == nil
	if ok {
		var ok1, ok2 bool
		c.index, ok1 = parseOffsets(offsets, c.s.size.Load())
		c.times, ok2 = parseTimes(times)
		if !ok1 || !ok2 { // the first batch will not fit
			c.index, c.times = []offsetEntry{{-1, -1}}, nil
		}
	}
	return ok
}

// some goes on in the segment. The caller has a reference.
func (c *Scrub) some(budget int64, did *Scrubbed) error {
	s := c.s
	file, err := s.openRead(logSuffix)
	if err != nil {
		return err
	}
	defer file.Close() // read only: nothing to lose
	sc := newScanner(file, c.pos, s.size.Load())
	defer sc.done()
	for did.Bytes < budget {
		pos := sc.pos
		b, err := sc.next()
		if err == io.EOF {
			c.s = nil
			did.Segments++
			return c.end(s, did)
		}
		if err != nil && !errors.Is(err, errBadHeader) {
			return err
		}
		if err == nil {
			err = b.CheckCRC()
		}
		if err == nil && (!c.after || b.BaseOffset() < c.next) {
			err = c.l.checkPlace(b, c.next, -1)
		}
		if err == nil {
			err = below(b, c.bound)
		}
		if err != nil {
			if c.leap.pos >= 0 && errors.Is(err, errOffsets) { // one of the two has a wrong offset
				c.found(did, s, c.leap.pos, c.leap.next, err)
			}
			c.found(did, s, pos, c.next, err)
			c.damaged, c.after, c.leap.pos = true, true, -1
			if b == nil && !c.jump(sc, pos) { // no length to go by
				c.s = nil
				did.Segments++
				return nil
			}
		} else {
			c.take(b, pos)
			if c.leap.pos = -1; b.BaseOffset() > c.next && !c.after {
				c.leap = checked{pos, c.next}
			}
			c.next, c.after = b.LastOffset()+1, false
		}
		did.Bytes += sc.pos - pos
		c.pos = sc.pos
	}
	return nil
}

// found notes damage.
func (c *Scrub) found(did *Scrubbed, s *segment, pos, offset int64, cause error) {
	var d *DamageError
	if errors.As(c.l.damaged(s.base, pos, offset, cause), &d) {
		did.Damage = append(did.Damage, d)
	}
}

// jump goes on at the next batch that the index knows.
func (c *Scrub) jump(sc *scanner, pos int64) bool {
	for _, e := range c.index {
		if int64(e.position) > pos {
			sc.pos = int64(e.position)
			return true
		}
	}
	return false
}

// take compares a batch with the indexes.
func (c *Scrub) take(b record.Batch, pos int64) {
	if ts := b.MaxTimestamp(); ts > c.greatest {
		c.greatest, c.from = ts, b.LastOffset()
	}
	relative := b.LastOffset() - c.s.base
	if len(c.index) > 0 && int64(c.index[0].position) <= pos && c.index[0].position >= 0 {
		if c.index[0] == (offsetEntry{int32(relative), int32(pos)}) {
			c.index = c.index[1:]
		}
	}
	if len(c.times) > 0 && int64(c.times[0].relative) <= relative {
		if e := c.times[0]; int64(e.relative) == relative && e.timestamp == c.greatest && c.from == b.LastOffset() {
			c.times = c.times[1:]
		}
	}
}

// end judges the indexes of a segment whose batches all check: every entry was met at its batch.
func (c *Scrub) end(s *segment, did *Scrubbed) error {
	if c.damaged || s.mem.Load() != nil {
		return nil
	}
	_, err := s.readTxns(-1)
	if err != nil && !errors.Is(err, errBadIndex) {
		return err
	}
	if err == nil && c.own && len(c.index)+len(c.times) == 0 && s.holdsTime(c.greatest) {
		return nil
	}
	if !slices.Contains(c.l.list(), s) {
		return nil
	}
	did.Rebuilt++
	return c.l.rebuild(s, errors.Join(errBadIndex, err))
}

// holdsTime tells whether a timestamp is the last of the time index.
func (s *segment) holdsTime(ts int64) bool {
	last := int64(noTimestamp)
	err := s.withIndex(timeSuffix, timeEntrySize, func(f vfs.File, n int) error {
		if n == 0 {
			return nil
		}
		var p [timeEntrySize]byte
		_, err := f.ReadAt(p[:], int64(n-1)*timeEntrySize)
		last = parseTimeEntry(p[:]).timestamp
		return err
	})
	return err == nil && last == ts
}

// condemn sees to it that a batch is served no more; false for one that is not anyway. Only the scrub calls it.
func (s *segment) condemn(d *DamageError) bool {
	var list []*DamageError
	if was := s.bad.Load(); was != nil {
		list = *was
	}
	if slices.ContainsFunc(list, func(have *DamageError) bool { return have.Position == d.Position }) {
		return false
	}
	list = append(slices.Clone(list), d)
	slices.SortFunc(list, func(a, b *DamageError) int { return int(a.Position - b.Position) })
	s.bad.Store(&list)
	return true
}

// condemned is the first batch from pos to to that may not be served, nil without one.
func (s *segment) condemned(pos, to int64) *DamageError {
	list := s.bad.Load()
	if list == nil {
		return nil
	}
	for _, d := range *list {
		if pos <= d.Position && d.Position < to {
			return d
		}
	}
	return nil
}
