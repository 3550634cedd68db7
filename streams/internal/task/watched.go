package task

import "context"

// Watched is a task that counts what its nodes do; one that was made with
// Env.Watch is.
type Watched interface {
	// Seen lists how many records each node has taken since the task was made, in
	// order of first appearance.
	Seen() []Seen
}

// Seen counts the records that a node has taken.
type Seen struct {
	Node    string
	Records int64
}

// Wrapper is called around the work of a node on one record and all that follows
// from it; next does the work. It has to call next once and return its error.
type Wrapper func(ctx context.Context, next func() error) error
