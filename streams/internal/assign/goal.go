package assign

import (
	"cmp"
	"slices"
)

// goal gives each unit to a member, as if moving cost nothing but is to be
// avoided. The result is an index by unit.
func (g *group) goal() []int {
	n := g.rules.Units
	kept := make([][]int32, len(g.members))
	var free []int32
	for unit := range n {
		if h := g.home(unit); h >= 0 {
			kept[h] = append(kept[h], unit)
		} else {
			free = append(free, unit)
		}
	}
	room := g.rooms(kept)
	for i := range kept {
		kept[i], free = g.cut(i, kept, room, free)
	}
	slices.Sort(free)
	free = g.giveToCopies(kept, room, free)
	for i := range kept {
		take := min(room[i]-len(kept[i]), len(free))
		kept[i] = append(kept[i], free[:take]...)
		free = free[take:]
	}
	to := make([]int, n)
	for i, units := range kept {
		for _, u := range units {
			to[u] = i
		}
	}
	return to
}

// home is where a unit's state is: at its owner, or whoever has a close copy when
// the owner is still restoring; else with the one that has most of it.
func (g *group) home(unit int32) int {
	o := g.owner[unit]
	if o >= 0 && (g.close(o, unit) || !g.rules.stateful(unit)) {
		return o
	}
	best, bestLag := -1, int64(0)
	for i := range g.members {
		lag, ok := g.own(i, unit)
		switch {
		case !ok, o >= 0 && (lag == UnknownLag || lag > g.rules.Close):
			continue // not better than the owner
		case lag == UnknownLag:
			lag = max(g.rules.size(unit)-1, 0) // better than nothing
		}
		if best < 0 || lag < bestLag {
			best, bestLag = i, lag
		}
	}
	if best < 0 {
		return o
	}
	return best
}

// rooms is how many units each member may have. Who has most gets the larger
// shares, so that fewest units move.
func (g *group) rooms(kept [][]int32) []int {
	order := make([]int, len(kept))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(kept[b]), len(kept[a])) })
	share, larger := int(g.rules.Units)/len(kept), int(g.rules.Units)%len(kept)
	room := make([]int, len(kept))
	for at, i := range order {
		room[i] = share
		if at < larger {
			room[i]++
		}
	}
	return room
}

// cut takes from a member what is over its room: first units that somebody with
// room has a copy of, the one with the smallest lag before others, then those with
// the highest numbers.
func (g *group) cut(i int, kept [][]int32, room []int, free []int32) (left, all []int32) {
	over := len(kept[i]) - room[i]
	if over <= 0 {
		return kept[i], free
	}
	elsewhere := func(unit int32) int64 {
		best := int64(1) << 62
		for j := range kept {
			if lag, ok := g.own(j, unit); ok && j != i && len(kept[j]) < room[j] {
				if lag == UnknownLag {
					lag = g.rules.size(unit)
				}
				best = min(best, max(lag, g.rules.Close)) // what is close is equally close
			}
		}
		return best
	}
	order := slices.Clone(kept[i])
	slices.SortStableFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(elsewhere(a), elsewhere(b)), cmp.Compare(b, a))
	})
	gone := order[:over]
	left = slices.DeleteFunc(slices.Clone(kept[i]), func(u int32) bool { return slices.Contains(gone, u) })
	return left, append(free, gone...)
}

// giveToCopies gives free units to members that have room and a copy, and returns
// the rest.
func (g *group) giveToCopies(kept [][]int32, room []int, free []int32) (rest []int32) {
	for _, unit := range free {
		best, bestLag := -1, int64(0)
		for i := range kept {
			lag, ok := g.own(i, unit)
			if !ok || len(kept[i]) >= room[i] {
				continue
			}
			if lag == UnknownLag {
				lag = g.rules.size(unit)
			}
			if lag = max(lag, g.rules.Close); best < 0 || lag < bestLag {
				best, bestLag = i, lag
			}
		}
		if best < 0 {
			rest = append(rest, unit)
			continue
		}
		kept[best] = append(kept[best], unit)
	}
	return rest
}
