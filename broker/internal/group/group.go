package group

import "github.com/twmb/franz-go/pkg/kmsg"

// group is everything under one group id.
type group struct {
	id string

	// Durable state, changed by replay only.

	// record is the last GroupMetadata record, nil for none: a group that only
	// commits offsets has none. It is never changed.
	record *kmsg.GroupMetadataValue
	// offsets are the committed ones.
	offsets map[partition]committed
	// open are the offsets of open transactions by producer id.
	open map[int64]map[partition]committed

	// Soft state.

	// live is nil while there are neither members nor pending members.
	live *classic
	// staged runs when the record of step stagedAt is replayed.
	staged   func()
	stagedAt uint64
	// retryMs holds back what is due when its record could not be appended.
	retryMs int64
	// wakeMs and wakeIndex are the group's place among the deadlines; index -1
	// when it has none.
	wakeMs    int64
	wakeIndex int
}

// state is what the protocol is in.
func (g *group) state() State {
	if g.live == nil {
		return Empty
	}
	return g.live.state
}

// generation goes on where the last record ended.
func (g *group) generation() int32 {
	switch {
	case g.live != nil:
		return g.live.generation
	case g.record != nil:
		return g.record.Generation
	}
	return 0
}

// bare says that nothing durable is known of the group.
func (g *group) bare() bool {
	return g.record == nil && len(g.offsets) == 0 && len(g.open) == 0
}

// unstable says whether an open transaction has an offset for p.
func (g *group) unstable(p partition, id ID) bool {
	for _, offsets := range g.open {
		if c, ok := offsets[p]; ok && c.of(id) {
			return true
		}
	}
	return false
}

// wanted are the topics that the members subscribe to. One whose subscription does not parse asks for nothing; then known is
// false.
func (g *group) wanted() (topics map[string]bool, known bool) {
	topics, known = map[string]bool{}, true
	if g.live == nil {
		return topics, known
	}
	for _, o := range g.live.members {
		for _, p := range o.protocols {
			of, ok := subscribed(p.metadata)
			known = known && ok
			for _, t := range of {
				topics[t] = true
			}
		}
	}
	return topics, known
}

// protocolType is that of the members, of the last ones if there are none now.
func (g *group) protocolType() string {
	switch {
	case g.live != nil && len(g.live.members) > 0:
		return g.live.protocolType
	case g.record != nil:
		return g.record.ProtocolType
	}
	return ""
}
