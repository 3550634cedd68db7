package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/coord"
)

// retryMs is how long a change that nobody asked for (a group whose last member
// expired) waits after its record could not be appended.
const retryMs = 1000

// Machine keeps the groups of one partition of `__consumer_offsets`. It is not
// safe for concurrent use: its shard's lock owns it. It implements
// [coord.Machine], [coord.Loader] and [coord.Forgetter].
//
// The output of a handler is valid until the next call of a handler or of Tick:
// its records and replies lie in buffers that are used again.
type Machine struct {
	options Options
	// newID gives the random part of member ids.
	newID  func() string
	groups map[string]*group
	// open finds the groups in which a producer has offsets of an open transaction.
	open map[int64]map[*group]struct{}
	// foreign holds the records of other kinds of groups by key.
	foreign map[string][]byte
	// topics holds each topic name once.
	topics map[string]string

	deadlines     deadlines
	verifications verifications
	retention     retention
	loaded        bool

	// One handler's work. step counts them, so that what a handler staged is known
	// to be old when its records were never replayed.
	step    uint64
	nowMs   int64
	out     coord.Output
	records []coord.Record
	replies []coord.Reply
	arena   []byte
}

// New makes an empty machine. newID must give another string at every call, also
// after a restart and in other machines; it is part of member ids. Options must
// be valid.
func New(o Options, newID func() string) *Machine {
	return &Machine{
		options: o.withDefaults(),
		newID:   newID,
		groups:  map[string]*group{},
		open:    map[int64]map[*group]struct{}{},
		foreign: map[string][]byte{},
		topics:  map[string]string{},
	}
}

// begin starts the work of one handler.
func (m *Machine) begin(nowMs int64) {
	m.step++
	m.nowMs = nowMs
	m.records = m.records[:0]
	m.replies = m.replies[:0]
	m.arena = m.arena[:0]
	m.out = coord.Output{}
}

// end closes it.
func (m *Machine) end() coord.Output {
	m.out.Records, m.out.Replies = m.records, m.replies
	return m.out
}

func (m *Machine) reply(to coord.Token, response any) {
	if to != 0 {
		m.replies = append(m.replies, coord.Reply{To: to, Response: response})
	}
}

// create makes a group that nothing is known of yet.
func (m *Machine) create(id string) *group {
	g := &group{id: id, wakeIndex: -1}
	m.groups[id] = g
	return g
}

// running gives the group's soft state, a new one if it has none.
func (m *Machine) running(g *group) *classic {
	if g.live == nil {
		g.live = newClassic(g.generation())
	}
	return g.live
}

// settle drops what is not needed of a group any more, and puts it in its place
// among the deadlines.
func (m *Machine) settle(g *group) {
	if l := g.live; l != nil && len(l.members) == 0 && len(l.pending) == 0 {
		g.live = nil
	}
	if g.live == nil {
		m.deadlines.set(g, 0, false)
		if g.bare() {
			delete(m.groups, g.id)
		}
		return
	}
	ms, ok := g.live.deadline()
	m.deadlines.set(g, max(ms, g.retryMs), ok)
}

// write adds a group's metadata to the output. then, if not nil, is the change of
// soft state that goes with it.
func (m *Machine) write(g *group, v *kmsg.GroupMetadataValue, then func()) {
	m.records = append(m.records, coord.Record{
		Key:   appendMetadataKey(nil, g.id),
		Value: v.AppendTo(nil),
	})
	if then == nil {
		then = func() {}
	}
	g.staged, g.stagedAt = then, m.step
}

// writeOffset adds a committed offset to the output, nil for a tombstone.
func (m *Machine) writeOffset(g string, p partition, c *committed) {
	at := len(m.arena)
	m.arena = appendOffsetKey(m.arena, g, p)
	key := m.arena[at:len(m.arena):len(m.arena)]
	var value []byte
	if c != nil {
		at = len(m.arena)
		m.arena = appendOffsetValue(m.arena, c)
		value = m.arena[at:len(m.arena):len(m.arena)]
	}
	m.records = append(m.records, coord.Record{Key: key, Value: value})
}

// check finds what is wrong with a member that speaks for a group: its instance
// belongs to another member now, or it is none.
func check(g *group, id string, instance *string) (*member, int16) {
	if g.live == nil {
		return nil, kerr.UnknownMemberID.Code
	}
	if instance != nil {
		holder := g.live.instance[*instance]
		if holder == nil {
			return nil, kerr.UnknownMemberID.Code
		}
		if holder.id != id {
			return nil, kerr.FencedInstanceID.Code
		}
	}
	if m := g.live.byID[id]; m != nil {
		return m, 0
	}
	return nil, kerr.UnknownMemberID.Code
}
