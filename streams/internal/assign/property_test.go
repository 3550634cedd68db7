package assign_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace/millrace/core/seedtest"
	"github.com/millrace/millrace/streams/internal/assign"
)

// world is a group whose members do as they are told: they give up what they are
// not assigned, and their copies come closer.
type world struct {
	t       *testing.T
	rnd     *rand.Rand
	rules   assign.Rules
	members []assign.Member
	copies  map[string]map[int32]int64 // by process, what it lacks
	running map[string][]int32         // by member, what runs by now, its state complete
	gen     int32
	next    int
	said    string
}

func (w *world) join() {
	m := assign.Member{ID: fmt.Sprintf("m%03d", w.next), Claim: assign.Claim{Generation: -1}}
	w.next++
	m.Claim.Process = fmt.Sprintf("p%d", w.rnd.IntN(4))
	m.Claim.Rack = "rack" + m.Claim.Process[1:2]
	if w.copies[m.Claim.Process] == nil {
		w.copies[m.Claim.Process] = map[int32]int64{}
	}
	w.members = append(w.members, m)
	w.rnd.Shuffle(len(w.members), func(i, j int) { w.members[i], w.members[j] = w.members[j], w.members[i] })
}

func (w *world) die() {
	w.members = w.members[1:]
}

// lag is what a member lacks of a unit.
func (w *world) lag(m assign.Member, unit int32) int64 {
	if lag, ok := w.copies[m.Claim.Process][unit]; ok {
		return lag
	}
	return max(w.rules.Sizes[unit], 0)
}

// round is one generation.
func (w *world) round() map[string]assign.Share {
	w.t.Helper()
	for i := range w.members {
		m := &w.members[i]
		m.Claim.Copies = nil
		for unit := range w.rules.Units {
			if lag, ok := w.copies[m.Claim.Process][unit]; ok && !slices.Contains(w.running[m.ID], unit) {
				m.Claim.Copies = append(m.Claim.Copies, assign.Copy{Unit: unit, Lag: lag})
			}
		}
	}
	plan := assign.Plan(w.members, w.rules)
	w.check(plan)
	w.gen++
	for i := range w.members {
		m := &w.members[i]
		s := plan[m.ID]
		m.Claim.Generation, m.Claim.Units = w.gen, s.Units
		for _, u := range slices.Concat(s.Units, s.Standbys, s.Warm) {
			if w.rules.Sizes[u] >= 0 {
				w.copies[m.Claim.Process][u] = w.lag(*m, u) / 4
			}
		}
		w.running[m.ID] = slices.DeleteFunc(slices.Clone(s.Units), func(u int32) bool { return w.lag(*m, u) > 0 })
	}
	return plan
}

// check is what holds in every generation.
func (w *world) check(plan map[string]assign.Share) {
	w.t.Helper()
	owner, claims := map[int32]assign.Member{}, map[int32]int32{}
	for _, m := range w.members {
		for _, u := range m.Claim.Units {
			if g, ok := claims[u]; !ok || m.Claim.Generation > g {
				owner[u], claims[u] = m, m.Claim.Generation
			}
		}
	}
	runs := map[int32]string{}
	for _, m := range w.members {
		s := plan[m.ID]
		for _, u := range s.Units {
			if other := runs[u]; other != "" {
				w.t.Fatalf("%s: %s and %s run unit %d", w.said, other, m.ID, u)
			}
			runs[u] = m.ID
			o, held := owner[u]
			if held && o.ID != m.ID {
				w.t.Fatalf("%s: unit %d goes to %s while %s holds it", w.said, u, m.ID, o.ID)
			}
			if w.lag(m, u) > w.rules.Close && (!held || w.lag(o, u) > w.rules.Close) {
				for _, x := range w.members {
					if w.lag(x, u) <= w.rules.Close {
						w.t.Fatalf("%s: unit %d goes to %s, which lacks %d, though %s has it", w.said, u, m.ID, w.lag(m, u), x.ID)
					}
				}
			}
		}
		far := 0
		for _, u := range s.Warm {
			if w.lag(m, u) > w.rules.Close && runs[u] != "" {
				far++
			}
		}
		if w.rules.Standbys == 0 && far > w.rules.WarmUps {
			w.t.Fatalf("%s: %s warms up %d units", w.said, m.ID, far)
		}
	}
	for u := range w.rules.Units {
		if _, held := owner[u]; runs[u] == "" && !held {
			w.t.Fatalf("%s: nobody runs unit %d, and nobody holds it", w.said, u)
		}
	}
}

// calm is what holds when nothing changes any more.
func (w *world) calm(plan map[string]assign.Share) {
	w.t.Helper()
	low, high := int(w.rules.Units), 0
	where := map[int32]map[string]bool{}
	processes := map[string]bool{}
	for _, m := range w.members {
		s := plan[m.ID]
		low, high = min(low, len(s.Units)), max(high, len(s.Units))
		processes[m.Claim.Process] = true
		if len(s.Warm) > 0 {
			w.t.Fatalf("%s: %s still warms up %v", w.said, m.ID, s.Warm)
		}
		for _, u := range slices.Concat(s.Units, s.Standbys) {
			if where[u] == nil {
				where[u] = map[string]bool{}
			}
			if where[u][m.Claim.Process] {
				w.t.Fatalf("%s: process %s has unit %d twice", w.said, m.Claim.Process, u)
			}
			where[u][m.Claim.Process] = true
		}
	}
	if high-low > 1 {
		w.t.Fatalf("%s: shares from %d to %d", w.said, low, high)
	}
	for u := range w.rules.Units {
		want := 1
		if w.rules.Sizes[u] >= 0 {
			want = min(1+w.rules.Standbys, len(processes))
		}
		if len(where[u]) != want {
			w.t.Fatalf("%s: unit %d is in %d places, want %d", w.said, u, len(where[u]), want)
		}
	}
}

// Over random histories: no unit has two owners or goes to where its state is not
// while others have it; whatever happened, the group comes to rest, balanced, with
// all copies in different processes; and a group that rests stays as it is.
func TestPlanProperties(t *testing.T) {
	t.Parallel()
	seed := seedtest.New(t)
	for n := range uint64(400) {
		w := &world{t: t, rnd: rand.New(rand.NewPCG(seed, n)), copies: map[string]map[int32]int64{}, running: map[string][]int32{}}
		w.said = fmt.Sprintf("seed %d history %d", seed, n)
		w.rules = assign.Rules{Units: int32(w.rnd.IntN(20)), Standbys: w.rnd.IntN(3), Close: 10, WarmUps: 1 + w.rnd.IntN(3)}
		for range w.rules.Units {
			w.rules.Sizes = append(w.rules.Sizes, []int64{assign.Stateless, 0, 5, 1000, 100_000}[w.rnd.IntN(5)])
			w.rules.Shared = append(w.rules.Shared, true)
		}
		for range 6 {
			if len(w.members) == 0 || w.rnd.IntN(3) > 0 {
				w.join()
			} else {
				w.die()
			}
			if len(w.members) > 0 {
				w.round()
			}
		}
		if len(w.members) == 0 {
			w.join()
		}
		var plan map[string]assign.Share
		for range 80 {
			plan = w.round()
		}
		w.calm(plan)
		if again := w.round(); shown(again) != shown(plan) {
			t.Fatalf("%s: a group that did not change moved from %v to %v", w.said, shown(plan), shown(again))
		}
		// The order of members does not matter.
		w.rnd.Shuffle(len(w.members), func(i, j int) { w.members[i], w.members[j] = w.members[j], w.members[i] })
		if again := w.round(); shown(again) != shown(plan) {
			t.Fatalf("%s: another order of members gave another plan", w.said)
		}
	}
}
