package broker

import (
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/millrace/millrace/broker/internal/compact"
	"github.com/millrace/millrace/broker/internal/metadata"
)

// Config says how to start a broker. The zero value is a broker in memory
// without a socket.
type Config struct {
	// Dir is the data folder; it is made when missing. Empty keeps everything in
	// memory, until Close.
	Dir string
	// Listen is the TCP address to accept clients on, such as "127.0.0.1:9092";
	// port 0 takes a free one, see Broker.Addr. Empty opens no socket: the broker
	// is reached through Dial only.
	Listen string
	// Advertise is the address that clients of the socket are told to use, where
	// it is not the one they came in on: behind a proxy or a port mapping.
	Advertise string
	// NodeID is the id of this broker in its cluster. 0 means the one in the data
	// folder, or 1 for a new folder.
	NodeID int32
	// Logger gets what an operator should know. Nil means slog.Default().
	Logger *slog.Logger

	// DefaultPartitions is how many partitions a topic gets whose creator does not
	// say; 1 by default.
	DefaultPartitions int32
	// NoAutoCreate turns off that a missing topic is created when a client that
	// allows it asks for it.
	NoAutoCreate bool
	// InternalPartitions is how many partitions the offsets and the transactions
	// topic get when they are created; 4 by default. Few partitions mean few files
	// to sync for a commit.
	InternalPartitions int32

	// Durability is what an acknowledgement waits for, where a topic does not say (millrace.durability): "fsync", the default, until
	// the disk has the record; "interval" or "os" until the kernel has it, with a sync every FlushInterval, or whenever the kernel
	// likes. docs/durability.md says what each may lose. The broker's own topics, metadata and the decisions of transactions are
	// always synced.
	Durability string
	// FlushInterval is how long a record may lie unsynced under a relaxed durability, where a topic does not say (flush.ms). 0 is a
	// second under interval, and for ever under os.
	FlushInterval time.Duration

	// GroupInitialRebalanceDelay is how long the first rebalance of an empty group
	// waits for more members; 3 s by default as in Kafka. Tests set a millisecond.
	GroupInitialRebalanceDelay time.Duration
	// GroupMinSessionTimeout and GroupMaxSessionTimeout bound the session timeout
	// that members ask for; 6 s and 30 min by default.
	GroupMinSessionTimeout, GroupMaxSessionTimeout time.Duration
	// OffsetsRetention is how long committed offsets are kept that nobody needs any more; 7 days by default. Of a group that was
	// left it counts from when the last member was gone, of offsets outside of groups from the commit. It is a matter of
	// minutes in Kafka's name for it, offsets.retention.minutes, which is rounded up.
	OffsetsRetention time.Duration
	// OffsetsRetentionCheckInterval is how long it is from one search for such offsets to the next; 10 min by default.
	OffsetsRetentionCheckInterval time.Duration
	// TransactionMaxTimeout bounds the timeout of a transaction; 15 min by default.
	TransactionMaxTimeout time.Duration
	// TransactionTwoPhaseCommit lets producers take part in two-phase commits (KIP-939): their transactions have no timeout,
	// and outlive them until they come back or somebody else decides. Off by default, as in Kafka: until then no read_committed
	// consumer gets past such a transaction.
	TransactionTwoPhaseCommit bool
	// TransactionNoticeAfter is how long a transaction without a timeout may be open until the log says so, and how long until
	// it says so again; 15 min by default.
	TransactionNoticeAfter time.Duration
	// TransactionalIDExpiration is how long a transactional id at rest is remembered after its last change; 7 days by default.
	// Its producer gets a new producer id then from InitProducerId, and is refused otherwise.
	TransactionalIDExpiration time.Duration
	// TransactionalIDSweepInterval is how far apart the times are at which such ids are forgotten; 1 h by default.
	TransactionalIDSweepInterval time.Duration
	// ProducerIDExpiration is how long a partition recognises the repeats of an idempotent producer that is quiet; 24 h by
	// default. It never forgets one with an open transaction.
	ProducerIDExpiration time.Duration
	// ProducerIDCheckInterval is how often quiet producers are looked for; 10 min by default.
	ProducerIDCheckInterval time.Duration

	// RetentionCheckInterval is how often retention.ms and retention.bytes are looked at; 5 min by default.
	RetentionCheckInterval time.Duration
	// CompactionInterval is how often it is looked whether a compacted topic is dirty enough; 15 s by default.
	CompactionInterval time.Duration
	// CompactionBuffer bounds the table of keys that compaction keeps in memory while it is at a partition, in bytes; 64 MiB by
	// default. It takes what it needs, and goes over a partition with more keys in several rounds.
	CompactionBuffer int
	// CompactionBytesPerSecond bounds what compaction reads and writes; 0 is no bound.
	CompactionBytesPerSecond int64

	// ScrubBytesPerSecond bounds what the background scrub reads, which looks whether old segments are still as they were written; 8
	// MiB by default. Below 0 turns it off.
	ScrubBytesPerSecond int64
	// ScrubInterval is how far apart the beginnings of two rounds of it are, if one does not take longer; 24 h by default.
	ScrubInterval time.Duration

	// Authorize decides about every access. Nil allows all.
	Authorize func(Access) bool
}

// Access is something a client wants to do, in Kafka's words: principal
// "User:ANONYMOUS", operation "WRITE", resource "TOPIC", name "orders".
type Access struct {
	Principal, Operation, Resource, Name string
}

// Limits of the configuration.
const (
	maxPartitions = 10_000
	maxGroupDelay = time.Hour
)

// Validate names the first field that is out of its limits.
func (c Config) Validate() error {
	c = c.withDefaults()
	switch {
	case c.NodeID < 0:
		return fmt.Errorf("broker: NodeID is %d, must be at least 0 (0: as the data folder says)", c.NodeID)
	case c.DefaultPartitions < 1 || c.DefaultPartitions > maxPartitions:
		return fmt.Errorf("broker: DefaultPartitions is %d, must be between 1 and %d", c.DefaultPartitions, maxPartitions)
	case c.InternalPartitions < 1 || c.InternalPartitions > maxPartitions:
		return fmt.Errorf("broker: InternalPartitions is %d, must be between 1 and %d", c.InternalPartitions, maxPartitions)
	case metadata.TopicConfig(metadata.Durability).Validate("Durability", c.Durability) != nil:
		return fmt.Errorf("broker: Durability is %q, must be fsync, interval or os", c.Durability)
	case c.FlushInterval != 0 && c.FlushInterval < time.Millisecond:
		return fmt.Errorf("broker: FlushInterval is %v, must be at least 1ms (0: as Durability says)", c.FlushInterval)
	case c.GroupInitialRebalanceDelay > maxGroupDelay:
		return fmt.Errorf("broker: GroupInitialRebalanceDelay is %v, must be at most %v", c.GroupInitialRebalanceDelay, maxGroupDelay)
	case c.GroupMinSessionTimeout < time.Millisecond:
		return fmt.Errorf("broker: GroupMinSessionTimeout is %v, must be at least 1ms", c.GroupMinSessionTimeout)
	case c.GroupMaxSessionTimeout < c.GroupMinSessionTimeout:
		return fmt.Errorf("broker: GroupMaxSessionTimeout is %v, must be at least GroupMinSessionTimeout, %v", c.GroupMaxSessionTimeout, c.GroupMinSessionTimeout)
	case c.TransactionMaxTimeout < time.Millisecond:
		return fmt.Errorf("broker: TransactionMaxTimeout is %v, must be at least 1ms", c.TransactionMaxTimeout)
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"TransactionNoticeAfter", c.TransactionNoticeAfter}, {"TransactionalIDExpiration", c.TransactionalIDExpiration}, {"TransactionalIDSweepInterval", c.TransactionalIDSweepInterval},
		{"ProducerIDExpiration", c.ProducerIDExpiration}, {"ProducerIDCheckInterval", c.ProducerIDCheckInterval},
		{"OffsetsRetention", c.OffsetsRetention}, {"OffsetsRetentionCheckInterval", c.OffsetsRetentionCheckInterval},
	} {
		if d.value < time.Millisecond {
			return fmt.Errorf("broker: %s is %v, must be at least 1ms", d.field, d.value)
		}
	}
	if c.RetentionCheckInterval < time.Millisecond {
		return fmt.Errorf("broker: RetentionCheckInterval is %v, must be at least 1ms", c.RetentionCheckInterval)
	}
	if c.CompactionInterval < time.Millisecond {
		return fmt.Errorf("broker: CompactionInterval is %v, must be at least 1ms", c.CompactionInterval)
	}
	if c.CompactionBuffer != 0 && c.CompactionBuffer < compact.MinTableBytes {
		return fmt.Errorf("broker: CompactionBuffer is %d bytes, must be at least %d", c.CompactionBuffer, compact.MinTableBytes)
	}
	if c.ScrubInterval < time.Second {
		return fmt.Errorf("broker: ScrubInterval is %v, must be at least 1s", c.ScrubInterval)
	}
	if c.CompactionBytesPerSecond < 0 {
		return fmt.Errorf("broker: CompactionBytesPerSecond is %d, must not be negative", c.CompactionBytesPerSecond)
	}
	if c.Listen != "" {
		if _, _, err := net.SplitHostPort(c.Listen); err != nil {
			return fmt.Errorf("broker: Listen is %q, must be host:port: %w", c.Listen, err)
		}
	}
	if c.Advertise != "" {
		if _, _, err := splitAddress(c.Advertise); err != nil {
			return fmt.Errorf("broker: Advertise is %q, must be host:port: %w", c.Advertise, err)
		}
		if c.Listen == "" {
			return fmt.Errorf("broker: Advertise is %q but Listen is empty: there is no socket to advertise", c.Advertise)
		}
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.DefaultPartitions == 0 {
		c.DefaultPartitions = 1
	}
	if c.InternalPartitions == 0 {
		c.InternalPartitions = 4
	}
	if c.Durability == "" {
		c.Durability = metadata.DurabilityFsync
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&c.GroupInitialRebalanceDelay, 3 * time.Second},
		{&c.GroupMinSessionTimeout, 6 * time.Second},
		{&c.GroupMaxSessionTimeout, 30 * time.Minute},
		{&c.OffsetsRetention, 7 * 24 * time.Hour},
		{&c.OffsetsRetentionCheckInterval, 10 * time.Minute},
		{&c.TransactionMaxTimeout, 15 * time.Minute},
		{&c.TransactionNoticeAfter, 15 * time.Minute},
		{&c.TransactionalIDExpiration, 7 * 24 * time.Hour},
		{&c.TransactionalIDSweepInterval, time.Hour},
		{&c.ProducerIDExpiration, 24 * time.Hour},
		{&c.ProducerIDCheckInterval, 10 * time.Minute},
		{&c.RetentionCheckInterval, 5 * time.Minute},
		{&c.CompactionInterval, 15 * time.Second},
		{&c.ScrubInterval, 24 * time.Hour},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	return c
}
