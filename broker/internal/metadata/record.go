package metadata

// Change is one metadata record. The closed set is TopicChange, PartitionChange,
// ConfigChange, BrokerConfigChange, RemoveTopicChange, FeatureChange and
// ProducerIDsChange: the records of Kafka's metadata log that a single node needs,
// in Kafka's encoding.
type Change interface{ change() }

// TopicChange adds a topic (TopicRecord, type 2).
type TopicChange struct {
	Name string
	ID   ID
}

// PartitionChange adds a partition or changes its leader (PartitionRecord, type
// 3). Replicas and in-sync replicas are the leader alone on one node.
type PartitionChange struct {
	TopicID     ID
	Partition   int32
	Leader      int32
	LeaderEpoch int32
	Epoch       int32
}

// ConfigChange sets one configuration value of a topic, or removes it when Value
// is nil (ConfigRecord, type 4).
type ConfigChange struct {
	Topic string
	Name  string
	Value *string
}

// BrokerConfigChange sets one configuration value of a broker, named by its id, or of all brokers (AllBrokers), or removes it when
// Value is nil (ConfigRecord, type 4).
type BrokerConfigChange struct {
	Broker string
	Name   string
	Value  *string
}

// RemoveTopicChange deletes a topic (RemoveTopicRecord, type 9).
type RemoveTopicChange struct{ ID ID }

// FeatureChange finalizes a feature level (FeatureLevelRecord, type 12).
type FeatureChange struct {
	Name  string
	Level int16
}

// ProducerIDsChange hands out producer ids: all below Next are taken
// (ProducerIdsRecord, type 15).
type ProducerIDsChange struct {
	NodeID int32
	Next   int64
}

func (TopicChange) change()        {}
func (PartitionChange) change()    {}
func (ConfigChange) change()       {}
func (BrokerConfigChange) change() {}
func (RemoveTopicChange) change()  {}
func (FeatureChange) change()      {}
func (ProducerIDsChange) change()  {}
