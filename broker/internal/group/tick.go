package group

import "github.com/millrace/millrace/broker/internal/coord"

// groupsPerTick bounds the work of one Tick, and with it the batch it writes. What
// is left is due at once.
const groupsPerTick = 256

// NextDeadline is when the first group wants to be looked at. It may be too early,
// since heartbeats do not move it.
func (m *Machine) NextDeadline() (ms int64, ok bool) {
	if g := m.deadlines.first(); g != nil {
		return g.wakeMs, true
	}
	return 0, false
}

// Tick ends what is due: sessions, waits for members, ids given out and not used.
func (m *Machine) Tick(nowMs int64) coord.Output {
	m.begin(nowMs)
	m.out.Splittable = true // groups do not depend on each other
	for range groupsPerTick {
		g := m.deadlines.first()
		if g == nil || g.wakeMs > nowMs {
			break
		}
		m.expire(g)
		m.settle(g)
	}
	return m.end()
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
