package history

// checkOffsets: an offset holds one value, a value has one offset.
func (c *checker) checkOffsets() {
	for _, l := range c.logs {
		for i := 1; i < len(l.seen); i++ {
			a, b := l.seen[i-1], l.seen[i]
			if a.offset == b.offset && a.value != b.value {
				c.find(InconsistentOffset, l.key, []int{a.op, b.op}, "offset %d holds %d and %d", a.offset, a.value, b.value)
			}
		}
		for _, v := range l.order {
			if x := l.values[v]; x.first != x.last {
				c.find(Duplicate, l.key, []int{x.writer, x.reader}, "value %d is at offset %d and at %d", v, l.versions[x.first].offset, l.versions[x.last].offset)
			}
		}
	}
}

// checkReads: what was read was sent, by a transaction that is committed and is not the
// reader's own.
func (c *checker) checkReads() {
	for i := range c.ops {
		o := &c.ops[i]
		for _, st := range o.steps {
			for _, r := range st.Reads {
				w := c.byKey[r.Key].values[r.Value].writer
				switch {
				case w < 0:
					c.find(Unwritten, r.Key, []int{i}, "value %d at offset %d", r.Value, r.Offset)
				case w == i:
					c.find(PrecommittedRead, r.Key, []int{i}, "value %d at offset %d", r.Value, r.Offset)
				case c.ops[w].outcome == Fail:
					c.find(AbortedRead, r.Key, []int{w, i}, "value %d at offset %d", r.Value, r.Offset)
				}
			}
		}
	}
}

// counts says whether a value must be found by readers: its transaction is committed,
// or it was acknowledged outside of one.
func (c *checker) counts(x *value) bool {
	if x.writer < 0 || !c.ops[x.writer].committed {
		return false
	}
	w := &c.ops[x.writer]
	return w.outcome == OK || w.transactional() || x.offset != Unknown
}

// checkVisible: a committed record that lies before one that was read has been read
// itself; in the end all have been.
func (c *checker) checkVisible() {
	for _, l := range c.logs {
		bound, boundReader := -1, -1
		for _, v := range l.order {
			if x := l.values[v]; x.reader >= 0 && x.first > bound {
				bound, boundReader = x.first, x.reader
			}
		}
		for _, v := range l.order {
			x := l.values[v]
			if x.reader >= 0 || !c.counts(x) {
				continue
			}
			switch {
			case x.last >= 0 && x.last <= bound:
				c.find(LostWrite, l.key, []int{x.writer, boundReader}, "value %d at offset %d was never read, offset %d was",
					v, l.versions[x.last].offset, l.versions[bound].offset)
			case c.drained:
				c.find(Unseen, l.key, []int{x.writer}, "value %d was never read%s", v, c.why(x))
			default:
				c.find(NotDrained, l.key, []int{x.writer}, "value %d", v)
			}
		}
	}
}

func (c *checker) why(x *value) string {
	if c.ops[x.writer].outcome == OK {
		return ""
	}
	return "; its transaction is committed, as another part of it was read"
}

// checkIntermediate counts polls that show some records of a transaction and not all.
func (c *checker) checkIntermediate() {
	sends := make([]int, len(c.ops))
	for i := range c.ops {
		for _, st := range c.ops[i].steps {
			if st.Kind == StepSend {
				sends[i]++
			}
		}
	}
	for i := range c.ops {
		for _, st := range c.ops[i].steps {
			part := map[int]int{}
			for _, r := range st.Reads {
				if w := c.byKey[r.Key].values[r.Value].writer; w >= 0 {
					part[w]++
				}
			}
			torn := -1
			for w, n := range part {
				if n < sends[w] && (torn < 0 || w < torn) {
					torn = w
				}
			}
			if torn >= 0 {
				c.find(IntermediateRead, Key{}, []int{torn, i}, "%d of %d records", part[torn], sends[torn])
			}
		}
	}
}
