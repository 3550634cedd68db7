package assign

import "slices"

// Plan gives each member its share.
func Plan(members []Member, r Rules) map[string]Share {
	plan := make(map[string]Share, len(members))
	if len(members) == 0 {
		return plan
	}
	p := &planner{group: newGroup(members, r)}
	p.shares = make([]Share, len(members))
	p.run()
	p.standbys()
	where := p.where()
	for i, m := range p.members {
		s := &p.shares[i]
		slices.Sort(s.Units)
		slices.Sort(s.Standbys)
		slices.Sort(s.Warm)
		s.Map, s.Close = where, p.rules.Close
		plan[m.ID] = *s
	}
	return plan
}

// planner turns a goal into what is assigned now.
type planner struct {
	*group
	shares []Share
	runs   []int // by unit, who runs it from now on; -1 while it is on its way
	next   []int // by unit, who is to run it in the end
}

// run assigns the units, and the warm-ups of those that are to move.
func (p *planner) run() {
	p.next = p.goal()
	p.runs = make([]int, p.rules.Units)
	var far []int32
	for unit := range p.rules.Units {
		to := p.next[unit]
		if p.anyClose(unit) && !p.close(to, unit) {
			to = p.nearest(unit)
			far = append(far, unit)
		}
		if owner := p.owner[unit]; owner >= 0 && owner != to {
			// The owner lets go of it first. A copy at the new place goes on.
			p.runs[unit] = -1
			if _, ok := p.own(to, unit); ok {
				p.shares[to].Warm = append(p.shares[to].Warm, unit)
			}
			continue
		}
		p.runs[unit] = to
		p.shares[to].Units = append(p.shares[to].Units, unit)
	}
	// Those that have begun go on, then others as long as there is room.
	for _, begun := range []bool{true, false} {
		for _, unit := range far {
			to := p.next[unit]
			if _, ok := p.own(to, unit); ok != begun || slices.Contains(p.shares[to].Warm, unit) ||
				len(p.shares[to].Warm) >= p.rules.WarmUps {
				continue
			}
			p.shares[to].Warm = append(p.shares[to].Warm, unit)
		}
	}
}

// nearest is who runs a unit while its new worker warms up: its owner, or whoever
// lacks least, the less burdened first.
func (p *planner) nearest(unit int32) int {
	if o := p.owner[unit]; o >= 0 && p.close(o, unit) {
		return o
	}
	best := -1
	for i := range p.members {
		if !p.close(i, unit) {
			continue
		}
		if best < 0 || len(p.shares[i].Units) < len(p.shares[best].Units) {
			best = i
		}
	}
	return best
}

// where draws the map.
func (p *planner) where() Map {
	m := Map{Runs: make([]int32, p.rules.Units), Keeps: make([][]int32, p.rules.Units)}
	index := map[string]int32{}
	at := make([]int32, len(p.members))
	for i, member := range p.members {
		place := member.Claim.Process
		if place == "" {
			place = "\x00" + member.ID
		}
		if _, ok := index[place]; !ok {
			index[place] = int32(len(m.Addrs))
			m.Addrs = append(m.Addrs, member.Claim.Addr)
		}
		at[i] = index[place]
	}
	for unit := range p.rules.Units {
		m.Runs[unit] = -1
	}
	for i := range p.shares {
		for _, u := range p.shares[i].Units {
			m.Runs[u] = at[i]
		}
		for _, units := range [][]int32{p.shares[i].Standbys, p.shares[i].Warm} {
			for _, u := range units {
				m.Keeps[u] = append(m.Keeps[u], at[i])
			}
		}
	}
	return m
}
