package sim

import "time"

// audience is a plain consumer of one partition that never stops. It checks what consumers are promised: records in the order of
// their offsets, each once, no aborted one for readers of committed data, and none missing.
type audience struct {
	reader
	seen []got
}

func newAudience(p *process, o *oracle, of partitionOf, committedOnly bool) *audience {
	a := &audience{reader: reader{process: p, o: o, of: of, committed: committedOnly, high: -1}}
	a.reader.take = a.taken
	a.moved = func() { p.w.fail("%s: position %d of %s-%d is out of range", p.name, a.position, of.topic, of.index) }
	return a
}

func (a *audience) start() { a.fetch(300*time.Millisecond, a.rest) }

func (a *audience) rest() { a.after(a.w.between(0, 16*a.pace()), "fetch", a.start) }

func (a *audience) taken(records []got, next int64) {
	for _, g := range records {
		if !a.allowed(g) {
			return
		}
	}
	a.seen = append(a.seen, records...)
	a.position = next
	a.after(a.w.between(0, 8*a.pace()), "fetch", a.start)
}

// allowed checks a record against what the log is known to hold.
func (a *audience) allowed(g got) bool {
	if g.id < 0 || g.id >= len(a.o.items) {
		a.w.fail("%s: %s-%d offset %d: a record that nobody sent", a.name, a.of.topic, a.of.index, g.offset)
		return false
	}
	i := a.o.items[g.id]
	if i.at != g.offset {
		a.w.fail("%s: %s-%d: record %d is served at offset %d, the durable log has it at %d", a.name, a.of.topic, a.of.index, g.id, g.offset, i.at)
		return false
	}
	if a.committed && i.fate != committed {
		a.w.fail("%s: %s-%d offset %d: a reader of committed data is served record %d, which is %v", a.name, a.of.topic, a.of.index, g.offset, g.id, i.fate)
		return false
	}
	return true
}

// complete checks that nothing was left out of what was read so far.
func (a *audience) complete() {
	n := 0
	for _, i := range a.o.committedOf(a.of.topic) {
		if i.partition != a.of.index || i.at >= a.position {
			continue
		}
		for !a.committed && n < len(a.seen) && a.o.items[a.seen[n].id].fate != committed {
			n++
		}
		if n == len(a.seen) || a.seen[n].id != i.id {
			a.w.fail("%s: record %d at %s-%d offset %d was passed over", a.name, i.id, i.topic, i.partition, i.at)
			return
		}
		n++
	}
}
