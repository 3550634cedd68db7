package connectors

import "context"

// Issue is one finding of a check of the store.
type Issue struct {
	Field string // which setting, "" = the store as a whole
	Text  string
	Fatal bool // Open or Commit would fail
}

// Sink is what every class of sink has. A runner task owns one Sink and calls it
// from one goroutine, one call at a time.
//
// Every call gets a context with a deadline and must return soon after it ends.
// Errors are classed by errors.Is, see [ErrFenced] and its neighbours.
type Sink interface {
	// Spec is pure.
	Spec() Spec
	// Check connects and looks at privileges, tables and columns; it writes
	// nothing.
	Check(ctx context.Context) []Issue
	// Prepare creates what is missing in the store: the offsets table, the
	// table of rejects, the target if the settings describe one. It is safe to
	// call from several tasks at once, and never part of a data transaction.
	Prepare(ctx context.Context) error
	// Open takes over: it raises the fence of each partition to its
	// assignment's and returns the stored positions, positions[i] for as[i]
	// (NoPosition when there is none). It is atomic over the partitions.
	// ErrFenced (a *FencedError with the stored fence) when the stored epoch is
	// not lower, unless the stored fence equals the given one: then it is a
	// repeat of a call that did succeed. Once Open has returned, nothing that
	// carries an older fence may change anything.
	Open(ctx context.Context, as []Assignment) (positions []Position, err error)
	// Release forgets partitions that are handed on. It flushes nothing.
	Release(ctx context.Context, tps []TP) error
	// Close frees what the sink holds. The sink is not used afterwards.
	Close() error
}

// TxSink is a sink of the Transactional class.
type TxSink interface {
	Sink
	// Commit makes b durable in one transaction of the store: records, rejects,
	// and for each range the position b.Ranges[i].To, provided the stored
	// fence equals Range.Fence and the stored position equals Range.From. The
	// check and the new position are one write to the cell that Open writes,
	// best as the last statement before the commit: a check at the start would
	// hold a lock that a take-over waits for.
	//
	// nil means durable. ErrFenced, ErrStale, ErrRetry and rejects mean that
	// nothing was applied. When the reply of the commit itself is lost the answer is
	// ErrUnknownOutcome.
	Commit(ctx context.Context, b *Batch) error
}

// StoredPosition is one row of a store's offsets table.
type StoredPosition struct {
	TP       TP
	Position Position
	Fence    Fence
}

// Offsets is implemented by sinks whose positions can be listed and changed:
// the numbers that count are those in the store, not the group's.
type Offsets interface {
	// Positions returns the rows of this sink ordered by topic and partition.
	Positions(ctx context.Context) ([]StoredPosition, error)
	// SetPositions takes over with the fence in each row and then replaces the
	// position, in one transaction; a position with Next -1 makes the sink
	// start anew. A running task finds itself fenced and re-opens at the new
	// position, so run it with the connector stopped.
	SetPositions(ctx context.Context, rows []StoredPosition) error
}
