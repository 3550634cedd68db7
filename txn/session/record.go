package session

import "time"

// TopicPartition names one partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// Record is one record, read or to be sent.
type Record struct {
	Topic     string
	Partition int32 // ByKey when sending: the key decides
	Offset    int64
	// LeaderEpoch of the leader that appended the record, when read.
	LeaderEpoch int32
	// Time is the record's timestamp, of millisecond resolution. When sending,
	// the zero Time means now.
	Time time.Time
	// Key and Value: nil is null.
	Key, Value []byte
	Headers    []Header
}

// Header is one record header. Keys need not be unique; order is kept.
type Header struct {
	Key   string
	Value []byte
}

// ByKey as the partition of a record that is sent lets the key decide, by
// murmur2 as Kafka's own clients do. A record without a key goes round robin.
const ByKey int32 = -1

// Offset is a position in a partition that a group has reached.
type Offset struct {
	// Next is the offset of the next record to process, -1 when there is none.
	Next int64
	// LeaderEpoch of the last processed record, -1 when unknown.
	LeaderEpoch int32
	// Metadata is kept beside the offset; Kafka allows 4096 bytes.
	Metadata string
}

// Offsets maps partitions to positions.
type Offsets map[TopicPartition]Offset

// Generation proves a membership: with it in a commit, the group coordinator
// refuses the commit of a member that is no longer part of the group, or that
// missed a rebalance. The zero value, with only the group set, proves nothing
// and is not checked.
type Generation struct {
	Group    string
	Member   string
	Instance string // group.instance.id; "" for a dynamic member
	ID       int32
}
