package group

import "github.com/millrace/millrace/broker/internal/coord"

// groupsPerTick bounds the work of one Tick, and with it the batch it writes. What
// is left is due at once.
const groupsPerTick = 256

// NextDeadline is when the first group wants to be looked at, or the next search for
// expired offsets begins. It may be too early, since heartbeats do not move it.
func (m *Machine) NextDeadline() (ms int64, ok bool) {
	if len(m.groups) == 0 {
		return 0, false
	}
	ms = m.retention.atMs
	if g := m.deadlines.first(); g != nil {
		ms = min(ms, g.wakeMs)
	}
	return ms, true
}

// Tick ends what is due: sessions, waits for members, ids given out and not used; and
// when none of these is left, offsets past their retention.
func (m *Machine) Tick(nowMs int64) coord.Output {
	m.begin(nowMs)
	m.out.Splittable = true // groups do not depend on each other
	for range groupsPerTick {
		g := m.deadlines.first()
		if g == nil || g.wakeMs > nowMs {
			m.retain()
			break
		}
		m.expire(g)
		m.settle(g)
	}
	return m.end()
}

// retain goes on with the search for offsets whose time has come, and removes them, and
// the groups that are nothing without them. A crash between two batches of it leaves a
// group with fewer offsets, for the next search.
func (m *Machine) retain() {
	for _, id := range m.retention.next(m.groups, m.nowMs, m.options.RetentionCheckInterval.Milliseconds(), groupsPerTick) {
		g := m.groups[id]
		if g == nil {
			continue
		}
		gone, done := g.expired(m.nowMs, m.options.Retention.Milliseconds())
		for _, p := range gone {
			m.writeOffset(id, p, nil)
		}
		if done && g.record != nil {
			m.records = append(m.records, coord.Record{Key: appendMetadataKey(nil, id)})
		}
	}
}

func (m *Machine) expire(g *group) {
	l := g.live
	for id, at := range l.pending {
		if at <= m.nowMs {
			delete(l.pending, id)
		}
	}
	var gone []*member
	for _, o := range l.members {
		if o.expires() && o.deadlineMs <= m.nowMs {
			gone = append(gone, o)
		}
	}
	switch {
	case len(l.members) == 0:
		return
	case len(gone) == len(l.members):
		m.empty(g, gone)
		return
	case len(gone) > 0:
		m.dismiss(l, gone)
		m.rebalanceOrComplete(g)
	default:
		m.completeIfAllJoined(g)
	}
	switch {
	case l.state == PreparingRebalance && l.joinDeadlineMs <= m.nowMs:
		m.joinDue(g)
	case l.syncDeadlineMs != 0 && l.syncDeadlineMs <= m.nowMs:
		m.syncDue(g)
	}
}
