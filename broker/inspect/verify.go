package inspect

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

// partitionCheck is the verification of one partition: one pass over its batches, with everything else compared on the way.
type partitionCheck struct {
	*ground
	epochs      epochCheck
	state       stateCheck
	coordinator coordinatorCheck
	indexes     []indexCheck // of the segment under way
}

func (d *Data) verifyPartition(p *Partition, o VerifyOptions, report func(Finding)) error {
	return d.newCheck(p, o, report).run()
}

func (d *Data) newCheck(p *Partition, o VerifyOptions, report func(Finding)) *partitionCheck {
	c := &partitionCheck{ground: d.newGround(p, report)}
	if o.Progress != nil {
		c.progress = o.Progress
	}
	return c
}

func (c *partitionCheck) run() error {
	if err := c.state.load(c.ground); err != nil {
		return err
	}
	if err := c.identity(); err != nil {
		return err
	}
	if err := c.epochs.load(c.ground); err != nil {
		return err
	}
	c.leftovers()
	c.coordinator = newCoordinatorCheck(c.ground)
	for i, base := range c.p.logs {
		if err := c.segment(i, base); err != nil {
			return err
		}
	}
	return c.end()
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
	c.state.end(c.ground)
	c.epochs.end(c.ground)
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
	if begins := c.p.Begins(); c.journal && begins > c.logStart {
		if c.known > c.logStart {
			c.find(Damage, fileName(c.logStart, logSuffix), -1, c.logStart, "the first log file begins at offset %d", begins)
		} else if c.topic != nil || c.p.Topic == metadataTopic { // else the journal may have forgotten it
			c.find(TornTail, fileName(begins, logSuffix), 0, begins, "the beginning of the log, which no sync had covered, is missing; a start removes what is behind it")
		}
	}
}
