package topology

import "time"

// Begin says where a source begins in a partition of which the group has committed no
// offset. The zero value is its start.
type Begin struct {
	At  BeginAt
	Ago time.Duration // of BeginAgo
}

// BeginAt is a kind of beginning.
type BeginAt int

const (
	// BeginStart is the first record that is there.
	BeginStart BeginAt = iota
	// BeginEnd is where the partition ends when the task begins.
	BeginEnd
	// BeginAgo is the first record with a time not further back than Ago when the
	// task begins; the end, if there is none.
	BeginAgo
	// BeginNowhere refuses: a partition without an offset is an error, and so is
	// an offset that is gone.
	BeginNowhere
)
