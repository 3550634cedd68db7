package sim

import "time"

// store is a database outside of the broker: rows and positions change together, and only for whoever claimed it last.
type store struct {
	w        *world
	claims   int
	position [partitions]int64
	rows     []int
	have     map[int]bool
}

// commit takes rows and the position behind them, from the owner of a claim.
func (s *store) commit(claim int, part int32, from int64, records []got, next int64) bool {
	if claim != s.claims || from != s.position[part] {
		return false
	}
	for _, g := range records {
		if s.have[g.id] {
			s.w.fail("the sink gets record %d twice", g.id)
		}
		s.have[g.id] = true
		s.rows = append(s.rows, g.id)
	}
	s.position[part] = next
	return true
}

// sink moves the output into the store, as a connector does.
type sink struct {
	*process
	o     *oracle
	store *store
	claim int
}

func (s *sink) start() {
	s.store.claims++
	s.claim = s.store.claims
	for p := range int32(partitions) {
		r := &reader{process: s.process, o: s.o, of: partitionOf{output, p}, position: s.store.position[p], committed: true}
		r.moved = func() { s.w.fail("%s: position %d of %v is out of range", s.name, r.position, r.of) }
		r.take = func(records []got, next int64) {
			s.after(s.w.between(0, s.pace()), "store", func() { // it takes a while, in which another may have claimed
				if !s.store.commit(s.claim, p, r.position, records, next) {
					s.kill()
					return
				}
				r.position = next
				s.poll(r)
			})
		}
		s.poll(r)
	}
}

func (s *sink) poll(r *reader) {
	r.fetch(200*time.Millisecond, func() { s.after(s.w.between(0, 20*s.pace()), "poll", func() { s.poll(r) }) })
}
