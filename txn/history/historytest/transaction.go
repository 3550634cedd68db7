package historytest

import (
	"math/rand/v2"
	"slices"

	"github.com/millrace/millrace/txn/history"
)

func disown(rng *rand.Rand, events []history.Event) bool {
	seen := readers(events)
	e, _, ok := sent(rng, events, func(e *history.Event, s *history.Step) bool {
		return e.Type == history.OK && e.Kind == history.Txn && seen.has(s)
	})
	if ok {
		events[e].Type = history.Fail
	}
	return ok
}

func readOwn(rng *rand.Rand, events []history.Event) bool {
	e, s, ok := sent(rng, events, func(e *history.Event, s *history.Step) bool {
		return e.Kind == history.Txn && e.Type == history.OK && s.Offset != history.Unknown
	})
	if ok {
		st := events[e].Steps[s]
		events[e].Steps = slices.Insert(events[e].Steps, s+1, history.Step{Kind: history.StepPoll,
			Reads: []history.Read{{Key: st.Key, Value: st.Value, Offset: st.Offset}}})
	}
	return ok
}

func tear(rng *rand.Rand, events []history.Event) bool {
	seen := readers(events)
	sends := func(e *history.Event) (n int) {
		for i := range e.Steps {
			if e.Steps[i].Kind == history.StepSend && seen.has(&e.Steps[i]) {
				n++
			}
		}
		return n
	}
	e, s, ok := sent(rng, events, func(e *history.Event, s *history.Step) bool {
		return e.Kind == history.Txn && e.Type == history.OK && seen.has(s) && sends(e) > 1
	})
	if ok {
		events[e].Type = history.Info
		remove(events, reads(events, is(&events[e].Steps[s])))
	}
	return ok
}

func mislead(rng *rand.Rand, events []history.Event) bool {
	seen := readers(events)
	e, s, ok := sent(rng, events, func(e *history.Event, s *history.Step) bool {
		return e.Type == history.OK && s.Offset > 0 && seen.has(s)
	})
	if ok {
		events[e].Steps[s].Offset--
	}
	return ok
}

// hurry lets a reader at the very start have what is sent later.
func hurry(rng *rand.Rand, events []history.Event) bool {
	e, s, ok := sent(rng, events, func(e *history.Event, s *history.Step) bool {
		n := len(e.Steps)
		return e.Type == history.OK && e.Kind == history.Txn && s.Offset != history.Unknown && n > 0 && e.Steps[n-1].At > 0
	})
	if !ok {
		return false
	}
	st := events[e].Steps[s]
	commit := events[e].Steps[len(events[e].Steps)-1].At
	for i := e; i >= 0; i-- {
		for s := range events[i].Steps {
			p := &events[i].Steps[s]
			if events[i].Type != history.Invoke && i != e && p.Kind == history.StepPoll && p.At > 0 && p.At < commit {
				p.Reads = append(p.Reads, history.Read{Key: st.Key, Value: st.Value, Offset: st.Offset})
				return true
			}
		}
	}
	return false
}

// shares lists the operations that consumed something for a group and committed that.
func shares(events []history.Event) []spot {
	var out []spot
	for e := range events {
		if events[e].Type != history.OK {
			continue
		}
		for s := range events[e].Steps {
			if len(events[e].Steps[s].Next) > 0 && len(reads(events[e:e+1], nil)) > 0 {
				out = append(out, spot{event: e, step: s})
			}
		}
	}
	return out
}

func consumeAgain(rng *rand.Rand, events []history.Event) bool {
	all := shares(events)
	a, ok := pick(rng, all)
	if !ok {
		return false
	}
	// Another operation without reads of its own gets what a had.
	for _, e := range rng.Perm(len(events)) {
		if e > a.event && events[e].Type == history.OK && events[e].Kind == history.Poll && len(reads(events[e:e+1], nil)) == 0 {
			events[e].Steps = slices.Clone(events[a.event].Steps)
			events[e].Steps = slices.DeleteFunc(events[e].Steps, func(s history.Step) bool {
				return s.Kind != history.StepPoll && s.Kind != history.StepOffsets
			})
			return true
		}
	}
	return false
}

// leaveOut takes a share away that others follow, as if its transaction had not been.
func leaveOut(rng *rand.Rand, events []history.Event) bool {
	all := shares(events)
	for _, i := range rng.Perm(len(all)) {
		s := all[i]
		mine := events[s.event].Steps[s.step]
		first := mine.Next[0]
		follows := slices.ContainsFunc(all, func(o spot) bool {
			theirs := events[o.event].Steps[o.step]
			return theirs.Group == mine.Group && slices.ContainsFunc(theirs.Next, func(p history.Position) bool {
				return p.Key == first.Key && p.Offset > first.Offset
			})
		})
		own := slices.ContainsFunc(reads(events[s.event:s.event+1], func(r history.Read) bool { return r.Key == first.Key }),
			func(spot) bool { return true })
		if follows && own {
			events[s.event].Steps = slices.Delete(events[s.event].Steps, s.step, s.step+1)
			return true
		}
	}
	return false
}

func forgetOffset(rng *rand.Rand, events []history.Event) bool {
	for i, e := range slices.Backward(events) {
		for p := range e.Positions {
			if e.Kind == history.Committed && e.Positions[p].Offset > 0 {
				events[i].Positions[p].Offset = 0
				return true
			}
		}
	}
	return false
}

// lastMarks is the last observation of watermarks that are above 0.
func lastMarks(events []history.Event) *history.Event {
	for i, e := range slices.Backward(events) {
		if e.Kind == history.Marks && e.Type == history.OK && len(e.Marks) > 0 && e.Marks[0].High > 0 {
			return &events[i]
		}
	}
	return nil
}

func lowerMark(_ *rand.Rand, events []history.Event) bool {
	e := lastMarks(events)
	if e != nil {
		e.Marks[0].High, e.Marks[0].Stable = 0, 0
	}
	return e != nil
}

func hang(_ *rand.Rand, events []history.Event) bool {
	e := lastMarks(events)
	if e != nil {
		e.Marks[0].High++
	}
	return e != nil
}

func stick(_ *rand.Rand, events []history.Event) bool {
	for i := range events {
		if events[i].Kind == history.Drain && events[i].Type == history.OK {
			events[i].Type = history.Info
			return true
		}
	}
	return false
}
