package history

import (
	"cmp"
	"slices"
)

// fact says that from a moment on a watermark of a partition is not below a value.
type fact struct {
	time  int64
	key   Key
	mark  int // 0 log start, 1 last stable offset, 2 high watermark
	least int64
	op    int
	said  bool // by an observation of the marks, not by a read or an acknowledgement
}

var markNames = [...]string{"log start", "last stable offset", "high watermark"}

func (m *Mark) get(i int) int64 { return [...]int64{m.Start, m.Stable, m.High}[i] }

// stable lists up to where readers were let, and when that was known.
func (c *checker) stable() []fact {
	var out []fact
	for i := range c.ops {
		o := &c.ops[i]
		if o.kind == Marks && o.outcome == OK {
			for _, m := range c.events[o.event].Marks {
				out = append(out, fact{o.end, m.Key, 1, m.Stable, i, true})
			}
		}
		for _, st := range o.steps {
			at := st.At
			if at == 0 {
				at = o.end
			}
			for n, r := range st.Reads {
				if n+1 == len(st.Reads) || st.Reads[n+1].Key != r.Key {
					out = append(out, fact{at, r.Key, 1, r.Offset + 1, i, false})
				}
			}
		}
	}
	return out
}

// facts adds to stable what is known of the other watermarks, in the order of time.
func (c *checker) facts() []fact {
	out := c.stable()
	for _, f := range out {
		if !f.said {
			f.mark = 2
			out = append(out, f)
		}
	}
	for i := range c.ops {
		o := &c.ops[i]
		if o.outcome != OK {
			continue
		}
		for _, st := range o.steps {
			if st.Kind == StepSend && st.Offset != Unknown {
				out = append(out, fact{o.end, st.Key, 2, st.Offset + 1, i, false})
			}
		}
		for _, m := range c.events[o.event].Marks {
			out = append(out, fact{o.end, m.Key, 0, m.Start, i, true}, fact{o.end, m.Key, 2, m.High, i, true})
		}
	}
	slices.SortStableFunc(out, func(a, b fact) int { return cmp.Compare(a.time, b.time) })
	return out
}

// checkWatermarks: they do not go back, are in order, and not behind what was read or
// acknowledged before they were asked for. An observation asks for the log start
// first and for the high watermark last, so that the order holds across the moments.
func (c *checker) checkWatermarks() {
	var asked []int
	for i := range c.ops {
		if c.ops[i].kind == Marks && c.ops[i].outcome == OK {
			asked = append(asked, i)
		}
	}
	if len(asked) == 0 {
		return
	}
	slices.SortStableFunc(asked, func(a, b int) int { return cmp.Compare(c.ops[a].start, c.ops[b].start) })
	type floor struct {
		key  Key
		mark int
		said bool
	}
	floors := map[floor]fact{}
	facts, next := c.facts(), 0
	for _, i := range asked {
		for ; next < len(facts) && facts[next].time < c.ops[i].start; next++ {
			f := facts[next]
			at := floor{f.key, f.mark, f.said}
			if have, known := floors[at]; !known || f.least > have.least {
				floors[at] = f
			}
		}
		for _, m := range c.events[c.ops[i].event].Marks {
			if m.Start > m.Stable || m.Stable > m.High {
				c.find(WatermarkOrder, m.Key, []int{i}, "log start %d, last stable offset %d, high watermark %d", m.Start, m.Stable, m.High)
			}
			for mark, name := range markNames {
				if f, known := floors[floor{m.Key, mark, true}]; known && m.get(mark) < f.least {
					c.find(WatermarkBack, m.Key, []int{f.op, i}, "the %s was %d and is %d", name, f.least, m.get(mark))
				}
				if f, known := floors[floor{m.Key, mark, false}]; known && m.get(mark) < f.least {
					c.find(WatermarkBehind, m.Key, []int{f.op, i}, "the %s is %d, %d was read or acknowledged", name, m.get(mark), f.least-1)
				}
			}
		}
	}
}

// checkOpen: until a transaction's end is on its way nobody gets past its first record
// in a partition. Only transactions that were committed are looked at: they were open
// that long for certain, and not ended by their timeout.
func (c *checker) checkOpen() {
	facts := c.stable()
	ends := []fact{}
	for i := range c.ops {
		o := &c.ops[i]
		n := len(o.steps)
		if !o.transactional() || o.outcome != OK || n == 0 || o.steps[n-1].Kind != StepCommit || o.steps[n-1].At == 0 {
			continue
		}
		first := map[Key]bool{}
		for _, st := range o.steps {
			if st.Kind == StepSend && st.Offset != Unknown && !first[st.Key] {
				first[st.Key] = true
				ends = append(ends, fact{time: o.steps[n-1].At, key: st.Key, least: st.Offset, op: i})
			}
		}
	}
	slices.SortStableFunc(facts, func(a, b fact) int { return cmp.Compare(a.time, b.time) })
	slices.SortStableFunc(ends, func(a, b fact) int { return cmp.Compare(a.time, b.time) })
	furthest, next := map[Key]fact{}, 0
	for _, e := range ends {
		for ; next < len(facts) && facts[next].time < e.time; next++ {
			f := facts[next]
			if have, known := furthest[f.key]; !known || f.least > have.least {
				furthest[f.key] = f
			}
		}
		if f, known := furthest[e.key]; known && f.least > e.least {
			c.find(OpenPassed, e.key, []int{e.op, f.op}, "offset %d was not decided yet, readers were let up to %d", e.least, f.least)
		}
	}
}

// checkEnd: the drain went through, and after it no transaction holds a partition.
func (c *checker) checkEnd() {
	drained := false
	last := map[Key]int{}
	marks := map[Key]Mark{}
	var order []Key
	for i := range c.ops {
		o := &c.ops[i]
		e := &c.events[o.event]
		switch {
		case o.kind == Drain && o.outcome != OK:
			c.find(Stuck, Key{}, []int{i}, "%s", e.Note)
			drained = true
		case o.kind == Drain:
			drained = true
		case o.kind == Marks && o.outcome == OK && drained:
			for _, m := range e.Marks {
				if _, known := last[m.Key]; !known {
					order = append(order, m.Key)
				}
				last[m.Key], marks[m.Key] = i, m
			}
		}
	}
	for _, k := range order {
		if m := marks[k]; m.Stable < m.High {
			c.find(Hanging, k, append(c.holders(m), last[k]), "the last stable offset is %d, the high watermark %d", m.Stable, m.High)
		}
	}
}

// holders are the transactions that may be the ones that hold a partition: those with
// a record at the last stable offset.
func (c *checker) holders(m Mark) []int {
	l := c.byKey[m.Key]
	if l == nil {
		return nil
	}
	var out []int
	for _, v := range l.order {
		if x := l.values[v]; x.writer >= 0 && x.offset == m.Stable {
			out = append(out, x.writer)
		}
	}
	return out
}
