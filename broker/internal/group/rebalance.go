package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/coord"
)

// rebalanceOrComplete is called when a member joined, left or changed: it starts
// a rebalance, or ends its join phase if that was the last one missing.
func (m *Machine) rebalanceOrComplete(g *group) {
	if g.live.state != PreparingRebalance {
		m.prepare(g)
		return
	}
	m.completeIfAllJoined(g)
}

// prepare starts a rebalance.
func (m *Machine) prepare(g *group) {
	l := g.live
	if l.state == CompletingRebalance {
		m.dropSyncs(l, kerr.RebalanceInProgress.Code)
	}
	first := l.state == Empty
	l.state = PreparingRebalance
	l.syncDeadlineMs = 0
	l.initial = false
	delay := m.options.InitialRebalanceDelay.Milliseconds()
	switch {
	case !first:
		l.joinDeadlineMs = m.nowMs + l.rebalanceMs()
		m.completeIfAllJoined(g)
	case delay == 0:
		m.complete(g)
	default:
		l.initial, l.newcomers = true, false
		l.initialLeftMs = max(l.rebalanceMs()-delay, 0)
		l.joinDeadlineMs = m.nowMs + delay
	}
}

func (m *Machine) completeIfAllJoined(g *group) {
	if l := g.live; l.state == PreparingRebalance && !l.initial && l.complete() {
		m.complete(g)
	}
}

// joinDue is called when the join phase's time is over.
func (m *Machine) joinDue(g *group) {
	l := g.live
	if l.initial && l.newcomers && l.initialLeftMs > 0 {
		more := min(m.options.InitialRebalanceDelay.Milliseconds(), l.initialLeftMs)
		l.newcomers = false
		l.initialLeftMs -= more
		l.joinDeadlineMs = m.nowMs + more
		return
	}
	m.complete(g)
}

// complete ends the join phase: a new generation of those who joined. Static
// members that did not come keep their place until their session ends (KIP-345).
func (m *Machine) complete(g *group) {
	l := g.live
	var gone []*member
	for _, o := range l.members {
		if o.joining == 0 && o.instance == nil {
			gone = append(gone, o)
		}
	}
	if len(gone) == len(l.members) {
		m.empty(g, gone)
		return
	}
	m.dismiss(l, gone)
	l.initial = false
	if !l.electJoined() {
		l.joinDeadlineMs = m.nowMs + l.rebalanceMs()
		return
	}
	l.state = CompletingRebalance
	l.generation++
	l.protocol = l.vote()
	l.syncDeadlineMs = m.nowMs + l.rebalanceMs()
	for _, o := range l.members {
		o.synced, o.assignment = false, nil
		if o.joining == 0 {
			continue
		}
		to := o.joining
		o.joining, o.isNew = 0, false
		m.joined(to, g, o, o.id == l.leader)
	}
}

// dropSyncs answers all who wait for their assignment that there will be none.
func (m *Machine) dropSyncs(l *classic, code int16) {
	for _, o := range l.members {
		o.assignment = nil
		if o.syncing != 0 {
			m.reply(o.syncing, SyncError(code))
			o.syncing = 0
			o.renew(m.nowMs)
		}
	}
}

// dismiss removes members that left or did not show up; if they wait for an
// answer it is that they are unknown, so that they join anew.
func (m *Machine) dismiss(l *classic, gone []*member) {
	for _, o := range gone {
		m.release(o, kerr.UnknownMemberID.Code)
		o.joining, o.syncing = 0, 0
		l.remove(o)
	}
}

// release answers what a member waits for.
func (m *Machine) release(o *member, code int16) {
	if o.joining != 0 {
		m.refuseJoin(o.joining, o.id, code)
	}
	if o.syncing != 0 {
		m.reply(o.syncing, SyncError(code))
	}
}

// Forget is told of callers that got a failure in place of an answer: their
// members do not wait any more. It comes with failed appends only, so it may look
// everywhere.
func (m *Machine) Forget(to coord.Token) {
	for _, g := range m.groups {
		if g.live == nil {
			continue
		}
		for _, o := range g.live.members {
			if o.joining != to && o.syncing != to {
				continue
			}
			if o.joining == to {
				o.joining = 0
			}
			if o.syncing == to {
				o.syncing, o.synced = 0, false
			}
			if !o.isNew {
				o.renew(m.nowMs)
			}
			m.settle(g)
			return
		}
	}
}

// empty takes the last members out of a group. A group that the log knows of, or
// one with offsets, says so in a record, so that the offsets count as those of a
// group that was left at this time.
func (m *Machine) empty(g *group, gone []*member) {
	l := g.live
	generation := l.generation + 1
	if g.bare() {
		m.dismiss(l, gone)
		l.clear(generation)
		return
	}
	for _, o := range gone {
		m.release(o, kerr.UnknownMemberID.Code)
	}
	g.retryMs = m.nowMs + retryMs
	m.write(g, &kmsg.GroupMetadataValue{
		Version:               metadataValueVersion,
		ProtocolType:          l.protocolType,
		Generation:            generation,
		CurrentStateTimestamp: m.nowMs,
	}, func() {
		l.clear(generation)
		g.retryMs = 0
	})
}
