// Package historytest spoils histories, to show that a checker notices. Each tampering
// makes of a history without anomalies, from a real run or a model, one that has a
// certain kind of them.
package historytest

import (
	"math/rand/v2"
	"slices"

	"github.com/millrace/millrace/txn/history"
)

// Tampering is one way to spoil a history.
type Tampering struct {
	Name string
	// Shows lists what a checker may call it; at least one of them must come up.
	Shows []history.Class
	// Apply changes the events in place, or says that they offer no occasion.
	Apply func(rng *rand.Rand, events []history.Event) bool
}

// Clone copies a history so deeply that tampering does not show in the original.
func Clone(events []history.Event) []history.Event {
	out := slices.Clone(events)
	for i := range out {
		e := &out[i]
		e.Steps = slices.Clone(e.Steps)
		for s := range e.Steps {
			e.Steps[s].Reads = slices.Clone(e.Steps[s].Reads)
			e.Steps[s].Next = slices.Clone(e.Steps[s].Next)
		}
		e.Positions = slices.Clone(e.Positions)
		e.Marks = slices.Clone(e.Marks)
	}
	return out
}

// Tamperings are all that there are.
func Tamperings() []Tampering {
	return []Tampering{
		{"a record vanishes for all readers", []history.Class{history.LostWrite, history.Unseen}, vanish},
		{"a record vanishes for one reader", []history.Class{history.InnerPollSkip, history.PollSkip, history.NotConsumed}, skip},
		{"a record is there twice", []history.Class{history.Duplicate}, double},
		{"two records change places", []history.Class{history.InconsistentOffset, history.Duplicate}, exchange},
		{"two records are read the wrong way round", []history.Class{history.InnerPollBack}, reverse},
		{"an aborted record is shown", []history.Class{history.AbortedRead}, showAborted},
		{"a record comes from nowhere", []history.Class{history.Unwritten}, invent},
		{"a transaction that was seen has failed", []history.Class{history.AbortedRead}, disown},
		{"a transaction reads its own record", []history.Class{history.PrecommittedRead}, readOwn},
		{"one record of a transaction of unknown outcome is missing", []history.Class{history.LostWrite, history.Unseen}, tear},
		{"an acknowledged offset is another's", []history.Class{history.InconsistentOffset, history.Duplicate}, mislead},
		{"a record is seen before it is sent", []history.Class{history.OpenPassed, history.RealtimeWrite, history.CircularRead}, hurry},
		{"a group consumes records again", []history.Class{history.ConsumedTwice}, consumeAgain},
		{"a group leaves records out", []history.Class{history.NotConsumed}, leaveOut},
		{"a committed offset goes back", []history.Class{history.OffsetBack}, forgetOffset},
		{"a watermark goes back", []history.Class{history.WatermarkBack, history.WatermarkBehind}, lowerMark},
		{"a transaction stays open", []history.Class{history.Hanging}, hang},
		{"a reader does not get to the end", []history.Class{history.Stuck}, stick},
	}
}
