package connectors

import (
	"context"
	"time"
)

// SourcePart is a part of a source that can be read on its own: a file, a
// table, a shard. Its name is the key of its stored position.
type SourcePart struct{ Name string }

// SourcePos is how far a source part has been read into the log. State is the
// connector's own encoding; the runner stores it in the log transaction of the
// records that it stands for.
type SourcePos struct {
	State []byte
	Done  bool // the part has ended and will not grow
}

// Produced is a record on its way into the log.
type Produced struct {
	Topic      string
	Partition  int32 // -1: by key, as Kafka's own producers do
	Time       time.Time
	Key, Value []byte // nil = null
	Headers    []Header
}

// Unit is a run of records that goes into one transaction of the log, with the
// position after it. A unit never ends inside a transaction of the upstream.
type Unit struct {
	Records []Produced
	Pos     SourcePos
	Read    int64 // position in the part's own measure, for progress
	Total   int64 // size in the same measure, -1 = not known
}

// Source is a store that is read into the log.
type Source interface {
	// Spec is pure.
	Spec() Spec
	// Check connects and looks; it changes nothing.
	Check(ctx context.Context) []Issue
	// Parts lists the units that may be read in parallel.
	Parts(ctx context.Context) ([]SourcePart, error)
	// Open starts reading part p after position at (nil = from the start). It
	// fails with an error matching ErrConfig if the upstream cannot serve that
	// position, for example because the file is another one: going on from a
	// guess would lose or repeat records.
	Open(ctx context.Context, p SourcePart, at *SourcePos) (Reader, error)
}

// Reader reads one part. It is owned by one goroutine.
type Reader interface {
	// Next returns the next unit, or io.EOF when the part has ended (after a
	// unit whose position is Done, or with no unit when nothing was left). It
	// waits for more when the part may grow. The unit's bytes stay unchanged.
	Next(ctx context.Context) (Unit, error)
	// Committed tells that the unit that ended at pos is durable in the log:
	// only now may the upstream be told to forget it.
	Committed(ctx context.Context, pos SourcePos) error
	// Close frees what the reader holds.
	Close() error
}
