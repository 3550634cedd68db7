package historytest

import (
	"math/rand/v2"
	"slices"

	"github.com/millrace/millrace/txn/history"
)

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

// id is a record wherever it lies.
type id struct {
	key   history.Key
	value int64
}

// index counts how often each record was read.
type index map[id]int

func readers(events []history.Event) index {
	n := index{}
	for e := range events {
		for s := range events[e].Steps {
			for _, r := range events[e].Steps[s].Reads {
				n[id{r.Key, r.Value}]++
			}
		}
	}
	return n
}

// has says whether anybody read what was sent.
func (n index) has(s *history.Step) bool { return n[id{s.Key, s.Value}] > 0 }
