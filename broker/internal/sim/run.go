package sim

import (
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"time"
)

// Options of a run. The zero value is a run of the default size.
type Options struct {
	Seed uint64
	// Steps is for how many steps things go wrong; 0 is 1,600. Then faults stop, and everything must come to an end.
	Steps int
	// Trace gets a line for everything that happens; nil keeps only the end of it, for the error.
	Trace io.Writer
	// Log gets what the broker logs; nil discards.
	Log slog.Handler
}

// Result is what a run was made of, the same for the same seed.
type Result struct {
	Steps, Runs, Records, Committed, Copied int
	Virtual                                 time.Duration
}

// defaultSteps and the quiet phase behind them make about 2,500 steps.
const defaultSteps = 1600

// limit is within how many steps, and in which virtual time, everything must end once faults have stopped.
const (
	quietSteps = 30_000
	quietTime  = 20 * time.Minute
)

// simulation is one run.
type simulation struct {
	w        *world
	n        *node
	net      *network
	o        *oracle
	obs      *observer
	authors  []*author
	audience []*audience
	quiet    bool // no more faults, no new work
	ready    bool
}

// Run runs a seed. The error is a violation, with the last lines of the trace; the same seed gives the same trace, byte for byte.
func Run(o Options) (r Result, err error) {
	if o.Steps == 0 {
		o.Steps = defaultSteps
	}
	if o.Log == nil {
		o.Log = slog.DiscardHandler
	}
	s := newSimulation(o)
	defer func() {
		if p := recover(); p != nil {
			s.w.fail("panic: %v\n%s", p, debug.Stack())
		}
		r = s.result()
		if s.w.failure != nil {
			err = fmt.Errorf("seed %d, step %d: %w\n%s", o.Seed, s.w.count, s.w.failure, s.w.trace.tail())
		} else if s.w.trace.err != nil {
			err = fmt.Errorf("trace: %w", s.w.trace.err)
		}
	}()
	s.run(o.Steps)
	return r, nil
}

func newSimulation(o Options) *simulation {
	w := newWorld(o.Seed, o.Trace)
	s := &simulation{w: w, o: newOracle(w)}
	s.n = newNode(w, o.Log)
	s.net = &network{w: w, n: s.n, delay: w.between(200*time.Microsecond, 5*time.Millisecond)}
	s.obs = newObserver(w, s.n, s.o)
	s.n.down = s.net.cutAll
	w.settled = func(int) {
		s.n.settled()
		s.obs.look()
	}
	return s
}

func (s *simulation) result() Result {
	return Result{
		Steps: s.w.count, Runs: s.n.runs, Records: len(s.o.items), Copied: len(s.o.copied),
		Committed: len(s.o.committedOf(input)), Virtual: s.w.now,
	}
}

// run is the whole life of a simulation.
func (s *simulation) run(steps int) {
	s.n.start(0)
	a := &admin{s.process("admin")}
	a.create(input, partitions, smallSegments(), func() {
		a.create(output, partitions, smallSegments(), s.populate)
	})
	for s.w.count < steps && s.w.next(forever) {
		s.harm()
	}
	s.heal()
	until, last := s.w.now+quietTime, s.w.count+quietSteps
	for s.w.failure == nil && !s.over() {
		if s.w.count > last || s.w.now > until || !s.w.next(forever) {
			s.w.fail("nothing goes wrong any more, and there is no end: %s", s.stuck())
		}
	}
	s.final()
}

func (s *simulation) process(name string) *process {
	return &process{net: s.net, w: s.w, name: name}
}

// populate starts the clients.
func (s *simulation) populate() {
	s.ready = true
	for i := range 3 {
		p := s.process(fmt.Sprintf("author-%d", i))
		id := ""
		if i > 0 {
			id = fmt.Sprintf("txn-%d", i)
		}
		a := newAuthor(newProducer(p, s.o, id, i != 2), func() bool { return s.quiet })
		s.authors = append(s.authors, a)
		a.start()
	}
	for i := range int32(partitions) {
		for _, c := range []bool{false, true} {
			a := newAudience(s.process(fmt.Sprintf("reader-%d-%v", i, c)), s.o, partitionOf{input, i}, c)
			s.audience = append(s.audience, a)
			a.start()
		}
	}
}

// harm does something bad, now and then.
func (s *simulation) harm() {
	w := s.w
	if s.ready && s.net.trouble == 0 {
		s.net.trouble = 60 + w.rng.IntN(200)
	}
	if !s.ready || !w.chance(150) {
		return
	}
	switch w.rng.IntN(6) {
	case 0:
		s.n.crash(true)
	case 1:
		s.n.crash(false)
	case 2:
		if !s.n.life.over {
			s.n.disk.cutAt = s.n.disk.changes + 1 + w.rng.Int64N(30)
		}
	case 3:
		w.after(0, "stop", nil, s.n.stop).alone = true
	case 4:
		if !s.n.life.over {
			s.n.disk.slow = w.between(0, 30*time.Millisecond)
		}
	case 5:
		if len(s.net.conns) > 0 {
			s.net.conns[w.rng.IntN(len(s.net.conns))].cut("by a fault")
		}
	}
}

// heal ends all faults.
func (s *simulation) heal() {
	s.w.log("all faults end")
	s.quiet = true
	s.net.trouble = 0
	if d := s.n.disk; d != nil {
		d.slow, d.failing, d.syncFails, d.cutAt = 0, nil, 0, 0
	}
	s.n.start(0)
}

// over tells whether everything has come to an end.
func (s *simulation) over() bool { return s.ready && s.stuck() == "" }

// stuck says what has not come to its end.
func (s *simulation) stuck() string {
	if s.n.broker == nil {
		return "the broker does not serve"
	}
	for _, a := range s.authors {
		if !a.idle {
			return a.name + " is at work"
		}
	}
	for _, one := range s.obs.open {
		if m := one.v.marks; m.LastStable != m.LogEnd {
			return fmt.Sprintf("%s is not stable: %+v", one.v.name, m)
		}
	}
	for _, a := range s.audience {
		if v := s.obs.view(a.of.topic, a.of.index); v == nil || a.position != v.next {
			return a.name + " has not read everything"
		}
	}
	return ""
}

// final checks what must hold at the end.
func (s *simulation) final() {
	if s.w.failure != nil {
		return
	}
	for _, i := range s.o.items {
		switch t := i.txn; {
		case i.acked >= 0 && i.at != i.acked:
			s.w.fail("record %d was acknowledged at %s-%d offset %d and is not there", i.id, i.topic, i.partition, i.acked)
		case t != nil && t.ended == committed && i.fate != committed:
			s.w.fail("record %d of a committed transaction of %s is %v", i.id, t.id, i.fate)
		}
	}
	for _, a := range s.audience {
		a.complete()
	}
}
