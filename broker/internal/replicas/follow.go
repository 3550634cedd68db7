package replicas

import (
	"maps"
	"strconv"

	"github.com/millrace/millrace/broker/internal/metadata"
	"github.com/millrace/millrace/broker/internal/partition"
)

// topic makes what lookups find of a topic, without its partitions.
func (m *Manager) topic(mt *metadata.Topic, im *metadata.Image) *Topic {
	s := im.Settings(mt, m.o.Static)
	config := logConfig(s, mt).WithDefaults()
	return &Topic{
		Name: mt.Name, ID: mt.ID, Internal: mt.Internal,
		Codec: storedCodec(s), Level: codecLevel(s), MaxMessageBytes: config.MaxMessageBytes, MinInSync: minInSync(s),
		config: config, replicas: make([]*replica, len(mt.Partitions)),
	}
}

// same tells whether nothing of a topic has changed between two images. Topics of an image are never changed, so the pointer says it;
// what it takes over from the brokers may be another.
func (m *Manager) same(mt *metadata.Topic, before, next *metadata.Image) bool {
	if before == nil || before.TopicByID(mt.ID) != mt {
		return false
	}
	for _, broker := range []string{metadata.AllBrokers, strconv.Itoa(int(next.NodeID))} {
		if !maps.Equal(before.Broker(broker), next.Broker(broker)) {
			return false
		}
	}
	return true
}

// follow takes a topic's new settings and leader epochs into its open partitions. The lock is held.
func (m *Manager) follow(t, old *Topic, mt *metadata.Topic) {
	for i, r := range old.replicas {
		p := r.open()
		if p == nil {
			continue
		}
		if t.config != old.config {
			p.Reconfigure(t.config)
		}
		if epoch := mt.Partitions[i].LeaderEpoch; epoch > p.Marks().LeaderEpoch {
			p.BecomeLeader(partition.Leader{Epoch: epoch})
		}
	}
}

// Relaxed gives the partitions that acknowledge what is not synced, for the changes that raise their leader epochs: after a start that
// followed no clean stop they may have lost what clients have seen, and clients find that out by the epoch (KIP-320).
func (m *Manager) Relaxed(im *metadata.Image) (changes []metadata.Change) {
	t := m.table.Load()
	for _, name := range im.Names() {
		mt, one := im.Topic(name), t.byName[name]
		if one == nil || !one.config.Relaxed {
			continue
		}
		for i, p := range mt.Partitions {
			changes = append(changes, metadata.PartitionChange{
				TopicID: mt.ID, Partition: int32(i), Leader: p.Leader, LeaderEpoch: p.LeaderEpoch + 1, Epoch: p.Epoch + 1,
			})
		}
	}
	return changes
}

// Offline gives the partitions that can not be served, by name, and why: they could not be opened, or went offline since.
func (m *Manager) Offline() map[string]error {
	out := map[string]error{}
	for name, t := range m.table.Load().byName {
		for i, r := range t.replicas {
			err := r.state.Load().err
			if p := r.open(); p != nil {
				err = p.Failure()
			}
			if err != nil {
				out[Folder(name, int32(i))] = err
			}
		}
	}
	return out
}
