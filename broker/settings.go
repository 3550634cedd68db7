package broker

import (
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/api"
	"github.com/millrace/millrace/broker/internal/metadata"
)

const (
	maxPartitionsPerRequest = 10_000
	fetchMaxBytes           = 55 << 20
)

// apiConfig is the handlers' part of the configuration.
func (b *Broker) apiConfig(nodeID int32) api.Config {
	c := &b.config
	setting := func(name, value string, kind kmsg.ConfigType, doc string) api.Setting {
		return api.Setting{Name: name, Value: value, Type: kind, Doc: doc}
	}
	ms := func(name string, d interface{ Milliseconds() int64 }, doc string) api.Setting {
		return setting(name, strconv.FormatInt(d.Milliseconds(), 10), kmsg.ConfigTypeInt, doc)
	}
	integer := func(name string, v int64, doc string) api.Setting {
		return setting(name, strconv.FormatInt(v, 10), kmsg.ConfigTypeInt, doc)
	}
	return api.Config{
		NodeID:                  nodeID,
		AutoCreateTopics:        !c.NoAutoCreate,
		DefaultPartitions:       c.DefaultPartitions,
		MaxPartitionsPerRequest: maxPartitionsPerRequest,
		FetchMaxBytes:           fetchMaxBytes,
		Static:                  c.static(),
		Settings: []api.Setting{
			setting("auto.create.topics.enable", strconv.FormatBool(!c.NoAutoCreate), kmsg.ConfigTypeBoolean,
				"Whether a missing topic is created when a client asks for it."),
			integer("default.replication.factor", 1, "Replicas of a topic whose creator does not say."),
			integer("fetch.max.bytes", fetchMaxBytes, "Largest answer to a fetch."),
			ms("group.initial.rebalance.delay.ms", max(c.GroupInitialRebalanceDelay, 0), "Wait of an empty group for more members."),
			ms("group.max.session.timeout.ms", c.GroupMaxSessionTimeout, "Longest session timeout of a member."),
			ms("group.min.session.timeout.ms", c.GroupMinSessionTimeout, "Shortest session timeout of a member."),
			setting("log.dirs", c.Dir, kmsg.ConfigTypeString, "The data folder; empty when everything is in memory."),
			ms("log.cleaner.backoff.ms", c.CompactionInterval, "How often compaction looks for topics that are dirty enough."),
			ms("log.retention.check.interval.ms", c.RetentionCheckInterval, "How often retention looks for old segments."),
			integer("node.id", int64(nodeID), "Id of this broker."),
			integer("num.partitions", int64(c.DefaultPartitions), "Partitions of a topic whose creator does not say."),
			ms("offsets.retention.check.interval.ms", c.OffsetsRetentionCheckInterval, "How often it is looked for committed offsets that nobody needs any more."),
			integer("offsets.retention.minutes", int64((c.OffsetsRetention+time.Minute-1)/time.Minute), "How long such offsets are kept, after the last member of their group or after their commit."),
			ms("producer.id.expiration.ms", c.ProducerIDExpiration, "How long a partition remembers a quiet producer."),
			ms("transaction.max.timeout.ms", c.TransactionMaxTimeout, "Longest timeout of a transaction."),
			ms("transaction.remove.expired.transaction.cleanup.interval.ms", c.TransactionalIDSweepInterval, "How far apart the times are at which transactional ids are forgotten."),
			setting("transaction.two.phase.commit.enable", strconv.FormatBool(c.TransactionTwoPhaseCommit), kmsg.ConfigTypeBoolean,
				"Whether producers may take part in two-phase commits, with transactions that have no timeout."),
			ms("transactional.id.expiration.ms", c.TransactionalIDExpiration, "How long a transactional id at rest is remembered."),
		},
	}
}

// static is what the broker was started with of what topics take over. Without a FlushInterval the durability has a say in it.
func (c *Config) static() metadata.Static {
	s := metadata.Static{}
	if c.Durability != metadata.TopicConfig(metadata.Durability).Default {
		s[metadata.Durability] = c.Durability
	}
	if c.FlushInterval > 0 {
		s[metadata.TopicConfig(metadata.FlushMs).Synonym] = strconv.FormatInt(c.FlushInterval.Milliseconds(), 10)
	}
	return s
}
