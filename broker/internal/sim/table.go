package sim

import (
	"slices"
	"strconv"
	"time"

	"github.com/millrace/millrace/broker/internal/partition"
	"github.com/millrace/millrace/core/record"
)

// keyed is a topic that is compacted all the time, while transactions are open in it; keys is how many each partition has.
const (
	keyed = "table"
	keys  = 5
)

// table knows how long a deleted key leaves a trace.
type table struct{ long bool }

// settings of the topic: it is compacted whenever there is something to win.
func (t table) settings() map[string]string {
	c := smallSegments()
	c["cleanup.policy"], c["min.cleanable.dirty.ratio"], c["internal.segment.bytes"] = "compact", "0.01", strconv.Itoa(segmentBytes/2)
	if !t.long {
		c["delete.retention.ms"] = "50"
	}
	return c
}

// latest is the last committed item of each key among those before an offset.
func latest(items []*item, before int64) map[string]*item {
	out := map[string]*item{}
	for _, i := range items {
		if i.fate == committed && i.at < before {
			out[i.key] = i
		}
	}
	return out
}

// compacted holds a compacted log against what was written to it: everything is where it was, the last committed record of each key
// is there, and so is everything from the last stable offset on; a deleted key does not come back.
func (v *view) compacted(p *partition.Partition) {
	w := v.o.w
	have := map[int64]int{}
	complete := v.read(p, v.start, func(b record.Batch) {
		if b.Attributes().Control() {
			return
		}
		for r, err := range b.Records(nil) {
			if err != nil {
				w.fail("%s: offset %d: %w", v.name, b.BaseOffset(), err)
				return
			}
			have[r.Offset] = numberOf(r)
		}
	})
	if !complete {
		return
	}
	stable, last, removed := v.stable(), latest(v.items, v.next), len(v.items)
	for _, i := range v.items {
		id, there := have[i.at]
		delete(have, i.at)
		newest := last[i.key]
		switch {
		case there && id != i.id:
			w.fail("%s: offset %d was record %d and is record %d", v.name, i.at, i.id, id)
		case there && i.fate == committed && newest.gone && i != newest && !has(have, newest.at):
			w.fail("%s: record %d of %s is there, record %d that deletes it is not", v.name, i.id, i.key, newest.id)
		case there:
			removed--
		case i.at >= stable:
			w.fail("%s: record %d at offset %d is gone, the last stable offset is %d", v.name, i.id, i.at, stable)
		case i == newest && !i.gone:
			w.fail("%s: record %d at offset %d is gone, it is the last one of %s", v.name, i.id, i.at, i.key)
		}
		if w.failure != nil {
			return
		}
	}
	if len(have) > 0 {
		w.fail("%s: records at offsets that nobody wrote: %v", v.name, have)
	}
	if len(v.items) > 0 {
		w.see("a compacted log is looked at")
	}
	if removed > 0 {
		w.see("compaction has removed records")
	}
}

func has(have map[int64]int, offset int64) bool { _, ok := have[offset]; return ok }

// mirror reads the compacted topic from its beginning to its end, as who rebuilds a state does, and again.
type mirror struct {
	audience
	v    func() *view
	long bool
	rows map[string]got
	want map[string]*item // as of the beginning
	end  int64            // of the last reading, -1 for none
}

func newMirror(p *process, o *oracle, of partitionOf, long bool, v func() *view) *mirror {
	m := &mirror{audience: *newAudience(p, o, of, true), v: v, long: long, end: -1}
	m.take = m.taken
	return m
}

// begin begins a reading.
func (m *mirror) begin() {
	v := m.v()
	if v == nil {
		m.after(m.soon(), "look again", m.begin)
		return
	}
	m.position, m.rows, m.want = 0, map[string]got{}, latest(v.items, v.marks.LastStable)
	m.on()
}

func (m *mirror) soon() time.Duration { return m.w.between(time.Millisecond, 16*m.pace()) }

// on fetches what comes next. An answer without records may be an error too: only one that tells the end ends the reading.
func (m *mirror) on() {
	m.high = -1
	m.fetch(0, func() {
		if m.high >= 0 && m.position >= m.high {
			m.complete()
			return
		}
		m.after(m.soon(), "fetch", m.on)
	})
}

func (m *mirror) taken(records []got, next int64) {
	for _, g := range records {
		if !m.allowed(g) {
			return
		}
		m.rows[m.o.items[g.id].key] = g
	}
	m.position = next
	m.after(m.w.between(0, m.pace()), "fetch", m.on)
}

// deleted tells whether a key was deleted with an item or after it.
func (m *mirror) deleted(since *item) bool {
	return slices.ContainsFunc(m.v().items, func(i *item) bool {
		return i.key == since.key && i.gone && i.fate == committed && i.at >= since.at
	})
}

// complete holds what was read against what was committed when the reading began: each key is there with that record or a later one.
func (m *mirror) complete() {
	for _, i := range m.want {
		g, have := m.rows[i.key]
		switch {
		case have && g.offset >= i.at:
		case i.gone && !have:
		case !m.long && m.deleted(i): // the trace of that may be gone, and while it was read too
		default:
			m.w.fail("%s: it was read to %d, and %s is %+v; record %d was committed at %d before", m.name, m.position, i.key, g, i.id, i.at)
			return
		}
	}
	m.end = m.position
	m.w.see("a table is read")
	m.after(m.soon(), "read again", m.begin)
}
