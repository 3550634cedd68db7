package inspect

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/millrace/millrace/broker/internal/flush"
)

// VerifyOptions tells how to verify. The zero value works.
type VerifyOptions struct {
	// Progress is called with the bytes of log files that were read since its last call; nil is nobody.
	Progress func(bytes int64)
}

// Verify checks everything in the folder, and calls report for each finding, in the order of the partitions and of the places in
// them. The error is one of reading, not about what was read.
func (d *Data) Verify(o VerifyOptions, report func(Finding)) error {
	if !d.one {
		d.verifyFolder(report)
	}
	for _, p := range d.Partitions {
		if err := d.verifyPartition(p, o, report); err != nil {
			return err
		}
	}
	return nil
}

// facts is what is known about a partition from outside of its folder.
type facts struct {
	point      flush.Point // of the journal
	journal    bool        // there is one, and it counts for this partition
	known      int64       // everything below was durable
	witness    string      // who says so
	logStart   int64
	compacted  bool  // the topic is, so gaps are to be expected
	interval   int64 // index.interval.bytes, 0 when unknown
	topic      *Topic
	id         [16]byte // of partition.metadata, zero when it does not say
	partitions int32    // of the topic, 0 when unknown
}

// factsOf collects them. What the snapshots tell comes later: see partitionCheck.snapshots.
func (d *Data) factsOf(p *Partition) facts {
	f := facts{witness: "nobody"}
	if text, err := p.read(metadataName); err == nil {
		f.id, _ = parseMetadata(text) // a file that does not parse is a finding of its own
	}
	if d.Cluster != nil {
		if f.topic = d.Cluster.Topics[p.Topic]; f.topic != nil {
			f.partitions = int32(len(f.topic.Partitions))
		}
	}
	if d.journal != nil && d.journalErr == nil {
		id := f.id
		switch {
		case f.topic != nil:
			id = f.topic.ID
		case p.Topic == metadataTopic:
			id = metadataID
		}
		f.journal = true
		f.point = d.journal.Points[flush.ID{Topic: id, Partition: p.Index}]
		f.witnessed(max(f.point.Synced, f.point.LogStart, f.point.Checkpoint.Offset), "the recovery journal")
		f.logStart = f.point.LogStart
	}
	f.witnessed(d.points[recoveryPoints][p.Name()], recoveryPoints)
	f.witnessed(d.points[highWatermarks][p.Name()], highWatermarks)
	f.logStart = max(f.logStart, d.points[logStarts][p.Name()])
	f.compacted = p.Topic == offsetsTopic || p.Topic == txnTopic || d.points[cleanerPoints][p.Name()] > 0
	if f.topic != nil {
		f.compacted = f.compacted || slices.Contains(splitList(f.topic.Config["cleanup.policy"]), "compact")
		f.interval = defaultInterval
		if n, err := strconv.ParseInt(f.topic.Config["index.interval.bytes"], 10, 64); err == nil && n > 0 {
			f.interval = n
		}
	}
	return f
}

// metadataID is the id that the metadata log's own folder has, in Kafka and here.
var metadataID = [16]byte{15: 1}

// defaultInterval is Kafka's index.interval.bytes.
const defaultInterval = 4096

// witnessed takes the word of a witness that everything below an offset was durable.
func (f *facts) witnessed(offset int64, who string) {
	if offset > f.known {
		f.known, f.witness = offset, who
	}
}

// partitionCheck is the verification of one partition: one pass over its batches, with everything else compared on the way.
type partitionCheck struct {
	d *Data
	p *Partition
	facts
	report   func(Finding)
	progress func(int64)

	base    int64 // of the segment under way
	next    int64 // the offset behind the last good batch
	first   bool  // no batch was seen yet
	epoch   int32 // of the last good batch
	gaps    []Finding
	thinned bool // compaction has been here
	broken  bool // damage was met: what would be derived from the whole log can not be told any more
	orphans map[int64]string

	epochs      epochCheck
	state       stateCheck
	coordinator coordinatorCheck
	indexes     []indexCheck // of the segment under way
}

func (d *Data) verifyPartition(p *Partition, o VerifyOptions, report func(Finding)) error {
	return d.newCheck(p, o, report).run()
}

func (d *Data) newCheck(p *Partition, o VerifyOptions, report func(Finding)) *partitionCheck {
	c := &partitionCheck{d: d, p: p, facts: d.factsOf(p), report: report, progress: o.Progress, first: true, epoch: -1}
	if c.progress == nil {
		c.progress = func(int64) {}
	}
	return c
}

func (c *partitionCheck) run() error {
	if err := c.snapshots(); err != nil {
		return err
	}
	if err := c.identity(); err != nil {
		return err
	}
	if err := c.epochFile(); err != nil {
		return err
	}
	c.leftovers()
	c.coordinator = newCoordinatorCheck(c)
	for i, base := range c.p.logs {
		if err := c.segment(i, base); err != nil {
			return err
		}
	}
	return c.end()
}

// find reports something about a file of the partition.
func (c *partitionCheck) find(s Severity, file string, position, offset int64, format string, args ...any) {
	f := Finding{
		Severity: s, Partition: c.p.Name(), Segment: -1, File: file, Position: position, Offset: offset, What: fmt.Sprintf(format, args...),
	}
	if base, suffix, ok := parseName(file); ok && suffix != snapshotSuffix {
		f.Segment = base
	}
	c.report(f)
}

// end checks what can be told only behind the last batch.
func (c *partitionCheck) end() error {
	if !c.thinned && !c.compacted { // else the gaps are compaction's
		for _, f := range c.gaps {
			c.report(f)
		}
		c.broken = c.broken || len(c.gaps) > 0
	}
	c.points()
	c.state.end(c)
	c.epochs.end(c)
	return nil
}

// points compares what witnesses say with where the log ends.
func (c *partitionCheck) points() {
	if c.broken {
		return // said already
	}
	end := max(c.next, c.logStart)
	switch {
	case len(c.p.logs) == 0 && c.known > c.logStart:
		c.find(Damage, fileName(c.logStart, logSuffix), -1, c.logStart, "there is no log file, but %s says that all below offset %d was durable", c.witness, c.known)
	case c.known > end:
		c.find(Damage, fileName(c.p.segmentOf(end), logSuffix), -1, end, "the log ends here, but %s says that all below offset %d was durable", c.witness, c.known)
	case c.logStart > end:
		c.find(Damage, "", -1, end, "the log ends here, but its start is offset %d", c.logStart)
	}
	if cp := c.point.Checkpoint; c.journal && cp.Offset > 0 && c.p.has(fileName(cp.Segment, logSuffix)) {
		if info, err := c.p.fs.Stat(c.p.path(fileName(cp.Segment, logSuffix))); err == nil && info.Size < cp.Position {
			c.find(Damage, fileName(cp.Segment, logSuffix), info.Size, cp.Offset, "the file ends here, but its checkpoint is at byte %d", cp.Position)
		}
	}
	if n := len(c.p.logs); n > 0 && c.journal && c.point.Synced > 0 && c.p.logs[0] > c.logStart {
		c.find(Damage, fileName(c.logStart, logSuffix), -1, c.logStart, "the first log file begins at offset %d", c.p.logs[0])
	}
}
