package assign_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/millrace/millrace/streams/internal/assign"
)

// units shows who runs what.
func units(plan map[string]assign.Share) string {
	runs := map[string][]int32{}
	for id, s := range plan {
		runs[id] = s.Units
	}
	return fmt.Sprint(runs)
}

func claim(gen int32, units ...int32) assign.Claim {
	return assign.Claim{Generation: gen, Units: units}
}

// Without state, units move freely, one generation after their owner has let go.
func TestWhoRuns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		n       int32
		members []assign.Member
		want    string
	}{
		{"nobody", 4, nil, "map[]"},
		{"alone", 3, []assign.Member{{ID: "a"}}, "map[a:[0 1 2]]"},
		{"fresh", 5, []assign.Member{{ID: "b"}, {ID: "a"}}, "map[a:[0 1 2] b:[3 4]]"},
		{"instance orders before id", 2, []assign.Member{{ID: "a", Instance: "y"}, {ID: "b", Instance: "x"}}, "map[a:[1] b:[0]]"},
		{"stays", 4, []assign.Member{{ID: "a", Claim: claim(1, 1, 3)}, {ID: "b", Claim: claim(1, 0, 2)}}, "map[a:[1 3] b:[0 2]]"},
		{"newcomer waits for what is given up", 4, []assign.Member{{ID: "a", Claim: claim(-1)}, {ID: "b", Claim: claim(1, 0, 1, 2, 3)}}, "map[a:[] b:[0 1]]"},
		{"newcomer gets what was given up", 4, []assign.Member{{ID: "a", Claim: claim(2)}, {ID: "b", Claim: claim(2, 0, 1)}}, "map[a:[2 3] b:[0 1]]"},
		{"one leaves", 5, []assign.Member{{ID: "a", Claim: claim(1, 0, 1)}, {ID: "b", Claim: claim(1, 3)}}, "map[a:[0 1 2] b:[3 4]]"},
		{"newest claim wins", 2, []assign.Member{{ID: "a", Claim: claim(1, 0, 1)}, {ID: "b", Claim: claim(2, 0)}}, "map[a:[1] b:[0]]"},
		{"more members than units", 1, []assign.Member{{ID: "a"}, {ID: "b", Claim: claim(3, 0)}}, "map[a:[] b:[0]]"},
		{"claim to what is gone", 1, []assign.Member{{ID: "a", Claim: claim(3, 0, 7, -1)}}, "map[a:[0]]"},
	} {
		if got := units(assign.Plan(c.members, assign.Rules{Units: c.n})); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// shown is a plan in one line: what each member runs, keeps and warms up.
func shown(plan map[string]assign.Share) string {
	out := map[string]string{}
	for id, s := range plan {
		out[id] = fmt.Sprint(s.Units, s.Standbys, s.Warm)
	}
	return fmt.Sprint(out)
}

func TestStateMovesOnlyWhenClose(t *testing.T) {
	t.Parallel()
	full := func(c assign.Claim, process string, copies ...assign.Copy) assign.Claim {
		c.Process, c.Copies = process, copies
		return c
	}
	big := assign.Rules{Units: 2, Sizes: []int64{1000, 1000}, Shared: []bool{true, true}, Close: 100, WarmUps: 1}
	with := func(r assign.Rules, standbys int) assign.Rules {
		r.Standbys = standbys
		return r
	}
	for _, c := range []struct {
		name    string
		rules   assign.Rules
		members []assign.Member
		want    string
	}{
		{"a newcomer warms up", big, []assign.Member{
			{ID: "a", Claim: full(claim(1, 0, 1), "p")}, {ID: "b", Claim: full(claim(-1), "q")},
		}, "map[a:[0 1] [] [] b:[] [] [1]]"},
		{"and goes on while it is far", big, []assign.Member{
			{ID: "a", Claim: full(claim(1, 0, 1), "p")}, {ID: "b", Claim: full(claim(-1), "q", assign.Copy{Unit: 1, Lag: 500})},
		}, "map[a:[0 1] [] [] b:[] [] [1]]"},
		{"is close: the owner lets go", big, []assign.Member{
			{ID: "a", Claim: full(claim(1, 0, 1), "p")}, {ID: "b", Claim: full(claim(1), "q", assign.Copy{Unit: 1, Lag: 50})},
		}, "map[a:[0] [] [] b:[] [] [1]]"},
		{"has let go", big, []assign.Member{
			{ID: "a", Claim: full(claim(2, 0), "p")}, {ID: "b", Claim: full(claim(2), "q", assign.Copy{Unit: 1, Lag: 50})},
		}, "map[a:[0] [] [] b:[1] [] []]"},
		{"a second worker of the process needs no copy", big, []assign.Member{
			{ID: "a", Claim: full(claim(1, 0, 1), "p")}, {ID: "b", Claim: full(claim(-1), "p")},
		}, "map[a:[0] [] [] b:[] [] []]"},
		{"the owner died, a copy takes over", with(big, 1), []assign.Member{
			{ID: "b", Claim: full(claim(3, 0), "q", assign.Copy{Unit: 1, Lag: 5})}, {ID: "c", Claim: full(claim(3), "r")},
		}, "map[b:[0 1] [] [] c:[] [0] [1]]"},
		{"the owner restores, somebody else has a copy", big, []assign.Member{
			{ID: "a", Claim: full(claim(1, 0, 1), "p", assign.Copy{Unit: 1, Lag: 900})},
			{ID: "b", Claim: full(claim(-1), "q", assign.Copy{Unit: 1, Lag: 7})},
		}, "map[a:[0] [] [] b:[] [] [1]]"},
		{"nobody has state: it is balanced at once", big, []assign.Member{
			{ID: "a", Claim: full(claim(1, 0, 1), "p", assign.Copy{Unit: 0, Lag: 900}, assign.Copy{Unit: 1, Lag: 900})},
			{ID: "b", Claim: full(claim(-1), "q")},
		}, "map[a:[0] [] [] b:[] [] []]"},
		{"a folder of before is better than nothing", big, []assign.Member{
			{ID: "a", Claim: full(claim(-1), "p", assign.Copy{Unit: 1, Lag: assign.UnknownLag})}, {ID: "b", Claim: full(claim(-1), "q")},
		}, "map[a:[1] [] [] b:[0] [] []]"},
		{"copies lie elsewhere", with(big, 1), []assign.Member{
			{ID: "a", Claim: full(claim(1, 0), "p")}, {ID: "b", Claim: full(claim(1, 1), "q")},
		}, "map[a:[0] [1] [] b:[1] [0] []]"},
		{"one process keeps no copy of its own", with(big, 1), []assign.Member{
			{ID: "a", Claim: full(claim(1, 0), "p")}, {ID: "b", Claim: full(claim(1, 1), "p")},
		}, "map[a:[0] [] [] b:[1] [] []]"},
	} {
		if got := shown(assign.Plan(c.members, c.rules)); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", c.name, got, c.want)
		}
	}
}

func TestCopiesLieInOtherRacks(t *testing.T) {
	t.Parallel()
	var members []assign.Member
	for i, rack := range []string{"east", "east", "west", "west", "north"} {
		id := fmt.Sprint(i)
		members = append(members, assign.Member{ID: id, Claim: assign.Claim{Generation: -1, Process: id, Rack: rack}})
	}
	r := assign.Rules{Units: 10, Sizes: make([]int64, 10), Standbys: 2}
	plan := assign.Plan(members, r)
	for unit := range r.Units {
		racks := map[string]int{}
		for _, m := range members {
			s := plan[m.ID]
			if slices.Contains(s.Units, unit) || slices.Contains(s.Standbys, unit) || slices.Contains(s.Warm, unit) {
				racks[m.Claim.Rack]++
			}
		}
		if len(racks) != 3 {
			t.Errorf("unit %d is in %v, want three racks", unit, racks)
		}
	}
}

func TestBytes(t *testing.T) {
	t.Parallel()
	for _, c := range []assign.Claim{{Generation: -1}, {
		Generation: 7, Units: []int32{0, 3, 1 << 20}, Copies: []assign.Copy{{Unit: 2, Lag: assign.UnknownLag}, {Unit: 5, Lag: 1 << 40}},
		Process: "p", Rack: "r", Addr: "http://a:1",
	}} {
		got, err := assign.Decode(c.Encode())
		if err != nil || fmt.Sprint(got) != fmt.Sprint(c) {
			t.Errorf("%v came back as %v, %v", c, got, err)
		}
		for n := range c.Encode() {
			if _, err := assign.Decode(c.Encode()[:n]); err == nil {
				t.Errorf("%v decoded from %d bytes", c, n)
			}
		}
	}
	s := assign.Share{Units: []int32{1}, Standbys: []int32{2, 3}, Warm: []int32{4}, Close: 9,
		Map: assign.Map{Addrs: []string{"a", ""}, Runs: []int32{0, -1}, Keeps: [][]int32{{1}, nil}}}
	got, err := assign.DecodeShare(s.Encode())
	if err != nil || fmt.Sprint(got) != fmt.Sprint(s) {
		t.Errorf("%v came back as %v, %v", s, got, err)
	}
	for n := range s.Encode() {
		if _, err := assign.DecodeShare(s.Encode()[:n]); err == nil {
			t.Errorf("%v decoded from %d bytes", s, n)
		}
	}
}
