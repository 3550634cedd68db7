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

// spot is a read in a history.
type spot struct{ event, step, read int }

// reads lists all reads for which f holds.
func reads(events []history.Event, f func(history.Read) bool) []spot {
	var out []spot
	for e := range events {
		for s := range events[e].Steps {
			for r, read := range events[e].Steps[s].Reads {
				if f == nil || f(read) {
					out = append(out, spot{e, s, r})
				}
			}
		}
	}
	return out
}

func at(events []history.Event, s spot) *history.Read {
	return &events[s.event].Steps[s.step].Reads[s.read]
}

// remove takes reads out, last first, so that the places of the others stay.
func remove(events []history.Event, spots []spot) {
	for _, s := range slices.Backward(spots) {
		st := &events[s.event].Steps[s.step]
		st.Reads = slices.Delete(st.Reads, s.read, s.read+1)
	}
}

// sent finds a send at random among those of operations for which f holds.
func sent(rng *rand.Rand, events []history.Event, f func(*history.Event, *history.Step) bool) (event, step int, ok bool) {
	var found []spot
	for e := range events {
		for s := range events[e].Steps {
			if st := &events[e].Steps[s]; st.Kind == history.StepSend && events[e].Type != history.Invoke && f(&events[e], st) {
				found = append(found, spot{event: e, step: s})
			}
		}
	}
	if len(found) == 0 {
		return 0, 0, false
	}
	at := found[rng.IntN(len(found))]
	return at.event, at.step, true
}

func is(s *history.Step) func(history.Read) bool {
	return func(r history.Read) bool { return r.Key == s.Key && r.Value == s.Value }
}

func vanish(rng *rand.Rand, events []history.Event) bool {
	e, s, ok := sent(rng, events, func(e *history.Event, _ *history.Step) bool { return e.Type == history.OK })
	if ok {
		remove(events, reads(events, is(&events[e].Steps[s])))
	}
	return ok
}

// inside lists reads that have one of the same partition before and behind them in
// the same poll.
func inside(events []history.Event) []spot {
	return slices.DeleteFunc(reads(events, nil), func(s spot) bool {
		all := events[s.event].Steps[s.step].Reads
		return s.read == 0 || s.read+1 == len(all) || all[s.read-1].Key != all[s.read].Key || all[s.read+1].Key != all[s.read].Key
	})
}

func pick(rng *rand.Rand, spots []spot) (spot, bool) {
	if len(spots) == 0 {
		return spot{}, false
	}
	return spots[rng.IntN(len(spots))], true
}

func skip(rng *rand.Rand, events []history.Event) bool {
	// Only of what others read too: else it would be lost, which is something else.
	s, ok := pick(rng, slices.DeleteFunc(inside(events), func(s spot) bool {
		r := *at(events, s)
		return len(events[s.event].Rebalanced) > 0 || len(reads(events, func(x history.Read) bool { return x == r })) < 2
	}))
	if ok {
		remove(events, []spot{s})
	}
	return ok
}

func double(rng *rand.Rand, events []history.Event) bool {
	s, ok := pick(rng, reads(events, nil))
	if ok {
		all := &events[s.event].Steps[s.step].Reads
		again := (*all)[s.read]
		again.Offset += 1 << 30
		*all = append(*all, again)
	}
	return ok
}

func exchange(rng *rand.Rand, events []history.Event) bool {
	s, ok := pick(rng, inside(events))
	if ok {
		a, b := at(events, s), at(events, spot{s.event, s.step, s.read + 1})
		a.Value, b.Value = b.Value, a.Value
	}
	return ok
}

func reverse(rng *rand.Rand, events []history.Event) bool {
	s, ok := pick(rng, slices.DeleteFunc(inside(events), func(s spot) bool { return len(events[s.event].Rebalanced) > 0 }))
	if ok {
		a, b := at(events, s), at(events, spot{s.event, s.step, s.read + 1})
		*a, *b = *b, *a
	}
	return ok
}

func showAborted(rng *rand.Rand, events []history.Event) bool {
	e, s, ok := sent(rng, events, func(e *history.Event, s *history.Step) bool {
		return e.Type == history.Fail && s.Offset != history.Unknown
	})
	if !ok {
		return false
	}
	st := events[e].Steps[s]
	for i := e + 1; i < len(events); i++ {
		for s := range events[i].Steps {
			if p := &events[i].Steps[s]; events[i].Type != history.Invoke && p.Kind == history.StepPoll {
				p.Reads = append(p.Reads, history.Read{Key: st.Key, Value: st.Value, Offset: st.Offset})
				return true
			}
		}
	}
	return false
}

func invent(rng *rand.Rand, events []history.Event) bool {
	s, ok := pick(rng, reads(events, nil))
	if ok {
		at(events, s).Value += 1 << 40
	}
	return ok
}
