package history

// Check looks for everything that contradicts the protocol's promises. Its cost grows
// with the length of the history, and a little faster where something is sorted. The
// events are not changed and belong to the report as long as that is used.
//
// An error, which wraps ErrMalformed, means that the events are no history.
func Check(events []Event) (*Report, error) {
	ops, err := pair(events)
	if err != nil {
		return nil, err
	}
	c := &checker{events: events, ops: ops, byKey: map[Key]*partitionLog{}, report: &Report{Counts: map[Class]int{}, events: events}}
	if err := c.collect(); err != nil {
		return nil, err
	}
	c.settle()
	c.index()
	c.count()
	for _, check := range []func(){
		c.checkOffsets, c.checkReads, c.checkVisible, c.checkPolls, c.checkSends, c.checkRealtime, c.checkCycles,
		c.checkGroups, c.checkObservedOffsets, c.checkWatermarks, c.checkOpen, c.checkEnd, c.checkIntermediate,
	} {
		check()
	}
	c.report.sort()
	return c.report, nil
}

// count fills in the statistics.
func (c *checker) count() {
	s := &c.report.Stats
	s.Operations, s.Partitions = len(c.ops), len(c.logs)
	processes := map[int]struct{}{}
	for i := range c.ops {
		o := &c.ops[i]
		processes[o.process] = struct{}{}
		if !o.transactional() {
			continue
		}
		switch {
		case o.outcome == OK:
			s.Committed++
		case o.outcome == Fail:
			s.Aborted++
		default:
			s.Undecided++
			if o.committed {
				s.Appeared++
			}
		}
	}
	s.Processes = len(processes)
	for _, l := range c.logs {
		s.Records += len(l.versions)
		for _, v := range l.order {
			x := l.values[v]
			if x.writer >= 0 && x.reader >= 0 && c.ops[x.writer].outcome == OK && c.ops[x.reader].end != never {
				s.WorstLag = max(s.WorstLag, c.ops[x.reader].end-c.ops[x.writer].end)
			}
		}
	}
}
