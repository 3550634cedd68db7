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
	Steps, Runs, Records, Committed, Copied, Rows int
	// Transactions are those that were committed, with copies or without.
	Transactions int
	Virtual      time.Duration
	// Seen counts occasions: error codes that clients were told, by request, and faults.
	Seen map[string]int
}

// defaultSteps and the quiet phase behind them make more than 2,000 steps.
const defaultSteps = 2000

// Within so many steps, and such a virtual time, everything must end once faults have stopped.
const (
	quietSteps = 40_000
	quietTime  = 20 * time.Minute
)

// simulation is one run.
type simulation struct {
	w    *world
	n    *node
	net  *network
	o    *oracle
	obs  *observer
	crew *crew
	bad  *faults
	// At the end the group is asked where it is.
	asked, answered bool
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
	s := &simulation{w: w}
	s.n = newNode(w, o.Log)
	s.n.bounds = newBounds(w)
	s.o = newOracle(w, s.n)
	s.net = &network{w: w, n: s.n, delay: w.between(200*time.Microsecond, 5*time.Millisecond)}
	s.obs = newObserver(w, s.n, s.o)
	s.crew = newCrew(w, s.net, s.o)
	s.crew.side = &side{now: 2, admin: &admin{s.crew.process("operator")}, o: s.o, views: s.obs.view}
	s.bad = &faults{w: w, n: s.n, net: s.net, crew: s.crew}
	s.crew.side.cut = s.bad.cutInSync
	s.n.down = s.net.cutAll
	w.settled = func(int) {
		s.n.settled()
		s.obs.look()
	}
	return s
}

func (s *simulation) result() Result {
	return Result{
		Steps: s.w.count, Runs: s.n.runs, Records: len(s.o.items), Copied: len(s.o.copied), Rows: len(s.crew.store.rows),
		Committed: len(s.o.committedOf(input)), Transactions: s.o.finished(), Virtual: s.w.now, Seen: s.w.seen,
	}
}

// run is the whole life of a simulation.
func (s *simulation) run(steps int) {
	s.n.start(0)
	a := &admin{s.crew.process("admin")}
	a.create(input, partitions, smallSegments(), func() {
		a.create(output, partitions, smallSegments(), func() {
			a.create(keyed, partitions, s.crew.table.settings(), func() {
				a.create(relaxed, partitions, s.n.bounds.settings(), func() {
					s.crew.populate()
					s.bad.begin()
				})
			})
		})
	})
	for s.w.count < steps && s.w.next(forever) {
		s.bad.next()
		if s.w.chance(400) {
			s.obs.replay()
			s.obs.tables()
		}
	}
	s.bad.end()
	s.crew.enough = true
	until, last := s.w.now+quietTime, s.w.count+quietSteps
	for look := 0; s.w.failure == nil; look++ {
		if look%16 == 0 && s.waiting() == "" {
			if s.asked && s.answered {
				break
			}
			s.askPositions()
		}
		if s.w.count > last || s.w.now > until || !s.w.next(forever) {
			s.w.fail("nothing goes wrong any more, and there is no end: %s", s.waiting())
		}
	}
	if s.w.failure == nil {
		s.obs.replay()
		s.obs.tables()
		s.crew.final()
	}
}

// waiting says what has not come to its end.
func (s *simulation) waiting() string {
	if s.n.broker == nil {
		return "the broker does not serve"
	}
	if len(s.crew.posts) == 0 {
		return "there is nobody yet"
	}
	if busy := s.crew.busy(); busy != "" {
		return busy
	}
	for _, one := range s.obs.open {
		if m := one.v.marks; m.LastStable != m.LogEnd {
			return fmt.Sprintf("%s is not stable: %+v", one.v.name, m)
		}
	}
	for _, m := range s.crew.mirrors {
		if v := m.v(); v == nil || m.end != v.next {
			return m.name + " has not read everything"
		}
	}
	for _, a := range s.crew.audience {
		if v := s.obs.view(a.of.topic, a.of.index); v == nil || a.position != v.next {
			return a.name + " has not read everything"
		}
	}
	return ""
}

// askPositions asks for the group's offsets: they must be where its committed transactions have moved them.
func (s *simulation) askPositions() {
	if s.asked {
		return
	}
	s.asked = true
	s.crew.side.positions(func(at [partitions]int64) {
		s.answered = true
		if want := s.o.positions(); at != want {
			s.w.fail("the group is at %v, its committed transactions say %v", at, want)
		}
	})
}
