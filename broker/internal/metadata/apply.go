package metadata

import (
	"fmt"
	"maps"
)

// Empty is the image of a cluster of which nothing is known.
func Empty(clusterID string, nodeID int32) *Image {
	return &Image{
		ClusterID: clusterID, NodeID: nodeID,
		Features: map[string]int16{},
		byName:   map[string]*Topic{}, byID: map[ID]*Topic{}, removed: map[ID]struct{}{},
		brokers: map[string]map[string]string{},
	}
}

// Apply returns the image after the changes, which stand in the log up to but
// not including offset next. It is the only way an image comes about, for a
// live change as for the replay at start, so both give the same. A change that
// does not fit the image, such as a partition of an unknown topic, is an error:
// the log is damaged or was written by somebody else.
func (im *Image) Apply(next int64, changes []Change) (*Image, error) {
	out := im.clone()
	out.Offset = next
	own := map[ID]bool{} // topics that this call has already copied
	edit := func(id ID) *Topic {
		t := out.byID[id]
		if t == nil || own[id] {
			return t
		}
		c := *t
		c.Partitions = append([]Partition(nil), t.Partitions...)
		c.Config = maps.Clone(t.Config)
		own[id] = true
		out.byID[id], out.byName[c.Name] = &c, &c
		return &c
	}
	for _, c := range changes {
		if err := out.apply(c, own, edit); err != nil {
			return nil, fmt.Errorf("metadata log before offset %d: %w", next, err)
		}
	}
	out.sortNames()
	return out, nil
}

func (im *Image) apply(c Change, own map[ID]bool, edit func(ID) *Topic) error {
	switch c := c.(type) {
	case TopicChange:
		if im.byName[c.Name] != nil || im.byID[c.ID] != nil {
			return fmt.Errorf("topic %q (id %x) exists already", c.Name, c.ID)
		}
		t := &Topic{Name: c.Name, ID: c.ID, Internal: IsInternal(c.Name)}
		im.byName[c.Name], im.byID[c.ID] = t, t
		own[c.ID] = true
	case PartitionChange:
		return applyPartition(edit(c.TopicID), c)
	case ConfigChange:
		t := im.byName[c.Topic]
		if t == nil {
			return fmt.Errorf("configuration %s of topic %q, which does not exist", c.Name, c.Topic)
		}
		t = edit(t.ID)
		if c.Value == nil {
			delete(t.Config, c.Name)
			return nil
		}
		if t.Config == nil {
			t.Config = map[string]string{}
		}
		t.Config[c.Name] = *c.Value
	case BrokerConfigChange:
		config := maps.Clone(im.brokers[c.Broker])
		if c.Value == nil {
			delete(config, c.Name)
		} else {
			if config == nil {
				config = map[string]string{}
			}
			config[c.Name] = *c.Value
		}
		im.brokers[c.Broker] = config
	case RemoveTopicChange:
		t := im.byID[c.ID]
		if t == nil {
			return fmt.Errorf("removal of topic id %x, which does not exist", c.ID)
		}
		delete(im.byID, c.ID)
		delete(im.byName, t.Name)
		im.removed[c.ID] = struct{}{}
	case FeatureChange:
		im.Features[c.Name] = c.Level
	case ProducerIDsChange:
		if c.Next < im.NextProducerID {
			return fmt.Errorf("producer ids go back from %d to %d", im.NextProducerID, c.Next)
		}
		im.NextProducerID = c.Next
	}
	return nil
}

func applyPartition(t *Topic, c PartitionChange) error {
	if t == nil {
		return fmt.Errorf("partition %d of topic id %x, which does not exist", c.Partition, c.TopicID)
	}
	p := Partition{Leader: c.Leader, LeaderEpoch: c.LeaderEpoch, Epoch: c.Epoch}
	switch n := int32(len(t.Partitions)); {
	case c.Partition == n:
		t.Partitions = append(t.Partitions, p)
	case c.Partition >= 0 && c.Partition < n:
		t.Partitions[c.Partition] = p
	default:
		return fmt.Errorf("partition %d of topic %q, which has %d", c.Partition, t.Name, n)
	}
	return nil
}

// The topics that only the broker itself writes.
const (
	OffsetsTopic      = "__consumer_offsets"
	TransactionsTopic = "__transaction_state"
	// LogTopic is the metadata log itself. It is in no image.
	LogTopic = "__cluster_metadata"
)

// TransactionVersion is the feature that decides which transaction protocol clients
// use.
const TransactionVersion = "transaction.version"

// IsInternal says whether a topic of that name belongs to the broker.
func IsInternal(name string) bool {
	return name == OffsetsTopic || name == TransactionsTopic || name == LogTopic
}
