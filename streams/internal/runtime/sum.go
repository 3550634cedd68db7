package runtime

import "github.com/millrace/millrace/streams/internal/task"

// Sum adds up counts of the same node and reason: a node may have several places
// in a task, each with counters of its own.
func Sum(counts []task.Dropped) []task.Dropped {
	var t tally
	t.add(counts)
	return t
}
