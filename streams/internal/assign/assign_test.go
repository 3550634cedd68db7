package assign_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace/millrace/streams/internal/assign"
)

func TestBalance(t *testing.T) {
	t.Parallel()
	claim := func(gen int32, units ...int32) assign.Claim { return assign.Claim{Generation: gen, Units: units} }
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
		{"newcomer", 4, []assign.Member{{ID: "a"}, {ID: "b", Claim: claim(1, 0, 1, 2, 3)}}, "map[a:[2 3] b:[0 1]]"},
		{"one leaves", 5, []assign.Member{{ID: "a", Claim: claim(1, 0, 1)}, {ID: "b", Claim: claim(1, 3)}}, "map[a:[0 1 2] b:[3 4]]"},
		{"newest claim wins", 2, []assign.Member{{ID: "a", Claim: claim(1, 0, 1)}, {ID: "b", Claim: claim(2, 0)}}, "map[a:[1] b:[0]]"},
		{"more members than units", 1, []assign.Member{{ID: "a"}, {ID: "b", Claim: claim(3, 0)}}, "map[a:[] b:[0]]"},
		{"claim to what is gone", 1, []assign.Member{{ID: "a", Claim: claim(3, 0, 7, -1)}}, "map[a:[0]]"},
	} {
		if got := fmt.Sprint(assign.Balance(c.members, c.n)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// Over random histories: everything is assigned once, shares differ by at most
// one, a stable group keeps everything, and no more moves than balance needs.
func TestBalanceProperties(t *testing.T) {
	t.Parallel()
	const seed = 11
	rnd := rand.New(rand.NewPCG(seed, seed))
	for round := range 300 {
		n := int32(rnd.IntN(30))
		var members []assign.Member
		gen := int32(0)
		for range 10 {
			switch {
			case len(members) == 0 || rnd.IntN(2) == 0:
				members = append(members, assign.Member{ID: fmt.Sprintf("m%d", rnd.IntN(1000)*20+len(members)), Claim: assign.Claim{Generation: -1}})
			default:
				members = slices.Delete(members, 0, 1)
			}
			plan := assign.Balance(members, n)
			check(t, fmt.Sprintf("seed %d round %d", seed, round), members, plan, n)
			gen++
			for i := range members {
				members[i].Claim = assign.Claim{Generation: gen, Units: plan[members[i].ID]}
			}
			again := assign.Balance(members, n)
			if fmt.Sprint(again) != fmt.Sprint(plan) {
				t.Fatalf("seed %d round %d: a group that did not change moved from %v to %v", seed, round, plan, again)
			}
		}
	}
}

func check(t *testing.T, where string, members []assign.Member, plan map[string][]int32, n int32) {
	t.Helper()
	var all []int32
	low, high := int(n), 0
	moved, over := 0, 0
	for _, m := range members {
		units := plan[m.ID]
		all = append(all, units...)
		low, high = min(low, len(units)), max(high, len(units))
		for _, u := range m.Claim.Units {
			if !slices.Contains(units, u) {
				moved++
			}
		}
		over += max(0, len(m.Claim.Units)-int(n)/len(members))
	}
	slices.Sort(all)
	for i := range all {
		if all[i] != int32(i) {
			t.Fatalf("%s: units %v", where, all)
		}
	}
	if len(members) > 0 && (len(all) != int(n) || high-low > 1) {
		t.Fatalf("%s: %d of %d units, shares %d to %d", where, len(all), n, low, high)
	}
	if moved > over {
		t.Fatalf("%s: %d units moved, balance needs at most %d", where, moved, over)
	}
}

func TestClaimBytes(t *testing.T) {
	t.Parallel()
	for _, c := range []assign.Claim{{Generation: -1}, {Generation: 7, Units: []int32{0, 3, 1 << 20}}} {
		got, err := assign.Decode(c.Encode())
		if err != nil || got.Generation != c.Generation || !slices.Equal(got.Units, c.Units) {
			t.Errorf("%v came back as %v, %v", c, got, err)
		}
	}
	if _, err := assign.Decode([]byte{9, 0, 0}); !errors.Is(err, assign.ErrVersion) {
		t.Errorf("newer version: %v", err)
	}
	for _, b := range [][]byte{nil, {1}, {1, 0, 0, 0, 0, 255, 255, 255, 255}, {1, 0, 0, 0, 0, 0, 0, 0, 1}} {
		if _, err := assign.Decode(b); err == nil {
			t.Errorf("%v decoded", b)
		}
	}
}
