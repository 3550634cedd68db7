package group

import (
	"fmt"

	"github.com/millrace/millrace/broker/internal/coord"
	"github.com/millrace/millrace/core/record"
)

// Replay applies one record of the log. A tombstone of something unknown does
// nothing, since compaction may have removed what it was about.
func (m *Machine) Replay(r coord.Replayed) error {
	kind, err := keyType(r.Key)
	if err == nil {
		switch kind {
		case keyOffsetOld, keyOffset:
			err = m.replayOffset(r)
		case keyMetadata:
			err = m.replayMetadata(r)
		default:
			m.replayForeign(r)
		}
	}
	if err != nil {
		return fmt.Errorf("record at offset %d: %w", r.Offset, err)
	}
	return nil
}

func (m *Machine) replayForeign(r coord.Replayed) {
	if r.Value == nil {
		delete(m.foreign, string(r.Key))
		return
	}
	m.foreign[string(r.Key)] = r.Value
}

func (m *Machine) replayOffset(r coord.Replayed) error {
	id, topic, index, err := splitOffsetKey(r.Key)
	if err != nil {
		return err
	}
	g := m.groups[string(id)]
	if r.Value == nil {
		if g != nil {
			m.forget(g, partition{topic: m.topic(topic), index: index})
			m.settle(g)
		}
		return nil
	}
	c, err := readOffsetValue(r.Value)
	if err != nil {
		return err
	}
	c.at = r.Offset
	if g == nil {
		g = m.create(string(id))
	}
	p := partition{topic: m.topic(topic), index: index}
	if r.Transactional {
		m.hold(g, r.ProducerID, p, c)
		return nil
	}
	g.put(p, c)
	return nil
}

// topic gives the one copy of a topic's name.
func (m *Machine) topic(name []byte) string {
	if s, ok := m.topics[string(name)]; ok {
		return s
	}
	s := string(name)
	m.topics[s] = s
	return s
}

// put stores a committed offset, unless a later record was there first.
func (g *group) put(p partition, c committed) {
	if g.offsets == nil {
		g.offsets = map[partition]committed{}
	}
	if old, ok := g.offsets[p]; ok && old.at > c.at {
		return
	}
	g.offsets[p] = c
}

// hold keeps an offset until the transaction's marker.
func (m *Machine) hold(g *group, pid int64, p partition, c committed) {
	if g.open == nil {
		g.open = map[int64]map[partition]committed{}
	}
	if g.open[pid] == nil {
		g.open[pid] = map[partition]committed{}
		if m.open[pid] == nil {
			m.open[pid] = map[*group]struct{}{}
		}
		m.open[pid][g] = struct{}{}
	}
	g.open[pid][p] = c
}

// forget removes a partition's offset, and those of open transactions: their
// records lie before the tombstone.
func (m *Machine) forget(g *group, p partition) {
	delete(g.offsets, p)
	for pid, offsets := range g.open {
		delete(offsets, p)
		if len(offsets) > 0 {
			continue
		}
		delete(g.open, pid)
		delete(m.open[pid], g)
		if len(m.open[pid]) == 0 {
			delete(m.open, pid)
		}
	}
}

// ReplayMarker ends a transaction: its offsets become visible together, or are
// dropped.
func (m *Machine) ReplayMarker(mk record.Marker, _ int64) error {
	for g := range m.open[mk.ProducerID] {
		offsets := g.open[mk.ProducerID]
		delete(g.open, mk.ProducerID)
		if mk.Commit {
			for p, c := range offsets {
				g.put(p, c)
			}
		}
		m.settle(g)
	}
	delete(m.open, mk.ProducerID)
	m.verifications.end(mk.ProducerID)
	return nil
}

func (m *Machine) replayMetadata(r coord.Replayed) error {
	id, v, err := readMetadata(r.Key, r.Value)
	if err != nil {
		return err
	}
	g := m.groups[id]
	if g == nil {
		if v == nil {
			return nil
		}
		g = m.create(id)
	}
	g.record = v
	switch {
	case g.staged != nil && g.stagedAt == m.step:
		g.staged()
	case m.loaded:
		m.restore(g)
	}
	g.staged = nil
	m.settle(g)
	return nil
}

// Loaded starts the protocol of all groups that have members: their sessions
// begin anew, since nobody could send a heartbeat to a broker that was not there.
func (m *Machine) Loaded(nowMs int64) coord.Output {
	m.begin(nowMs)
	m.loaded = true
	m.retention.wait(nowMs + m.options.RetentionCheckInterval.Milliseconds()) // members come back before it
	for _, g := range m.groups {
		m.restore(g)
		m.settle(g)
	}
	if gone := m.options.Gone; gone != nil {
		m.deleteOffsets(func(_ string, id ID) bool { return id != ID{} && gone(id) })
	}
	return m.end()
}

// restore makes the running group from its record.
func (m *Machine) restore(g *group) {
	g.live = nil
	v := g.record
	if v == nil || len(v.Members) == 0 {
		return
	}
	l := newClassic(v.Generation)
	l.state = Stable
	l.protocolType = v.ProtocolType
	if v.Protocol != nil {
		l.protocol = *v.Protocol
	}
	for i := range v.Members {
		r := &v.Members[i]
		o := &member{
			id:          r.MemberID,
			instance:    r.InstanceID,
			clientID:    r.ClientID,
			host:        r.ClientHost,
			sessionMs:   int64(r.SessionTimeoutMillis),
			rebalanceMs: int64(r.RebalanceTimeoutMillis),
			protocols:   []protocol{{name: l.protocol, metadata: r.Subscription}},
			assignment:  r.Assignment,
			synced:      true,
		}
		if o.rebalanceMs < 0 { // records of version 0 have none
			o.rebalanceMs = o.sessionMs
		}
		o.renew(m.nowMs)
		l.add(o)
	}
	if v.Leader != nil {
		l.leader = *v.Leader
	}
	g.live = l
}
