package history

import "slices"

// place is where a process's reading or sending of a partition stands.
type place struct {
	index int // in versions
	op    int
}

// checkPolls: a reader misses nothing and does not go back, within an operation and,
// as only operations that succeeded move it on, from one that succeeded to the next.
// Between operations a member of a group may do both, as partitions wander.
func (c *checker) checkPolls() {
	at := map[int]map[Key]place{} // process -> partition
	for i := range c.ops {
		o := &c.ops[i]
		e := &c.events[o.event]
		switch o.kind {
		case Assign, Subscribe:
			if o.outcome != Fail {
				keep(at[o.process], e)
			}
			continue
		case Crash:
			delete(at, o.process)
			continue
		}
		mine := map[Key]place{}
		for _, st := range o.steps {
			for _, r := range st.Reads {
				c.checkPoll(i, r, mine, at[o.process], e.Rebalanced)
			}
		}
		if o.outcome == OK && len(mine) > 0 {
			if at[o.process] == nil {
				at[o.process] = map[Key]place{}
			}
			for k, p := range mine {
				at[o.process][k] = p
			}
		}
	}
}

// keep forgets the places of partitions that are not assigned any more, or are read
// from elsewhere: from the start, or from where a group is.
func keep(places map[Key]place, e *Event) {
	for k := range places {
		if e.FromStart || e.Kind == Subscribe || !slices.Contains(e.Keys, k) {
			delete(places, k)
		}
	}
}

func (c *checker) checkPoll(i int, r Read, mine, before map[Key]place, moved []Key) {
	l := c.byKey[r.Key]
	now := place{l.before(r.Offset), i} // by its offset: a value that is there twice is a fault of its own
	prev, inner := mine[r.Key]
	skip, back := InnerPollSkip, InnerPollBack
	if !inner {
		var known bool
		if prev, known = before[r.Key]; !known {
			mine[r.Key] = now
			return
		}
		if skip, back = PollSkip, PollBack; c.ops[i].subscribed != "" {
			skip, back = GroupPollSkip, GroupPollBack
		}
	}
	mine[r.Key] = now
	if inner && slices.Contains(moved, r.Key) {
		return
	}
	switch delta := now.index - prev.index; {
	case delta > 1:
		left := l.versions[prev.index+1]
		c.find(skip, r.Key, []int{c.writerOf(l, left.value), prev.op, i}, "from offset %d to %d, left out %d records, the first is value %d at offset %d",
			l.versions[prev.index].offset, r.Offset, delta-1, left.value, left.offset)
	case delta < 1:
		c.find(back, r.Key, []int{prev.op, i}, "from offset %d to %d", l.versions[prev.index].offset, r.Offset)
	}
}

func (c *checker) writerOf(l *partitionLog, v int64) int { return l.values[v].writer }

// checkSends: what a process sends to a partition lies there in the order in which it
// was sent.
func (c *checker) checkSends() {
	at := map[int]map[Key]place{}
	for i := range c.ops {
		o := &c.ops[i]
		if o.kind == Crash {
			delete(at, o.process)
		}
		if !o.committed {
			continue
		}
		mine := map[Key]place{}
		for _, st := range o.steps {
			if st.Kind != StepSend {
				continue
			}
			l := c.byKey[st.Key]
			now := place{l.values[st.Value].first, i}
			if now.index < 0 {
				continue
			}
			prev, inner := mine[st.Key]
			class := InnerSendBack
			if !inner {
				prev, class = place{-1, i}, SendBack
				if p, known := at[o.process][st.Key]; known {
					prev = p
				}
			}
			mine[st.Key] = now
			if now.index <= prev.index {
				c.find(class, st.Key, []int{prev.op, i}, "value %d is at offset %d, an earlier send at %d", st.Value, l.versions[now.index].offset, l.versions[prev.index].offset)
			} else if inner && now.index > prev.index+1 {
				c.find(InnerSendSkip, st.Key, []int{i}, "%d records between offsets %d and %d", now.index-prev.index-1, l.versions[prev.index].offset, l.versions[now.index].offset)
			}
		}
		for k, p := range mine {
			if at[o.process] == nil {
				at[o.process] = map[Key]place{}
			}
			at[o.process][k] = p
		}
	}
}

// checkRealtime: a partition has one order, and it is that of real time. A send that
// begins after another was acknowledged lies behind it. Over several partitions
// nothing of the kind holds: transactions append as they go.
func (c *checker) checkRealtime() {
	for _, l := range c.logs {
		earliest := place{-1, -1} // of what lies behind: the version whose writer ended first
		for v := len(l.versions) - 1; v >= 0; v-- {
			w := c.writerOf(l, l.versions[v].value)
			if w < 0 {
				continue
			}
			if o := &c.ops[w]; earliest.op >= 0 && c.ops[earliest.op].end < o.start {
				late := l.versions[earliest.index]
				c.find(RealtimeWrite, l.key, []int{earliest.op, w}, "value %d at offset %d was acknowledged before value %d at offset %d was sent",
					late.value, late.offset, l.versions[v].value, l.versions[v].offset)
			}
			if o := &c.ops[w]; o.outcome == OK && (earliest.op < 0 || o.end < c.ops[earliest.op].end) {
				earliest = place{v, w}
			}
		}
	}
}
