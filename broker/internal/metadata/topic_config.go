package metadata

import (
	"math"
	"sort"
)

// ConfigType is the type of a configuration value, numbered as in the protocol
// (DescribeConfigs version 3).
type ConfigType int8

// The types that topic configurations have.
const (
	Boolean ConfigType = 1
	String  ConfigType = 2
	Int     ConfigType = 3
	Long    ConfigType = 5
	Double  ConfigType = 6
	List    ConfigType = 7
)

// kafkaName is what Kafka's messages call the type.
var kafkaName = map[ConfigType]string{
	Boolean: "BOOLEAN", String: "STRING", Int: "INT", Long: "LONG", Double: "DOUBLE", List: "LIST",
}

// ConfigKey is one topic configuration: Kafka's name, type, default and limits.
type ConfigKey struct {
	Name    string
	Type    ConfigType
	Default string
	// Synonym is the broker-level setting of the same meaning.
	Synonym string
	Doc     string
	// Min and Max bound numbers.
	Min, Max float64
	// OneOf lists the allowed words of a String or List.
	OneOf []string
	// Only lists the values that this broker can honour, where it can not honour
	// all that Kafka allows. Empty means all.
	Only []string
	// Hidden keys are accepted but not described, as Kafka's internal ones.
	Hidden bool
}

const (
	maxInt  = float64(math.MaxInt32)
	maxLong = float64(math.MaxInt64)
	longMax = "9223372036854775807"
)

// topicConfigs is the table of all topic configurations, by name. A value that
// would change where a record is kept or which replica may lead, and that this
// broker can not honour, is refused, so that nobody relies on it.
var topicConfigs = []ConfigKey{
	{Name: "cleanup.policy", Type: List, Default: "delete", OneOf: []string{"compact", "delete"}, Synonym: "log.cleanup.policy",
		Doc: "What may happen to old records: delete drops whole segments, compact keeps the last record of each key and asks every record for one; both may be given, and with neither all records stay."},
	{Name: "compression.gzip.level", Type: Int, Default: "-1", Synonym: "compression.gzip.level", Min: -1, Max: 9, Doc: "Level for gzip where the broker compresses; a fast one where nobody sets it."},
	{Name: "compression.lz4.level", Type: Int, Default: "9", Synonym: "compression.lz4.level", Min: 1, Max: 17, Doc: "Level for lz4 where the broker compresses; a fast one where nobody sets it."},
	{Name: "compression.type", Type: String, Default: "producer", Synonym: "compression.type",
		OneOf: []string{"uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"},
		Doc:   "Codec of the stored batches; producer keeps each batch as it was sent."},
	{Name: "compression.zstd.level", Type: Int, Default: "3", Synonym: "compression.zstd.level", Min: -131072, Max: 22, Doc: "Level for zstd where the broker compresses; a fast one where nobody sets it."},
	{Name: "delete.retention.ms", Type: Long, Default: "86400000", Max: maxLong, Synonym: "log.cleaner.delete.retention.ms",
		Doc: "How long tombstones of a compacted topic, and markers of its transactions, stay readable after the first compaction that saw them."},
	{Name: "file.delete.delay.ms", Type: Long, Default: "60000", Max: maxLong, Synonym: "log.segment.delete.delay.ms",
		Doc: "How long the files of a deleted segment stay on disk, renamed."},
	{Name: "flush.messages", Type: Long, Default: longMax, Min: 1, Max: maxLong, Synonym: "log.flush.interval.messages",
		Doc: "Under the durabilities interval and os, how many records may not be synced yet: an acknowledgement that would make them as many waits for the sync. Under fsync every acknowledgement waits."},
	{Name: "flush.ms", Type: Long, Default: longMax, Max: maxLong, Synonym: "log.flush.interval.ms",
		Doc: "Under the durabilities interval and os, how long a record may lie unsynced before a sync is asked for; 1000 under interval where nothing is set. Under fsync every acknowledgement waits for its sync."},
	{Name: "follower.replication.throttled.replicas", Type: List, Default: "", Doc: "Replicas whose follower side is throttled."},
	{Name: "index.interval.bytes", Type: Int, Default: "4096", Max: maxInt, Synonym: "log.index.interval.bytes",
		Doc: "Bytes of the log between two index entries."},
	{Name: "internal.segment.bytes", Type: Int, Default: "1073741824", Min: 14, Max: maxInt, Hidden: true,
		Doc: "segment.bytes without its lower limit, for tests."},
	{Name: "leader.replication.throttled.replicas", Type: List, Default: "", Doc: "Replicas whose leader side is throttled."},
	{Name: "local.retention.bytes", Type: Long, Default: "-2", Min: -2, Max: maxLong, Synonym: "log.local.retention.bytes",
		Doc: "Size of the local part of a tiered partition."},
	{Name: "local.retention.ms", Type: Long, Default: "-2", Min: -2, Max: maxLong, Synonym: "log.local.retention.ms",
		Doc: "Age of the local part of a tiered partition."},
	{Name: "max.compaction.lag.ms", Type: Long, Default: longMax, Min: 1, Max: maxLong, Synonym: "log.cleaner.max.compaction.lag.ms",
		Doc: "How long a record may stay uncompacted, whatever the dirty ratio; it also ends segments."},
	{Name: "max.message.bytes", Type: Int, Default: "1048588", Max: maxInt, Synonym: "message.max.bytes",
		Doc: "Largest batch, as it was sent."},
	{Name: "message.timestamp.after.max.ms", Type: Long, Default: "3600000", Max: maxLong, Synonym: "log.message.timestamp.after.max.ms",
		Doc: "How far a record's time may lie ahead of the broker's clock."},
	{Name: "message.timestamp.before.max.ms", Type: Long, Default: longMax, Max: maxLong, Synonym: "log.message.timestamp.before.max.ms",
		Doc: "How far a record's time may lie behind the broker's clock."},
	{Name: "message.timestamp.type", Type: String, Default: "CreateTime", OneOf: []string{"CreateTime", "LogAppendTime"},
		Synonym: "log.message.timestamp.type", Doc: "Whether records keep the producer's time or get the broker's."},
	{Name: Durability, Type: String, Default: DurabilityFsync, OneOf: []string{DurabilityFsync, DurabilityInterval, DurabilityOS}, Synonym: Durability,
		Doc: "What an acknowledgement waits for: fsync waits until the disk has the record; interval and os wait until the kernel has it, and interval asks for a sync every flush.ms. What each may lose is in docs/durability.md. Transactions and the broker's own topics are synced in every durability."},
	{Name: "min.cleanable.dirty.ratio", Type: Double, Default: "0.5", Max: 1, Synonym: "log.cleaner.min.cleanable.ratio",
		Doc: "Share of the log that must be uncompacted before it is compacted."},
	{Name: "min.compaction.lag.ms", Type: Long, Default: "0", Max: maxLong, Synonym: "log.cleaner.min.compaction.lag.ms",
		Doc: "How long a record is not compacted at least."},
	{Name: "min.insync.replicas", Type: Int, Default: "1", Min: 1, Max: maxInt, Synonym: "min.insync.replicas",
		Doc: "Replicas that must have a record before acks=all is answered; this node is the only one, so above 1 acks=all is refused."},
	{Name: "preallocate", Type: Boolean, Default: "false", Synonym: "log.preallocate", Doc: "Whether segment files are allocated whole; this broker lets them grow."},
	{Name: "remote.log.copy.disable", Type: Boolean, Default: "false", Doc: "Whether a tiered topic stops copying."},
	{Name: "remote.log.delete.on.disable", Type: Boolean, Default: "false", Doc: "Whether tiered data goes when tiering is turned off."},
	{Name: "remote.storage.enable", Type: Boolean, Default: "false", Only: []string{"false"}, Doc: "Tiered storage."},
	{Name: "retention.bytes", Type: Long, Default: "-1", Min: -maxLong, Max: maxLong, Synonym: "log.retention.bytes",
		Doc: "Size of a partition beyond which old segments go; -1 is no limit."},
	{Name: "retention.ms", Type: Long, Default: "604800000", Min: -1, Max: maxLong, Synonym: "log.retention.ms",
		Doc: "Age beyond which old segments go, by their records' times and by their last append; -1 is no limit."},
	{Name: "segment.bytes", Type: Int, Default: "1073741824", Min: 1 << 20, Max: maxInt, Synonym: "log.segment.bytes",
		Doc: "Size of a segment file."},
	{Name: "segment.index.bytes", Type: Int, Default: "10485760", Min: 4, Max: maxInt, Synonym: "log.index.size.max.bytes",
		Doc: "Largest size of a segment's index."},
	{Name: "segment.jitter.ms", Type: Long, Default: "0", Max: maxLong, Synonym: "log.roll.jitter.ms",
		Doc: "Most that is taken off segment.ms, another part of it for each segment, so that not all are closed at once."},
	{Name: "segment.ms", Type: Long, Default: "604800000", Min: 1, Max: maxLong, Synonym: "log.roll.ms",
		Doc: "Age at which a segment is closed, also when nothing is appended any more."},
	{Name: "unclean.leader.election.enable", Type: Boolean, Default: "false", Only: []string{"false"},
		Synonym: "unclean.leader.election.enable", Doc: "Whether a replica without all records may lead."},
}

// TopicConfigs returns the table, sorted by name. Callers must not change it.
func TopicConfigs() []ConfigKey { return topicConfigs }

// TopicConfig returns one key of the table, nil if there is none.
func TopicConfig(name string) *ConfigKey {
	i := sort.Search(len(topicConfigs), func(i int) bool { return topicConfigs[i].Name >= name })
	if i < len(topicConfigs) && topicConfigs[i].Name == name {
		return &topicConfigs[i]
	}
	return nil
}

// BrokerConfig returns the key that a broker-level name stands for, nil if there is none.
func BrokerConfig(name string) *ConfigKey {
	for i := range topicConfigs {
		if k := &topicConfigs[i]; k.Synonym == name && name != "" {
			return k
		}
	}
	return nil
}
