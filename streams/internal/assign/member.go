package assign

import (
	"cmp"
	"slices"
)

// Protocol is the name by which members agree on this assignment.
const Protocol = "millrace"

// Claim is what a member says of itself.
type Claim struct {
	// Generation is the one in which it got the units it holds; -1 when it holds
	// none yet.
	Generation int32
	// Units are those it holds: nobody else may run them. Sorted.
	Units []int32
	// Copies is the state at this member, beside that of the units that it runs:
	// of standby copies, and of units that it holds but still restores.
	Copies []Copy
	// Process is one for all members that share stores, Rack where it stands,
	// "" if nobody cares, and Addr where it answers queries, "" if it does not.
	Process, Rack, Addr string
}

// Copy is the state of one unit somewhere.
type Copy struct {
	Unit int32
	Lag  int64 // in records that it lacks; UnknownLag when nobody has looked yet
}

// UnknownLag is the lag of a copy that is there, but not open.
const UnknownLag = -1

// Member is one worker.
type Member struct {
	ID       string
	Instance string
	Claim    Claim
}

// Share is what a member gets.
type Share struct {
	// Units are to be run, Standbys copied, and Warm copied with a word to the
	// group when the copy is close. Sorted.
	Units, Standbys, Warm []int32
	// Close is the leader's word for it.
	Close int64
	// Map says where everything is.
	Map Map
}

// Map says where units run and where copies of them are.
type Map struct {
	Addrs []string  // of processes; "" for one that answers no queries
	Runs  []int32   // by unit, the index of its process; -1 when nobody runs it
	Keeps [][]int32 // by unit, the indexes of processes with a copy of it
}

// Rules are what the leader goes by.
type Rules struct {
	// Units are numbered 0 to Units-1. Sizes is how many records the state of
	// each has, Stateless if it keeps none: those move freely. Shared says that
	// all its stores are on disk, where other members of the process can use
	// them.
	Units  int32
	Sizes  []int64
	Shared []bool
	// Standbys is how many copies each unit with state has beside the one that
	// works.
	Standbys int
	// Close is the lag up to which a copy counts as good as complete.
	Close int64
	// WarmUps is how many copies a member may make at a time to move units.
	WarmUps int
}

// Stateless is the size of a unit that keeps no state.
const Stateless = -1

func (r *Rules) stateful(unit int32) bool {
	return int(unit) < len(r.Sizes) && r.Sizes[unit] != Stateless
}

func (r *Rules) size(unit int32) int64 {
	if !r.stateful(unit) {
		return 0
	}
	return r.Sizes[unit]
}

func (r *Rules) shared(unit int32) bool { return int(unit) < len(r.Shared) && r.Shared[unit] }

// group is the members with what follows from their claims.
type group struct {
	rules   Rules
	members []Member
	owner   []int // by unit, the index of who holds it, -1 for nobody
	copies  []map[int32]int64
}

func newGroup(members []Member, r Rules) *group {
	g := &group{rules: r, members: slices.Clone(members), owner: make([]int, r.Units)}
	slices.SortFunc(g.members, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.ID, b.ID))
	})
	for u := range g.owner {
		g.owner[u] = -1
	}
	for i, m := range g.members {
		own := make(map[int32]int64, len(m.Claim.Copies))
		for _, c := range m.Claim.Copies {
			own[c.Unit] = c.Lag
		}
		g.copies = append(g.copies, own)
		for _, u := range m.Claim.Units {
			if u < 0 || u >= r.Units {
				continue // the topology has shrunk
			}
			if o := g.owner[u]; o < 0 || m.Claim.Generation > g.members[o].Claim.Generation {
				g.owner[u] = i
			}
		}
	}
	return g
}

func (g *group) process(i int) string { return g.members[i].Claim.Process }

// samePlace reports whether two members share their stores.
func (g *group) samePlace(i, j int) bool {
	return i == j || g.process(i) != "" && g.process(i) == g.process(j)
}

// own is what a member's own state of a unit lacks. known is false if it has none.
func (g *group) own(i int, unit int32) (lag int64, known bool) {
	if lag, ok := g.copies[i][unit]; ok {
		return lag, true
	}
	return 0, g.owner[unit] == i
}

// lag is what a member lacks of a unit's state, that of its process counted in.
func (g *group) lag(i int, unit int32) int64 {
	all := g.rules.size(unit)
	best := all
	for j := range g.members {
		if j != i && !(g.rules.shared(unit) && g.samePlace(i, j)) {
			continue
		}
		if lag, ok := g.own(j, unit); ok && lag != UnknownLag {
			best = min(best, lag)
		}
	}
	return best
}

// close reports whether a member may take a unit at once.
func (g *group) close(i int, unit int32) bool { return g.lag(i, unit) <= g.rules.Close }

// anyClose reports whether there is somebody who may.
func (g *group) anyClose(unit int32) bool {
	for i := range g.members {
		if g.close(i, unit) {
			return true
		}
	}
	return false
}
