// Package assign decides which worker runs which tasks.
//
// The unit is a number: all tasks with that number, of every sub-topology, go
// to one worker. What a task writes to a repartition topic under its own key
// space then often stays with the worker, and one consumer and one producer
// serve all of them.
//
// The assignment is balanced (shares differ by at most one) and sticky (a unit
// stays where it was as long as balance allows), because a unit that moves
// takes the restore of its state with it. It is a pure function of the members
// and what they claim, so every member would compute the same as the leader.
//
// Members speak the bytes of Kafka's consumer protocol, so that brokers and
// tools see topics and partitions; the claims and units travel in its user
// data, behind a version byte.
package assign

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// Protocol is the name by which members agree on this assignment.
const Protocol = "millrace"

// version is the first byte of the user data. A member that meets a higher one
// refuses to balance: the application is being upgraded member by member, and
// an older leader must not guess.
const version = 1

// Claim is what a member last owned.
type Claim struct {
	Generation int32   // in which it owned them; -1 when it never did
	Units      []int32 // sorted
}

// Member is one worker.
type Member struct {
	ID       string
	Instance string
	Claim    Claim
}

// Balance gives each of the units 0 to n-1 to a member. The result has an entry
// for every member, sorted.
func Balance(members []Member, n int32) map[string][]int32 {
	members = slices.Clone(members)
	slices.SortFunc(members, compareMembers)
	plan := make(map[string][]int32, len(members))
	for _, m := range members {
		plan[m.ID] = nil
	}
	if len(members) == 0 {
		return plan
	}
	owner := owners(members, n)
	kept := make(map[string][]int32, len(members))
	for unit := range n {
		if o := owner[unit]; o != "" {
			kept[o] = append(kept[o], unit)
		}
	}
	// Who has most gets the larger shares, so that fewest units move.
	slices.SortStableFunc(members, func(a, b Member) int { return cmp.Compare(len(kept[b.ID]), len(kept[a.ID])) })
	share, larger := int(n)/len(members), int(n)%len(members)
	room := func(i int) int {
		if i < larger {
			return share + 1
		}
		return share
	}
	var free []int32
	for i, m := range members {
		have := kept[m.ID]
		if r := room(i); len(have) > r {
			free = append(free, have[r:]...)
			have = have[:r]
		}
		plan[m.ID] = have
	}
	for unit := range n {
		if owner[unit] == "" {
			free = append(free, unit)
		}
	}
	slices.Sort(free)
	for i, m := range members {
		take := min(room(i)-len(plan[m.ID]), len(free))
		plan[m.ID] = append(plan[m.ID], free[:take]...)
		free = free[take:]
		slices.Sort(plan[m.ID])
	}
	return plan
}

// owners finds for each unit the member with the newest claim to it.
func owners(members []Member, n int32) []string {
	owner := make([]string, n)
	newest := make([]int32, n)
	for _, m := range members {
		for _, u := range m.Claim.Units {
			if u < 0 || u >= n {
				continue // the topology has shrunk
			}
			if owner[u] == "" || m.Claim.Generation > newest[u] {
				owner[u], newest[u] = m.ID, m.Claim.Generation
			}
		}
	}
	return owner
}

func compareMembers(a, b Member) int {
	return cmp.Or(cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.ID, b.ID))
}

// ErrVersion reports user data of a later release.
var ErrVersion = errors.New("assign: newer version")

// Encode writes a claim as user data.
func (c Claim) Encode() []byte {
	b := append(make([]byte, 0, 9+4*len(c.Units)), version)
	b = binary.BigEndian.AppendUint32(b, uint32(c.Generation))
	b = binary.BigEndian.AppendUint32(b, uint32(len(c.Units)))
	for _, u := range c.Units {
		b = binary.BigEndian.AppendUint32(b, uint32(u))
	}
	return b
}

// Decode reads what Encode wrote.
func Decode(b []byte) (Claim, error) {
	if len(b) == 0 {
		return Claim{}, errors.New("assign: no user data")
	}
	if b[0] > version {
		return Claim{}, fmt.Errorf("%w: %d, this release knows %d", ErrVersion, b[0], version)
	}
	if len(b) < 9 {
		return Claim{}, fmt.Errorf("assign: %d bytes of user data, at least 9 are needed", len(b))
	}
	c := Claim{Generation: int32(binary.BigEndian.Uint32(b[1:]))}
	n := binary.BigEndian.Uint32(b[5:])
	if uint64(len(b)) != 9+4*uint64(n) {
		return Claim{}, fmt.Errorf("assign: %d units in %d bytes of user data", n, len(b))
	}
	for i := range n {
		c.Units = append(c.Units, int32(binary.BigEndian.Uint32(b[9+4*i:])))
	}
	return c, nil
}
