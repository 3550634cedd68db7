package inspect

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/broker/internal/logdir"
	"github.com/millrace/millrace/core/record"
)

// leftovers looks at the files that belong to no segment that is there.
func (c *partitionCheck) leftovers() {
	c.orphans = map[int64]string{}
	for _, name := range c.p.files {
		base, suffix, ok := parseName(name)
		if !ok || suffix != indexSuffix && suffix != timeSuffix && suffix != txnSuffix && suffix != sumSuffix {
			c.passing(name)
			continue
		}
		if c.p.has(fileName(base, logSuffix)) || c.orphans[base] != "" {
			continue
		}
		c.orphans[base] = name
		switch {
		case base < c.logStart:
			c.find(Note, name, -1, -1, "what is left of a segment that was deleted")
		case base < c.known || c.later(base):
			c.broken = true
			c.find(Damage, fileName(base, logSuffix), -1, base, "the log file is missing, %s is there", name)
		default:
			c.find(Note, name, -1, -1, "an index without a log, behind all that was durable; the next start removes it")
		}
	}
}

// passing looks at a file that is half of something.
func (c *partitionCheck) passing(name string) {
	kind, ours := logdir.KindOf(name)
	switch {
	case name == progressName:
		text, err := c.p.read(name)
		if err == nil {
			_, err = commitlog.ReadProgress(text)
		}
		if err != nil {
			c.find(Rebuildable, name, 0, -1, "the progress of compaction can not be read: %v", err)
		}
	case ours && kind.Passing:
		c.find(Note, name, -1, -1, "%s", kind.What)
	case filepath.Ext(name) == swapSuffix:
		c.find(Damage, name, -1, -1, "a compaction that another program did not bring to its end left this file")
	}
}

// later tells whether a segment begins behind an offset.
func (c *partitionCheck) later(offset int64) bool {
	n := len(c.p.logs)
	return n > 0 && c.p.logs[n-1] > offset
}

// segment checks the batches of one segment, and its indexes against them.
func (c *partitionCheck) segment(i int, base int64) error {
	name := fileName(base, logSuffix)
	s, err := openScan(c.p.fs, c.p.path(name))
	if err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	defer s.close()
	last := i == len(c.p.logs)-1
	c.begin(name, base)
	if c.indexes, err = c.openIndexes(base, last); err != nil {
		return err
	}
	var scratch record.Scratch
	for {
		read := s.pos
		b, pos, err := s.next()
		if err == io.EOF {
			break
		}
		var m *misfit
		if err != nil && !errors.As(err, &m) {
			return fmt.Errorf("inspect: %s: %w", c.p.path(name), err)
		}
		reason := c.fits(b, m)
		if reason == "" {
			c.take(name, b, pos, &scratch)
			c.progress(s.pos - read)
			continue
		}
		if err := c.bad(s, name, pos, b, reason); err != nil {
			return err
		}
		c.progress(s.pos - read)
	}
	for _, x := range c.indexes {
		x.end(c.ground)
	}
	return nil
}

// begin compares where a segment begins with where the one before ended.
func (c *partitionCheck) begin(name string, base int64) {
	c.base = base
	switch {
	case c.first:
		c.next = base
		c.state.begin(c.ground, base)
	case base < c.next:
		c.broken = true
		c.find(Damage, name, 0, base, "the segment begins inside of the one before, which ends at offset %d", c.next-1)
	case base > c.next:
		c.gap(name, 0, base)
	}
	c.next = base
	if c.journal && base > 0 && base <= c.point.Checkpoint.Offset && !c.p.has(fileName(base, snapshotSuffix)) {
		c.find(Rebuildable, fileName(base, snapshotSuffix), -1, -1, "the snapshot of the segment's beginning is missing")
	}
}

// gap notes offsets that no batch covers. Whether that is compaction's work is known at the end.
func (c *partitionCheck) gap(name string, pos, offset int64) {
	if c.orphans[c.next] != "" { // said already
		return
	}
	c.gaps = append(c.gaps, Finding{
		Severity: Damage, Partition: c.p.Name(), Segment: c.p.segmentOf(offset), File: name, Position: pos, Offset: c.next,
		What: fmt.Sprintf("offsets %d to %d are missing, and nothing says that the topic is compacted", c.next, offset-1),
	})
}

// bad judges bytes that are no batch at their place, and goes on at the next one that is.
func (c *partitionCheck) bad(s *scan, name string, pos int64, b record.Batch, reason string) error {
	at := c.next
	s.pos = pos
	follows, err := s.resync(c.next)
	if err != nil {
		return fmt.Errorf("inspect: %s: %w", c.p.path(name), err)
	}
	severity, more := Damage, ""
	switch {
	case at < c.known:
		more = fmt.Sprintf("; %s says that all below offset %d was durable", c.witness, c.known)
	case c.journal:
		severity = TornTail
		if follows {
			more = fmt.Sprintf("; good batches follow at byte %d, which the next start cuts off too", s.pos)
		}
	case follows:
		more = fmt.Sprintf("; good batches follow at byte %d", s.pos)
	case c.later(c.base):
		more = "; good segments follow"
	default:
		severity = TornTail
	}
	c.broken = c.broken || follows || severity == Damage
	c.find(severity, name, pos, at, "%s%s", reason, more)
	for _, x := range c.indexes {
		x.lost()
	}
	if !follows {
		s.pos = s.size
		return nil
	}
	head, err := s.fill(record.HeaderSize)
	if err != nil {
		return fmt.Errorf("inspect: %s: %w", c.p.path(name), err)
	}
	c.next = record.Batch(head).BaseOffset()
	return nil
}

// take takes in a batch that checks.
func (c *partitionCheck) take(name string, b record.Batch, pos int64, scratch *record.Scratch) {
	if b.BaseOffset() > c.next {
		c.gap(name, pos, b.BaseOffset())
	}
	if b.LeaderEpoch() < c.epoch {
		c.find(Damage, name, pos, b.BaseOffset(), "the leader epoch is %d, that of the batch before is %d", b.LeaderEpoch(), c.epoch)
	}
	c.thinned = c.thinned || b.Attributes().DeleteHorizon() || int64(b.Count()) < int64(b.LastOffsetDelta())+1
	c.epochs.batch(c.ground, name, b)
	c.state.before(c.ground, b.BaseOffset())
	aborted := c.state.batch(c.ground, name, b, pos)
	for _, x := range c.indexes {
		x.batch(c.ground, b, pos, aborted)
	}
	c.records(name, b, pos, scratch)
	c.first, c.next, c.epoch = false, b.LastOffset()+1, max(c.epoch, b.LeaderEpoch())
}

// records looks into a batch: everything must parse, and stand within the batch's offsets.
func (c *partitionCheck) records(name string, b record.Batch, pos int64, scratch *record.Scratch) {
	r, err := b.Reader(scratch)
	if err != nil {
		c.find(Damage, name, pos, b.BaseOffset(), "the checksum is right, but the records can not be read: %v", err)
		return
	}
	for r.Next() {
		rec := r.Record()
		if rec.Offset < b.BaseOffset() || rec.Offset > b.LastOffset() {
			// Kafka takes such batches from a producer, and serves them.
			c.find(Note, name, pos, rec.Offset, "a record stands outside of the batch's offsets, %d to %d", b.BaseOffset(), b.LastOffset())
		}
		c.coordinator.record(name, pos, b, rec)
	}
	if err := r.Err(); err != nil {
		c.find(Damage, name, pos, b.BaseOffset(), "the checksum is right, but the records can not be read: %v", err)
	}
}
