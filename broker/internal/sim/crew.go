package sim

import (
	"fmt"
	"time"
)

// crew is all clients. Each post is held by one process at a time; its predecessor may be still around and not know it.
type crew struct {
	w        *world
	net      *network
	o        *oracle
	store    *store
	roster   *roster
	posts    []*post
	authors  []*post
	audience []*audience
	mirrors  []*mirror
	table    table
	enough   bool // no new work
	side     *side
}

// post is a place in the crew.
type post struct {
	name  string
	count int // processes that held it
	hire  func(p *process) employee
	now   employee
}

// employee is the client that holds a post.
type employee struct {
	p       *process
	start   func()
	replace func()
	idle    func() bool
}

func newCrew(w *world, net *network, o *oracle) *crew {
	return &crew{
		w: w, net: net, o: o, store: &store{w: w, have: map[int]bool{}}, roster: &roster{w: w, owners: map[string]string{}},
		table: table{long: w.chance(2)},
	}
}

func (c *crew) process(name string) *process { return &process{net: c.net, w: c.w, name: name} }

// populate starts the clients: authors (idempotent, transactions of version 2 and of version 1, and one that wants no answers; the
// others want them from the page cache now and then), copiers of both versions, a sink, and readers of everything.
func (c *crew) populate() {
	for i := range 4 {
		id := ""
		if i == 1 || i == 2 {
			id = fmt.Sprintf("author-%d", i)
		}
		c.authors = append(c.authors, c.open(fmt.Sprintf("author-%d", i), func(p *process) employee {
			a := newAuthor(newProducer(p, c.o, id, i != 2), c.where, func() bool { return c.enough })
			switch {
			case i == 3:
				a.acks = none
			case c.w.chance(3):
				a.acks = one
			}
			return employee{p, a.start, func() { a.replaced = true }, func() bool { return a.idle }}
		}))
	}
	for i := range 2 + c.w.rng.IntN(2) {
		id, static := fmt.Sprintf("copier-%d", i), c.w.chance(3)
		c.open(id, func(p *process) employee {
			m := &member{process: p, roster: c.roster, hasty: c.w.chance(3)}
			if static {
				m.instance = &id
			}
			one := newCopier(newProducer(p, c.o, id, i != 1), m)
			return employee{p, one.start, func() { one.replaced = true }, func() bool { return true }}
		})
	}
	c.open("sink", func(p *process) employee {
		s := &sink{process: p, o: c.o, store: c.store}
		return employee{p, s.start, func() {}, func() bool { return true }}
	})
	for _, topic := range []string{input, output} {
		for i := range int32(partitions) {
			committedOnly := !c.w.chance(3)
			a := newAudience(c.process(fmt.Sprintf("reader-%s-%d-%v", topic, i, committedOnly)), c.o, partitionOf{topic, i}, committedOnly)
			c.audience = append(c.audience, a)
			a.start()
		}
	}
	for i := range int32(partitions) {
		m := newMirror(c.process(fmt.Sprintf("mirror-%d", i)), c.o, partitionOf{keyed, i}, c.table.long, func() *view { return c.side.views(keyed, i) })
		c.mirrors = append(c.mirrors, m)
		m.begin()
	}
}

// where is a partition to write to: mostly one of the input, whose records are copied, now and then one of a topic that may be
// gone soon.
func (c *crew) where() partitionOf {
	if c.w.now < c.side.until && !c.o.dropped[c.side.hot] && c.w.chance(2) {
		return partitionOf{c.side.hot, int32(c.w.rng.IntN(partitions))}
	}
	if c.w.chance(8) {
		return partitionOf{relaxed, int32(c.w.rng.IntN(partitions))}
	}
	if c.w.chance(6) {
		return partitionOf{keyed, int32(c.w.rng.IntN(partitions))}
	}
	if len(c.side.topics) > 0 && c.w.chance(4) {
		return partitionOf{c.side.topics[c.w.rng.IntN(len(c.side.topics))], int32(c.w.rng.IntN(partitions))}
	}
	return partitionOf{input, int32(c.w.rng.IntN(partitions))}
}

// open makes a post and fills it.
func (c *crew) open(name string, hire func(*process) employee) *post {
	p := &post{name: name, hire: hire}
	c.posts = append(c.posts, p)
	c.fill(p)
	return p
}

// fill puts a new process into a post. One that is still there, as after a kill and a replacement at once, is told: two that both
// go on would fence each other for ever.
func (c *crew) fill(p *post) {
	if p.now.p != nil {
		p.now.replace()
	}
	p.count++
	p.now = p.hire(c.process(fmt.Sprintf("%s.%d", p.name, p.count)))
	p.now.start()
}

// disturb does something to one client: a kill, a pause, or a pause in which another takes its place.
func (c *crew) disturb() {
	p := c.posts[c.w.rng.IntN(len(c.posts))]
	switch c.w.rng.IntN(3) {
	case 0:
		p.now.p.kill()
		c.w.after(c.w.between(0, 50*time.Millisecond), "successor", nil, func() { c.fill(p) })
	case 1:
		p.now.p.pause(c.w.between(time.Millisecond, 1200*time.Millisecond))
	case 2:
		p.now.p.pause(c.w.between(10*time.Millisecond, 1200*time.Millisecond))
		c.fill(p)
	}
}

// busy names a client that has not come to its end.
func (c *crew) busy() string {
	for _, p := range c.posts {
		if p.now.p.life.over {
			c.fill(p) // it gave up, as nothing that it was told made sense to it
			return p.name + " begins anew"
		}
	}
	for _, p := range c.authors {
		if !p.now.idle() {
			return p.name + " is at work"
		}
	}
	if missing := c.o.uncopied(); missing != nil {
		return fmt.Sprintf("record %d at %s-%d offset %d is not copied", missing.id, missing.topic, missing.partition, missing.at)
	}
	if n := len(c.o.committedOf(output)); n != len(c.store.rows) {
		return fmt.Sprintf("the sink has %d rows, the output %d records", len(c.store.rows), n)
	}
	return ""
}

// final checks what must hold at the end.
func (c *crew) final() {
	c.o.final()
	for _, i := range c.o.committedOf(output) {
		if !c.store.have[i.id] {
			c.w.fail("the sink has not got record %d", i.id)
		}
	}
	for _, a := range c.audience {
		a.complete()
	}
}
