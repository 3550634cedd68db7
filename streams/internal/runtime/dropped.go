package runtime

import (
	"slices"

	"github.com/millrace/millrace/streams/internal/task"
)

// tally adds up, per node and reason, the records that rules of the topology
// left out. The zero value is empty; order is that of first appearance.
type tally []task.Dropped

func (t *tally) add(counts []task.Dropped) {
	for _, c := range counts {
		i := slices.IndexFunc(*t, func(d task.Dropped) bool { return d.Node == c.Node && d.Reason == c.Reason })
		if i < 0 {
			*t = append(*t, c)
			continue
		}
		(*t)[i].N += c.N
	}
}

// dropped is what the worker's tasks have left out up to the last commit, those
// that have ended included.
func (w *worker) dropped() []task.Dropped {
	sum := tally(slices.Clone(w.ended))
	for _, a := range w.tasks {
		sum.add(a.dropped)
	}
	return sum
}

// leave notes what a task has left out before it ends.
func (w *worker) leave(a *active) { w.ended.add(a.dropped) }

// logDropped says once, at the end, what was left out.
func (w *worker) logDropped() {
	for _, d := range w.dropped() {
		if d.N > 0 {
			w.log.Info("records left out", "node", d.Node, "reason", d.Reason, "records", d.N)
		}
	}
}
