package history

import (
	"cmp"
	"slices"
)

// share is what an operation consumed of a partition for a group: the versions
// [from, to), whose consumption it committed.
type share struct {
	from, to int
	op       int
	certain  bool // committed; else it may be
}

// groupKey is a partition as a group sees it.
type groupKey struct {
	group string
	key   Key
}

// shares lists what was consumed, by group and partition, in the order of versions.
// An undecided transaction whose records did not show up after a drain is not
// committed, so its offsets must not count either.
func (c *checker) shares() (map[groupKey][]share, []groupKey) {
	out := map[groupKey][]share{}
	var order []groupKey
	for i := range c.ops {
		o := &c.ops[i]
		if o.outcome == Fail {
			continue
		}
		sends := slices.ContainsFunc(o.steps, func(s Step) bool { return s.Kind == StepSend })
		if !o.committed && sends && c.drained {
			continue
		}
		first := map[Key]int{}
		for _, st := range o.steps {
			for _, r := range st.Reads {
				if _, seen := first[r.Key]; !seen {
					first[r.Key] = c.byKey[r.Key].before(r.Offset)
				}
			}
		}
		for _, st := range o.steps {
			for _, p := range st.Next {
				gk := groupKey{st.Group, p.Key}
				to := c.log(p.Key).before(p.Offset)
				from, read := first[p.Key]
				if !read {
					from = to
				}
				if out[gk] == nil {
					order = append(order, gk)
				}
				out[gk] = append(out[gk], share{from, to, i, o.committed})
			}
		}
	}
	for _, gk := range order {
		slices.SortStableFunc(out[gk], func(a, b share) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	}
	return out, order
}

// checkGroups: committed transactions of a group consume each record of a partition
// once, from the first on, whoever the members are. So a partition had one owner that
// could commit at any time, and offsets moved together with the records that the same
// transactions sent: an undecided transaction counts by whether its records are there.
func (c *checker) checkGroups() {
	all, order := c.shares()
	for _, gk := range order {
		l := c.byKey[gk.key]
		owned := share{op: -1}   // the certain share that reaches furthest
		covered := share{op: -1} // the same with those that may be
		gap := share{op: -1}     // the first versions that nobody consumed
		for _, s := range all[gk] {
			if s.from > covered.to && gap.op < 0 {
				gap = share{from: covered.to, to: s.from, op: s.op, certain: s.certain}
			}
			if gap.op >= 0 && s.certain && s.to > s.from {
				left := l.versions[gap.from]
				c.find(NotConsumed, gk.key, []int{c.writerOf(l, left.value), covered.op, s.op}, "group %s: %d records from offset %d (value %d) on, offsets are committed up to %d",
					gk.group, gap.to-gap.from, left.offset, left.value, l.versions[s.to-1].offset+1)
				gap = share{op: -1}
			}
			if s.to > covered.to {
				covered = s
			}
			if !s.certain || s.from == s.to {
				continue
			}
			if s.from < owned.to {
				again := l.versions[s.from]
				c.find(ConsumedTwice, gk.key, []int{owned.op, s.op}, "group %s: from offset %d (value %d) on", gk.group, again.offset, again.value)
			}
			if s.to > owned.to {
				owned = s
			}
		}
	}
}

// observation is a committed offset as somebody saw it.
type observation struct {
	op, index int
	offset    int64
}

// checkObservedOffsets: what the broker says of a group's offsets is what a
// transaction committed, and never less than before.
func (c *checker) checkObservedOffsets() {
	seen := map[groupKey][]observation{}
	var order []groupKey
	for i := range c.ops {
		o := &c.ops[i]
		if o.kind != Committed || o.outcome != OK {
			continue
		}
		e := &c.events[o.event]
		for _, p := range e.Positions {
			gk := groupKey{e.Group, p.Key}
			if seen[gk] == nil {
				order = append(order, gk)
			}
			seen[gk] = append(seen[gk], observation{i, c.log(p.Key).before(p.Offset), p.Offset})
		}
	}
	all, _ := c.shares()
	for _, gk := range order {
		c.checkObserved(gk, seen[gk], all[gk])
	}
}

func (c *checker) checkObserved(gk groupKey, seen []observation, shares []share) {
	begun := map[int]int64{} // where a transaction may have put the offset, and since when
	floor := make([]observation, 0, len(shares)+len(seen))
	for _, s := range shares {
		if at, known := begun[s.to]; !known || c.ops[s.op].start < at {
			begun[s.to] = c.ops[s.op].start
		}
		if c.ops[s.op].outcome == OK {
			floor = append(floor, observation{s.op, s.to, Unknown})
		}
	}
	floor = append(floor, seen...)
	slices.SortStableFunc(floor, func(a, b observation) int { return cmp.Compare(c.ops[a.op].end, c.ops[b.op].end) })
	slices.SortStableFunc(seen, func(a, b observation) int { return cmp.Compare(c.ops[a.op].start, c.ops[b.op].start) })
	low, next := observation{op: -1}, 0
	for _, s := range seen {
		for ; next < len(floor) && c.ops[floor[next].op].end < c.ops[s.op].start; next++ {
			if floor[next].index > low.index {
				low = floor[next]
			}
		}
		at, known := begun[s.index]
		switch {
		case s.index < low.index:
			c.find(OffsetBack, gk.key, []int{low.op, s.op}, "group %s: %d is %d records before what was committed", gk.group, s.offset, low.index-s.index)
		case s.index > 0 && (!known || at > c.ops[s.op].end):
			c.find(OffsetUncommitted, gk.key, []int{s.op}, "group %s: offset %d", gk.group, s.offset)
		}
	}
}
