package inspect

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"

	"github.com/millrace/millrace/core/record"
)

// Cluster is what a metadata log says: ours or that of Apache Kafka, whose records are the same.
type Cluster struct {
	Topics   map[string]*Topic // by name
	Features map[string]int16
	// NextProducerID is the first producer id that was not given out.
	NextProducerID int64
	// Others counts the records of types that are about something else, such as access rules and quotas, by the type's name.
	Others map[string]int

	byID    map[[16]byte]*Topic
	removed map[[16]byte]bool
}

// Topic is one topic of a cluster.
type Topic struct {
	Name       string
	ID         [16]byte
	Partitions map[int32]Replica
	Config     map[string]string
}

// Replica is what is known of a partition.
type Replica struct {
	Leader, LeaderEpoch, Epoch int32
}

// Names gives the topics' names, sorted.
func (c *Cluster) Names() []string { return slices.Sorted(maps.Keys(c.Topics)) }

func emptyCluster() *Cluster {
	return &Cluster{
		Topics: map[string]*Topic{}, Features: map[string]int16{}, Others: map[string]int{},
		byID: map[[16]byte]*Topic{}, removed: map[[16]byte]bool{},
	}
}

// readCluster replays a metadata log: its newest snapshot, if there is one, and the batches behind it.
func readCluster(p *Partition) (*Cluster, error) {
	c, from := emptyCluster(), int64(0)
	if snapshots := p.offsets(quorumSuffix); len(snapshots) > 0 {
		from = snapshots[len(snapshots)-1]
		name := ""
		for _, f := range p.files { // of several epochs at one offset the last name is the newest
			if offset, suffix, ok := parseName(f); ok && suffix == quorumSuffix && offset == from {
				name = f
			}
		}
		if err := c.replay(p, name, 0); err != nil {
			return nil, err
		}
	}
	for _, base := range p.logs {
		if err := c.replay(p, fileName(base, logSuffix), from); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// replay applies the records of one file from an offset on. It ends at the first batch that does not check.
func (c *Cluster) replay(p *Partition, name string, from int64) error {
	s, err := openScan(p.fs, p.path(name))
	if err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	defer s.close()
	var scratch record.Scratch
	for {
		b, _, err := s.next()
		if err != nil || b.CheckCRC() != nil {
			return nil // the end, or what a verification names
		}
		if b.LastOffset() < from || b.Attributes().Control() {
			continue
		}
		for r, err := range b.Records(&scratch) {
			if err != nil {
				return fmt.Errorf("inspect: %s: batch at offset %d: %w", p.path(name), b.BaseOffset(), err)
			}
			d, err := decodeFramed(r.Value)
			if err != nil {
				return fmt.Errorf("inspect: %s: offset %d: %w", p.path(name), r.Offset, err)
			}
			c.apply(d.Value)
		}
	}
}

// apply takes one record in. One that speaks of an unknown topic is passed over; verification names it.
func (c *Cluster) apply(m *Message) {
	switch m.Type {
	case "TopicRecord":
		t := &Topic{Name: m.Text("name"), ID: uuid(m.Text("topic_id")), Partitions: map[int32]Replica{}, Config: map[string]string{}}
		c.Topics[t.Name], c.byID[t.ID] = t, t
	case "RemoveTopicRecord":
		id := uuid(m.Text("topic_id"))
		if t := c.byID[id]; t != nil {
			delete(c.Topics, t.Name)
			delete(c.byID, id)
		}
		c.removed[id] = true
	case "PartitionRecord":
		if t := c.byID[uuid(m.Text("topic_id"))]; t != nil {
			t.Partitions[int32(m.Int("partition_id"))] = Replica{int32(m.Int("leader")), int32(m.Int("leader_epoch")), int32(m.Int("partition_epoch"))}
		}
	case "PartitionChangeRecord":
		c.changePartition(m)
	case "ConfigRecord":
		t := c.Topics[m.Text("resource_name")]
		if m.Int("resource_type") != topicResource || t == nil {
			c.Others["ConfigRecord"]++
		} else if v, ok := m.Data.Get("value").(string); ok {
			t.Config[m.Text("name")] = v
		} else {
			delete(t.Config, m.Text("name"))
		}
	case "FeatureLevelRecord":
		c.Features[m.Text("name")] = int16(m.Int("feature_level"))
	case "ProducerIdsRecord":
		c.NextProducerID = max(c.NextProducerID, m.Int("next_producer_id"))
	default:
		c.Others[m.Type]++
	}
}

// topicResource is the resource type of a topic in a ConfigRecord.
const topicResource = 2

// changePartition follows Kafka: a leader that is named, even the same one, begins a new leader epoch.
func (c *Cluster) changePartition(m *Message) {
	t := c.byID[uuid(m.Text("topic_id"))]
	if t == nil {
		return
	}
	r := t.Partitions[int32(m.Int("partition_id"))]
	if leader, ok := m.Data.Get("leader").(int64); ok && leader != noChange {
		r.Leader = int32(leader)
		r.LeaderEpoch++
	}
	r.Epoch++
	t.Partitions[int32(m.Int("partition_id"))] = r
}

// noChange is what a PartitionChangeRecord has in place of a leader when that stays.
const noChange = -2

// uuid reads an id in Kafka's text form; what is none is the zero id.
func uuid(text string) (id [16]byte) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil && len(raw) == len(id) {
		copy(id[:], raw)
	}
	return id
}

func uuidText(id [16]byte) string { return base64.RawURLEncoding.EncodeToString(id[:]) }
