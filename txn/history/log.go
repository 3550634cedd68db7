package history

import (
	"cmp"
	"fmt"
	"slices"
)

// value is what is known of one value of a partition.
type value struct {
	writer      int // operation, -1 is none
	offset      int64
	reader      int // the first operation that read it, -1 is none
	first, last int // where in partitionLog.versions, -1 is nowhere
}

// sighting is a value at an offset, by the operation that wrote or read it.
type sighting struct {
	offset, value int64
	op            int
	written       bool
}

// version is an offset that holds something: the place in the order of them is the
// index that the checks reckon with, as offsets have gaps where markers and aborted
// records lie.
type version struct {
	offset int64
	value  int64 // one of them, should there be more
}

// partitionLog is what a history tells of a partition.
type partitionLog struct {
	key      Key
	values   map[int64]*value
	order    []int64 // values in the order in which they were first met
	seen     []sighting
	versions []version
}

// checker carries a history through the checks. Each check is a method in a file of
// its own, and only reads what the builders here have set.
type checker struct {
	events  []Event
	ops     []operation
	logs    []*partitionLog // by key, in the order in which keys were first met
	byKey   map[Key]*partitionLog
	drained bool // all drains succeeded, and there was one
	stuck   bool // a drain did not
	report  *Report
}

func (c *checker) log(k Key) *partitionLog {
	l := c.byKey[k]
	if l == nil {
		l = &partitionLog{key: k, values: map[int64]*value{}}
		c.byKey[k] = l
		c.logs = append(c.logs, l)
	}
	return l
}

func (l *partitionLog) value(v int64) *value {
	x := l.values[v]
	if x == nil {
		x = &value{writer: -1, reader: -1, first: -1, last: -1, offset: Unknown}
		l.values[v] = x
		l.order = append(l.order, v)
	}
	return x
}

// collect registers who wrote and who read what.
func (c *checker) collect() error {
	for i := range c.ops {
		o := &c.ops[i]
		for s := range o.steps {
			st := &o.steps[s]
			switch st.Kind {
			case StepSend:
				c.report.Stats.Sent++
				x := c.log(st.Key).value(st.Value)
				if x.writer >= 0 {
					return fmt.Errorf("%w: value %d of %v is sent at lines %d and %d, each must be sent once", ErrMalformed,
						st.Value, st.Key, c.ops[x.writer].event+1, o.event+1)
				}
				x.writer, x.offset = i, st.Offset
			case StepPoll:
				for _, r := range st.Reads {
					c.report.Stats.Reads++
					l := c.log(r.Key)
					if x := l.value(r.Value); x.reader < 0 {
						x.reader = i
					}
					l.seen = append(l.seen, sighting{r.Offset, r.Value, i, false})
				}
			}
		}
		if o.kind == Drain {
			c.drained = o.outcome == OK && !c.stuck
			c.stuck = c.stuck || o.outcome != OK
		}
	}
	return nil
}

// settle decides of each operation whether its writes count. A transaction whose
// outcome the client does not know is committed if anything of it was read: then all
// of it must be there. A send outside of transactions stands for itself.
func (c *checker) settle() {
	for i := range c.ops {
		o := &c.ops[i]
		o.committed = o.outcome == OK
		if o.outcome != Info {
			continue
		}
		for _, st := range o.steps {
			if st.Kind == StepSend && c.byKey[st.Key].values[st.Value].reader >= 0 {
				o.committed = true
				break
			}
		}
	}
}

// index builds the order of versions of each partition.
func (c *checker) index() {
	for _, l := range c.logs {
		for _, v := range l.order {
			if x := l.values[v]; x.writer >= 0 && x.offset != Unknown && c.ops[x.writer].committed {
				l.seen = append(l.seen, sighting{x.offset, v, x.writer, true})
			}
		}
		slices.SortStableFunc(l.seen, func(a, b sighting) int {
			return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(a.value, b.value))
		})
		for _, s := range l.seen {
			if n := len(l.versions); n == 0 || l.versions[n-1].offset != s.offset {
				l.versions = append(l.versions, version{s.offset, s.value})
			}
			x := l.values[s.value]
			if x.last = len(l.versions) - 1; x.first < 0 {
				x.first = x.last
			}
		}
	}
}

// before is how many versions lie below an offset.
func (l *partitionLog) before(offset int64) int {
	n, _ := slices.BinarySearchFunc(l.versions, offset, func(v version, o int64) int { return cmp.Compare(v.offset, o) })
	return n
}

// find reports an anomaly with the operations involved, each once.
func (c *checker) find(class Class, key Key, ops []int, format string, args ...any) {
	a := Anomaly{Class: class, Key: key}
	if c.report.Counts[class] < MaxPerClass {
		a.Text = fmt.Sprintf(format, args...)
		for _, o := range ops {
			if o >= 0 && !slices.Contains(a.Events, c.ops[o].event) {
				a.Events = append(a.Events, c.ops[o].event)
			}
		}
	}
	c.report.add(a)
}
