// Package metadata owns what the cluster knows of itself: topics, their
// partitions and configurations, finalized features and the producer ids given
// out so far.
//
// Every change is a record of the partition __cluster_metadata-0, in Kafka's own
// record types and encoding (TopicRecord, PartitionRecord, ConfigRecord,
// RemoveTopicRecord, FeatureLevelRecord, ProducerIdsRecord), so Kafka's dump
// tool reads the log. Records are applied to an immutable Image, which is
// published through an atomic pointer. Invariants:
//
//   - The image is a function of the log: a live change and the replay at start
//     go through the same Apply, so state(live) == state(replayed).
//   - A published image is durable. A client is never told of a topic that a
//     power cut takes back, and no record is ever acknowledged for such a topic.
//   - Changes are validated against the image after all earlier changes, durable
//     or not, and answered in log order. Of a hundred concurrent creations of one
//     topic one succeeds, and the others hear so only when it is durable.
//
// Store.Change never blocks; one goroutine publishes.
package metadata
