package inspect

import (
	"errors"
	"slices"

	"github.com/millrace/millrace/broker/inspect/internal/schema"
	"github.com/millrace/millrace/broker/internal/coord"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/txn/coordinator"
)

// coordinatorCheck checks the records that brokers write for themselves: every one can be read, stands in the partition that its
// key belongs to, and follows the one before it as the state machine allows. Where compaction has been, or where the log does not
// begin at 0, the one before may be gone, and only what each record says for itself is checked.
type coordinatorCheck struct {
	c       *ground
	on      bool
	ids     map[string]txnState
	groups  map[string]int64 // generations
	cluster *Cluster         // of the metadata log, as of the last record
	unknown map[string]bool  // topics that offsets were committed for and that do not exist
}

// txnState is the last that the log says of a transactional id.
type txnState struct {
	state coordinator.State
	pid   int64
	epoch int64
}

// absent stands for an id that the log did not name yet.
const absent coordinator.State = -1

func newCoordinatorCheck(c *ground) coordinatorCheck {
	return coordinatorCheck{
		c: c, on: decodes(c.p.Topic), ids: map[string]txnState{}, groups: map[string]int64{}, cluster: emptyCluster(), unknown: map[string]bool{},
	}
}

// whole tells whether everything that came before in this log was seen.
func (x *coordinatorCheck) whole() bool {
	c := x.c
	return c.p.logs[0] == 0 && !c.thinned && !c.broken && len(c.gaps) == 0 && len(c.p.offsets(quorumSuffix)) <= 1
}

func (x *coordinatorCheck) record(name string, pos int64, b record.Batch, r *record.Record) {
	if !x.on || b.Attributes().Control() {
		return
	}
	say := func(s Severity, format string, args ...any) { x.c.find(s, name, pos, r.Offset, format, args...) }
	d, err := Decode(x.c.p.Topic, r.Key, r.Value)
	switch {
	case errors.Is(err, ErrUnknownType):
		say(Note, "%v", err)
	case err != nil:
		say(Damage, "the record can not be decoded: %v", err)
	case x.c.p.Topic == metadataTopic:
		x.metadata(d.Value, say)
	default:
		x.keyed(d, say)
	}
}

type sayer func(s Severity, format string, args ...any)

// keyed checks a record of a coordinator.
func (x *coordinatorCheck) keyed(d *Decoded, say sayer) {
	owner := ""
	for _, field := range []string{"transactional_id", "group", "group_id"} {
		if v, ok := d.Key.Data.Get(field).(string); ok {
			owner = v
		}
	}
	if n := x.c.partitions; n > 0 && x.c.p.Topic != shareTopic {
		if want := coord.PartitionFor(owner, n); want != x.c.p.Index {
			say(Damage, "%q belongs to partition %d of %d", owner, want, n)
		}
	}
	switch d.Key.Type {
	case "TransactionLogKey":
		x.transaction(owner, d.Value, say)
	case "GroupMetadataKey":
		x.group(owner, d.Value, say)
	case "OffsetCommitKey", "LegacyOffsetCommitKey":
		x.offset(owner, d, say)
	}
}

func (x *coordinatorCheck) transaction(id string, v *Message, say sayer) {
	prev, ok := x.ids[id]
	if !ok {
		prev.state = absent
	}
	if v == nil {
		if x.whole() && !coordinator.Dead.Follows(prev.state) && prev.state != absent {
			say(Damage, "transactional id %q was forgotten in state %v", id, prev.state)
		}
		delete(x.ids, id)
		return
	}
	next := txnState{coordinator.State(v.Int("_transaction_status")), v.Int("producer_id"), v.Int("producer_epoch")}
	if _, named := v.Data.Get("transaction_status").(string); !named {
		say(Damage, "transactional id %q is in state %d, which there is none of", id, v.Int("transaction_status"))
		return
	}
	if e, ok := v.Data.Get("next_producer_epoch").(int64); ok && e >= 0 && next.state == coordinator.Ongoing {
		next.state = coordinator.Kept
	}
	if x.whole() {
		if !next.state.Follows(prev.state) {
			say(Damage, "transactional id %q goes from %v to %v", id, prev.state, next.state)
		}
		if next.pid == prev.pid && next.epoch < prev.epoch {
			say(Damage, "transactional id %q: the epoch of producer %d goes back from %d to %d", id, next.pid, prev.epoch, next.epoch)
		}
	}
	if cl := x.c.d.Cluster; cl != nil && cl.NextProducerID > 0 && next.pid >= cl.NextProducerID {
		say(Damage, "transactional id %q has producer id %d, the first that was not given out is %d", id, next.pid, cl.NextProducerID)
	}
	x.ids[id] = next
}

func (x *coordinatorCheck) group(id string, v *Message, say sayer) {
	if v == nil {
		delete(x.groups, id)
		return
	}
	generation := v.Int("generation")
	if prev, ok := x.groups[id]; ok && x.whole() && generation < prev {
		say(Damage, "group %q: the generation goes back from %d to %d", id, prev, generation)
	}
	x.groups[id] = generation
	members, _ := v.Data.Get("members").([]any)
	leader, named := v.Data.Get("leader").(string)
	if !named || len(members) == 0 {
		return
	}
	if !slices.ContainsFunc(members, func(m any) bool {
		s, _ := m.(schema.Struct)
		return s.Text("member_id") == leader
	}) {
		say(Damage, "group %q: the leader %q is none of its %d members", id, leader, len(members))
	}
}

// offset looks whether the topic of a committed offset exists. Such offsets are hidden from clients, and go by and by.
func (x *coordinatorCheck) offset(group string, d *Decoded, say sayer) {
	cl := x.c.d.Cluster
	if d.Value == nil || cl == nil {
		return
	}
	topic := d.Key.Text("topic")
	id, tagged := d.Value.Data.Get("topic_id").(string)
	if t := cl.Topics[topic]; t != nil && (!tagged || t.ID == uuid(id) || uuid(id) == [16]byte{}) {
		return
	}
	if key := topic + "/" + id; !x.unknown[key] {
		x.unknown[key] = true
		say(Note, "group %q committed an offset of topic %s %s, which does not exist any more", group, topic, id)
	}
}

// metadata checks a record of the metadata log against those before it.
func (x *coordinatorCheck) metadata(m *Message, say sayer) {
	if x.whole() {
		switch m.Type {
		case "TopicRecord":
			if x.cluster.Topics[m.Text("name")] != nil {
				say(Damage, "topic %s is there already", m.Text("name"))
			}
		case "PartitionRecord", "PartitionChangeRecord", "RemoveTopicRecord":
			if x.cluster.byID[uuid(m.Text("topic_id"))] == nil {
				say(Damage, "a %s of topic id %s, which there is none of", m.Type, m.Text("topic_id"))
			}
		case "ConfigRecord":
			if m.Int("resource_type") == topicResource && x.cluster.Topics[m.Text("resource_name")] == nil {
				say(Damage, "a setting of topic %s, which there is none of", m.Text("resource_name"))
			}
		case "ProducerIdsRecord":
			if next := m.Int("next_producer_id"); next < x.cluster.NextProducerID {
				say(Damage, "producer ids go back from %d to %d", x.cluster.NextProducerID, next)
			}
		}
	}
	x.cluster.apply(m)
}
