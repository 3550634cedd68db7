package group

import (
	"slices"
)

// classic is the running protocol of a classic group: all of it soft state, see
// the package comment. A group has one while it has members or pending members.
type classic struct {
	state        State
	generation   int32
	protocolType string
	protocol     string // chosen for the generation, "" in Empty
	leader       string

	members  []*member // in the order in which they joined
	byID     map[string]*member
	instance map[string]*member
	// pending are member ids that were given out with MEMBER_ID_REQUIRED (KIP-394),
	// with the time at which they are forgotten.
	pending map[string]int64

	// joinDeadlineMs ends PreparingRebalance.
	joinDeadlineMs int64
	// initial is set in the first rebalance of an empty group, which always waits
	// for its deadline; while members keep coming it is moved, as long as
	// initialLeftMs lasts.
	initial       bool
	initialLeftMs int64
	newcomers     bool
	// syncDeadlineMs ends the wait for members that did not ask for their
	// assignment, 0 for none: they are removed.
	syncDeadlineMs int64
}

func newClassic(generation int32) *classic {
	return &classic{
		generation: generation,
		byID:       map[string]*member{},
		instance:   map[string]*member{},
		pending:    map[string]int64{},
	}
}

// add makes m a member; the first one leads.
func (c *classic) add(m *member) {
	c.members = append(c.members, m)
	c.byID[m.id] = m
	if m.instance != nil {
		c.instance[*m.instance] = m
	}
	if c.leader == "" {
		c.leader = m.id
	}
	delete(c.pending, m.id)
}

// remove takes m out. Whoever calls it answers the member's tokens.
func (c *classic) remove(m *member) {
	i := slices.Index(c.members, m)
	if i < 0 {
		return
	}
	c.members = slices.Delete(c.members, i, i+1)
	delete(c.byID, m.id)
	if m.instance != nil && c.instance[*m.instance] == m {
		delete(c.instance, *m.instance)
	}
	if c.leader == m.id {
		c.leader = ""
		if len(c.members) > 0 {
			c.leader = c.members[0].id
		}
	}
}

// rename gives a static member's place to a new member id.
func (c *classic) rename(m *member, id string) {
	delete(c.byID, m.id)
	if c.leader == m.id {
		c.leader = id
	}
	m.id = id
	c.byID[id] = m
}

// clear is what is left when all members are gone.
func (c *classic) clear(generation int32) {
	c.state = Empty
	c.generation = generation
	c.protocol, c.protocolType, c.leader = "", "", ""
	c.members = nil
	clear(c.byID)
	clear(c.instance)
	c.initial, c.newcomers, c.syncDeadlineMs = false, false, 0
}

// supports says whether a member with these protocols can be in the group. self
// is the member that brings them, nil for a new one: what it supported before
// does not bind it.
func (c *classic) supports(protocolType string, protocols []protocol, self *member) bool {
	if protocolType == "" || len(protocols) == 0 {
		return false
	}
	others := len(c.members)
	if self != nil {
		others--
	}
	if others == 0 {
		return true
	}
	if protocolType != c.protocolType {
		return false
	}
	return slices.ContainsFunc(protocols, func(p protocol) bool {
		for _, m := range c.members {
			if m != self && !m.supports(p.name) {
				return false
			}
		}
		return true
	})
}

// vote chooses the protocol of a generation: among those that all members
// support, every member votes for the one it prefers; a tie goes to the one that
// was voted for first. It is "" when there is none in common, which supports
// does not let happen.
func (c *classic) vote() string {
	type ballot struct {
		name  string
		votes int
	}
	var ballots []ballot
	for _, m := range c.members {
		for _, p := range m.protocols {
			if !c.common(p.name) {
				continue
			}
			i := slices.IndexFunc(ballots, func(b ballot) bool { return b.name == p.name })
			if i < 0 {
				i = len(ballots)
				ballots = append(ballots, ballot{name: p.name})
			}
			ballots[i].votes++
			break
		}
	}
	var best ballot
	for _, b := range ballots {
		if b.votes > best.votes {
			best = b
		}
	}
	return best.name
}

func (c *classic) common(name string) bool {
	for _, m := range c.members {
		if !m.supports(name) {
			return false
		}
	}
	return true
}

// rebalanceMs is the time that members have to join: the longest of theirs.
func (c *classic) rebalanceMs() int64 {
	var longest int64
	for _, m := range c.members {
		longest = max(longest, m.rebalanceMs)
	}
	return longest
}

// joined counts the members that wait for their JoinGroup answer.
func (c *classic) joined() (n int) {
	for _, m := range c.members {
		if m.joining != 0 {
			n++
		}
	}
	return n
}

// complete says whether nobody is missing any more.
func (c *classic) complete() bool {
	return len(c.pending) == 0 && c.joined() == len(c.members)
}

// electJoined makes sure that the leader is a member that joined. It is false
// when nobody did.
func (c *classic) electJoined() bool {
	if m := c.byID[c.leader]; m != nil && m.joining != 0 {
		return true
	}
	for _, m := range c.members {
		if m.joining != 0 {
			c.leader = m.id
			return true
		}
	}
	return false
}

// room says whether a member may join a group of at most max members, 0 for no
// bound. known is the member itself if it is one already. Unlike in Kafka, where a
// newcomer may take the place of a member that has not joined again yet, members
// come first.
func (c *classic) room(max int, known *member) bool {
	return max == 0 || known != nil || len(c.members) < max
}

// allSynced says whether every member asked for its assignment.
func (c *classic) allSynced() bool {
	for _, m := range c.members {
		if !m.synced {
			return false
		}
	}
	return true
}

// deadline is the next time at which something is due. Heartbeats move members'
// deadlines only further away, so it may be taken late, never too early.
func (c *classic) deadline() (ms int64, ok bool) {
	least := func(at int64) {
		if !ok || at < ms {
			ms, ok = at, true
		}
	}
	for _, m := range c.members {
		if m.expires() {
			least(m.deadlineMs)
		}
	}
	for _, at := range c.pending {
		least(at)
	}
	if c.state == PreparingRebalance {
		least(c.joinDeadlineMs)
	}
	if c.syncDeadlineMs != 0 {
		least(c.syncDeadlineMs)
	}
	return ms, ok
}
