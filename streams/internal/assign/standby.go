package assign

import "slices"

// standbys gives out the copies.
func (p *planner) standbys() {
	if p.rules.Standbys <= 0 {
		return
	}
	places := p.places()
	stateful := 0
	for unit := range p.rules.Units {
		if p.rules.stateful(unit) {
			stateful++
		}
	}
	total := stateful * min(p.rules.Standbys, len(places)-1)
	room := (total + len(places) - 1) / len(places)
	for unit := range p.rules.Units {
		if p.rules.stateful(unit) {
			p.copy(unit, places, room)
		}
	}
}

// place is a process with its members.
type place struct {
	members []int
	rack    string
	load    int // copies given to it
}

func (p *planner) places() []*place {
	var places []*place
	for i := range p.members {
		at := slices.IndexFunc(places, func(q *place) bool { return p.samePlace(q.members[0], i) })
		if at < 0 {
			at = len(places)
			places = append(places, &place{rack: p.members[i].Claim.Rack})
		}
		places[at].members = append(places[at].members, i)
	}
	return places
}

// copy chooses the places of a unit's copies.
func (p *planner) copy(unit int32, places []*place, room int) {
	racks := map[string]bool{}
	taken := make([]bool, len(places))
	works := p.runs[unit]
	if works < 0 {
		works = p.next[unit]
	}
	for i, q := range places {
		here := slices.Contains(q.members, works)
		taken[i] = here || slices.ContainsFunc(q.members, func(m int) bool { return slices.Contains(p.shares[m].Warm, unit) })
		if here {
			racks[q.rack] = true
		}
	}
	var far []int
	for range p.rules.Standbys {
		best := -1
		for i, q := range places {
			if !taken[i] && (best < 0 || p.better(unit, q, places[best], racks, room)) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		q := places[best]
		taken[best], racks[q.rack] = true, true
		q.load++
		if m, near := p.keeper(unit, q); near {
			p.shares[m].Standbys = append(p.shares[m].Standbys, unit)
		} else {
			far = append(far, m)
		}
	}
	p.begin(unit, far, places, taken)
}

// begin starts copies from nothing. While they are far, as many close ones stay
// where they are, and the new ones say when they are close.
func (p *planner) begin(unit int32, far []int, places []*place, taken []bool) {
	stay := 0
	for i, q := range places {
		if taken[i] || stay == len(far) {
			continue
		}
		if m, near := p.keeper(unit, q); near {
			p.shares[m].Standbys = append(p.shares[m].Standbys, unit)
			stay++
		}
	}
	for n, m := range far {
		if n < stay {
			p.shares[m].Warm = append(p.shares[m].Warm, unit)
		} else {
			p.shares[m].Standbys = append(p.shares[m].Standbys, unit)
		}
	}
}

// better compares two places for a copy: another rack, then room, then state that
// is there already, then the smaller burden, then the order.
func (p *planner) better(unit int32, a, b *place, racks map[string]bool, room int) bool {
	for _, test := range []func(*place) int{
		func(q *place) int { return number(racks[q.rack]) },
		func(q *place) int { return number(q.load >= room) },
		func(q *place) int {
			_, near := p.keeper(unit, q)
			return number(!near)
		},
		func(q *place) int { return q.load },
	} {
		if x, y := test(a), test(b); x != y {
			return x < y
		}
	}
	return false
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// keeper is the member of a place that is to keep a copy of a unit: the one that
// has state of it, else the one with the fewest copies. near says that what it has
// is close.
func (p *planner) keeper(unit int32, q *place) (m int, near bool) {
	best := -1
	for _, i := range q.members {
		lag, ok := p.own(i, unit)
		if ok && lag != UnknownLag && lag <= p.rules.Close {
			return i, true
		}
		if best < 0 || len(p.shares[i].Standbys) < len(p.shares[best].Standbys) {
			best = i
		}
	}
	return best, false
}
