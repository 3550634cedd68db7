package inspect

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/broker/internal/flush"
	"github.com/millrace/millrace/core/record"
)

// facts is what is known about a partition from outside of its folder.
type facts struct {
	point      flush.Point // of the journal
	journal    bool        // there is one, and it counts for this partition
	known      int64       // everything below was durable
	witness    string      // who says so
	logStart   int64
	compacted  bool  // the topic is, so gaps are to be expected
	rewritten  int64 // compaction has been at everything below
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
	if text, err := p.read(progressName); err == nil {
		// One that does not check is a finding of its own; it says that compaction was here, not how far.
		progress, _ := commitlog.ReadProgress(text)
		f.compacted, f.rewritten = true, max(progress.Rewritten, 1)
	}
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

// ground is what all checks of one partition stand on: what is known of it, and how far the pass over its batches has come.
type ground struct {
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
	partial bool // the log does not begin where the partition began, and no snapshot tells what was before
	orphans map[int64]string
}

func (d *Data) newGround(p *Partition, report func(Finding)) *ground {
	c := &ground{d: d, p: p, facts: d.factsOf(p), report: report, progress: func(int64) {}, first: true, epoch: -1}
	c.thinned = c.rewritten > 0
	return c
}

// guesses tells that a replay of the log does not know all that the broker knew.
func (c *ground) guesses() bool {
	return c.partial || c.thinned || c.compacted || c.broken || len(c.gaps) > 0
}

// find reports something about a file of the partition.
func (c *ground) find(s Severity, file string, position, offset int64, format string, args ...any) {
	f := Finding{
		Severity: s, Partition: c.p.Name(), Segment: -1, File: file, Position: position, Offset: offset, What: fmt.Sprintf(format, args...),
	}
	if base, suffix, ok := parseName(file); ok && suffix != snapshotSuffix {
		f.Segment = base
	}
	c.report(f)
}

// fits tells what keeps bytes from being a batch at their place, "" when they are one.
func (c *ground) fits(b record.Batch, m *misfit) string {
	switch {
	case m != nil && m.zeros:
		return fmt.Sprintf("zeros where a batch should start, %d bytes are left", m.rest)
	case m != nil:
		return fmt.Sprintf("no whole batch: its length field says %d bytes, %d are left", m.claimed, m.rest)
	case b.Magic() != 2:
		return fmt.Sprintf("the magic byte is %d, must be 2", b.Magic())
	case b.CheckCRC() != nil:
		return b.CheckCRC().Error()
	case b.LastOffsetDelta() < 0:
		return fmt.Sprintf("the last offset delta is %d", b.LastOffsetDelta())
	case b.BaseOffset() < c.next:
		return fmt.Sprintf("the base offset is %d, expected is %d", b.BaseOffset(), c.next)
	}
	return ""
}
