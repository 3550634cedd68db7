package api

import (
	"sync"
	"time"

	"github.com/millrace/millrace/broker/internal/partition"
	"github.com/millrace/millrace/broker/internal/replicas"
)

// fetchTopic is one topic of the request: rows [first, end).
type fetchTopic struct {
	known      *replicas.Topic // nil if there is none
	name       string
	id         [16]byte
	first, end int
}

// fetchKey names a partition, by topic id if there is one, else by name.
type fetchKey struct {
	id    [16]byte
	name  string
	index int32
}

// fetchRow is one partition of the request and its result.
type fetchRow struct {
	topic       int
	index       int32
	leaderEpoch int32 // -1: not checked
	offset      int64
	lastEpoch   int32 // last fetched epoch, -1: not checked
	maxBytes    int32
	partition   *partition.Partition
	of          *sessionPartition // nil outside of an incremental fetch

	code      int16
	unchanged bool // the session's client knows it all
	diverging bool
	divEpoch  int32
	divEnd    int64
	marks     partition.Marks
	read      *partition.Read // nil: no records
}

// sessions is the cache of fetch sessions (KIP-227). A session remembers the
// partitions that a client fetches and what it was last told of them, so that
// requests and answers name only what changed. A client whose session is gone is
// told so and begins a new one; a client that gets none goes on with full fetches.
type sessions struct {
	mu   sync.Mutex
	byID map[int32]*session // owned by mu
}

// session is one client's fetch session. Clients have one request of a session
// under way at a time; mu keeps it whole if one has not.
type session struct {
	id     int32
	byName bool // made by a version without topic ids
	used   time.Time

	mu    sync.Mutex
	epoch int32 // of the next request
	parts map[fetchKey]*sessionPartition
	order []*sessionPartition // in the order in which they were added
}

// sessionPartition is what a session knows of a partition.
type sessionPartition struct {
	key fetchKey
	row fetchRow // what the client asks for; no result
	// What the client was last told; -1 tells it again.
	high, start int64
}
