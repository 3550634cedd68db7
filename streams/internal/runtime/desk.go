package runtime

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/millrace/millrace/streams/internal/assign"
)

// desk takes questions to whoever has the store: a worker, which answers between two
// records, the keeper of a copy, or another process. Safe for concurrent use.
type desk struct {
	plan *plan
	self string // where this process answers

	mu         sync.Mutex
	at         map[taskID]*place // by workers of this process
	places     map[int]*place
	where      assign.Map
	generation int32
}

// place is a worker as the desk knows it.
type place struct {
	inbox  chan *question
	keeper *keeper
	copies map[taskID]bool
	done   <-chan struct{} // closed when the worker has ended
}

func newDesk(p *plan, self string) *desk {
	return &desk{plan: p, self: self, at: map[taskID]*place{}, places: map[int]*place{}}
}

// open makes a worker known.
func (d *desk) open(number int, k *keeper, done <-chan struct{}) *place {
	p := &place{inbox: make(chan *question, 64), keeper: k, done: done}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.places[number] = p
	return p
}

// close forgets a worker that ends.
func (d *desk) close(number int, p *place) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.places[number] == p {
		delete(d.places, number)
	}
	maps.DeleteFunc(d.at, func(_ taskID, at *place) bool { return at == p })
}

// runs notes which tasks a worker runs and which copies it keeps.
func (d *desk) runs(p *place, tasks, copies []taskID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.at, func(_ taskID, at *place) bool { return at == p })
	for _, id := range tasks {
		d.at[id] = p
	}
	p.copies = map[taskID]bool{}
	for _, id := range copies {
		p.copies[id] = true
	}
}

// learn notes where everything is from a generation on.
func (d *desk) learn(generation int32, where assign.Map) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if generation >= d.generation && len(where.Runs) > 0 {
		d.generation, d.where = generation, where
	}
}

// Place says where the rows of a unit are.
type Place struct {
	// Addr is where the process that runs it answers, "" if it says nothing of that;
	// Standbys are those with copies. Here and HereCopy tell of this process.
	Addr           string
	Standbys       []string
	Here, HereCopy bool
	// Known is false while the unit is on its way from one process to another.
	Known bool
}

// store finds a store of the topology. For a global table sub is -1.
func (d *desk) store(name string) (sub int, err error) {
	for i := range d.plan.app.Subs {
		for _, s := range d.plan.app.Subs[i].Stores {
			if s.Name == name {
				return i, nil
			}
		}
	}
	for _, g := range d.plan.app.Globals {
		if g.Name == name {
			return -1, nil
		}
	}
	return 0, fmt.Errorf("%w: %s", ErrNoStore, name)
}

// units is how many units have a part of a store; 1 for a global table.
func (d *desk) units(sub int) int32 {
	if sub < 0 {
		return 1
	}
	return d.plan.counts.Tasks[d.plan.app.Subs[sub].Name]
}

// place finds where a unit of a sub-topology is.
func (d *desk) place(id taskID) Place {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := Place{Here: id.sub < 0 || d.at[id] != nil}
	for _, w := range d.places {
		p.HereCopy = p.HereCopy || w.copies[id]
	}
	if id.sub < 0 {
		p.Known = true
		return p
	}
	m := d.where
	if int(id.unit) < len(m.Runs) && m.Runs[id.unit] >= 0 {
		p.Addr, p.Known = m.Addrs[m.Runs[id.unit]], true
	}
	if int(id.unit) < len(m.Keeps) {
		for _, i := range m.Keeps[id.unit] {
			if a := m.Addrs[i]; a != "" {
				p.Standbys = append(p.Standbys, a)
			}
		}
	}
	return p
}

// running asks the worker that runs the task.
func (d *desk) running(q *question) (Answer, error) {
	d.mu.Lock()
	p := d.at[q.id]
	if q.id.sub < 0 {
		for _, n := range slices.Sorted(maps.Keys(d.places)) {
			p = d.places[n] // any worker has all of a global table
		}
	}
	d.mu.Unlock()
	if p == nil {
		return Answer{}, ErrNotHere
	}
	select {
	case p.inbox <- q:
	case <-p.done:
		return Answer{}, ErrNotHere
	case <-q.ctx.Done():
		return Answer{}, q.ctx.Err()
	}
	return q.wait(p.done)
}

// copied asks the keeper of a copy.
func (d *desk) copied(q *question) (Answer, error) {
	d.mu.Lock()
	var p *place
	for _, n := range slices.Sorted(maps.Keys(d.places)) {
		if d.places[n].copies[q.id] {
			p = d.places[n]
		}
	}
	d.mu.Unlock()
	if p == nil {
		return Answer{}, ErrNotHere
	}
	p.keeper.command(func() { p.keeper.answer(q) })
	return q.wait(p.done)
}

// wait waits for the answer, or for the end of whoever was to give it.
func (q *question) wait(gone <-chan struct{}) (Answer, error) {
	select {
	case r := <-q.reply:
		return r.Answer, r.err
	case <-gone:
		return Answer{}, ErrNotHere
	case <-q.ctx.Done():
		return Answer{}, q.ctx.Err()
	}
}
