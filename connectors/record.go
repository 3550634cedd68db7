package connectors

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"time"
)

// TopicID is the id a cluster gives a topic at creation: a topic that was
// deleted and made again under the same name has another one. The zero value
// means that the cluster does not tell (older than topic ids).
type TopicID [16]byte

// String returns 32 hex digits.
func (id TopicID) String() string { return hex.EncodeToString(id[:]) }

// ParseTopicID reads what String wrote.
func ParseTopicID(s string) (TopicID, error) {
	var id TopicID
	if len(s) != hex.EncodedLen(len(id)) {
		return id, fmt.Errorf("topic id %q: %d characters, want %d", s, len(s), hex.EncodedLen(len(id)))
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil {
		return id, fmt.Errorf("topic id %q: %w", s, err)
	}
	return id, nil
}

// TP names a partition of a topic.
type TP struct {
	Topic     string
	Partition int32
}

// String returns topic/partition.
func (tp TP) String() string { return tp.Topic + "/" + strconv.Itoa(int(tp.Partition)) }

// Fence is the right to write to a partition's rows in a store.
type Fence struct {
	// Epoch grows with every take-over: the offset of the claim record, or
	// one above what the store holds when the log of claims was lost.
	Epoch int64
	// Owner is the random id of the claim; two claims never share one.
	Owner string
}

// Older reports whether a take-over with fence by may replace f: only a greater
// epoch does.
func (f Fence) Older(by Fence) bool { return f.Epoch < by.Epoch }

// Position is how far a store has come with one partition of a topic.
type Position struct {
	TopicID     TopicID // the topic that Next is an offset of
	Next        int64   // offset of the first record that is not stored; -1 = nothing stored yet
	LeaderEpoch int32   // leader epoch of the last record below Next; -1 = not known
	Seq         int64   // number of commits so far
	Meta        []byte  // the connector's own; nil when unused
}

// NoPosition is the position of a partition the store has never stored from.
var NoPosition = Position{Next: -1, LeaderEpoch: -1}

// None reports whether nothing was stored yet.
func (p Position) None() bool { return p.Next < 0 }

// Assignment is one partition together with the right to write it.
type Assignment struct {
	TP    TP
	Fence Fence
}

// Header is a record header.
type Header struct {
	Key   string
	Value []byte
}

// Record is one record on its way to a store. Its bytes are valid and unchanged
// until the commit of its batch returns.
type Record struct {
	TP          TP
	Offset      int64
	LeaderEpoch int32     // -1 when the log does not tell
	Time        time.Time // record time in UTC, milliseconds; may be years ago
	Key, Value  any       // decoded; nil for null
	RawKey      []byte    // as in the log; nil = null
	RawValue    []byte
	Headers     []Header
}

// Reject is a record that cannot be stored as data: it is stored, with its raw
// bytes, in the store's table of rejects in the transaction that passes it by.
type Reject struct {
	Record Record
	Reason string // see RejectError
	Err    string
}

// Range is the part of a partition that a batch covers.
type Range struct {
	TP    TP
	Fence Fence
	From  Position // what the store must hold now
	To    Position // what it holds after the commit
}

// Batch is one commit: all of it becomes durable or nothing. The runner hands
// it to one call at a time and does not change it during the call.
type Batch struct {
	// Records in the order in which they were read; per partition by offset.
	// Offsets have gaps (transaction markers, compaction), so ranges are
	// compared, never counts. May be empty: then only positions move.
	Records []Record
	Rejects []Reject
	// Ranges holds each partition of the batch once, ordered by topic and
	// partition.
	Ranges []Range
}
