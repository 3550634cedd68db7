package historytest

import (
	"math/rand/v2"
	"slices"

	"github.com/millrace/millrace/txn/history"
)

func vanish(rng *rand.Rand, events []history.Event) bool {
	e, s, ok := sent(rng, events, func(e *history.Event, _ *history.Step) bool { return e.Type == history.OK })
	if ok {
		remove(events, reads(events, is(&events[e].Steps[s])))
	}
	return ok
}

func skip(rng *rand.Rand, events []history.Event) bool {
	seen := readers(events)
	// Only of what others read too: else it would be lost, which is something else.
	s, ok := pick(rng, slices.DeleteFunc(inside(events), func(s spot) bool {
		r := at(events, s)
		return len(events[s.event].Rebalanced) > 0 || seen[id{r.Key, r.Value}] < 2
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
