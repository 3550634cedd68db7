package main

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/millrace/millrace/core/seedtest"
	"github.com/millrace/millrace/txn/twophase"
)

// victims are what is killed at a step, by SIGKILL.
type victims struct {
	program, broker, postgres bool
}

func (v victims) String() string {
	s := ""
	for _, w := range []struct {
		killed bool
		name   string
	}{{v.program, " program"}, {v.broker, " broker"}, {v.postgres, " postgres"}} {
		if w.killed {
			s += w.name
		}
	}
	return s
}

// Each set, but for the one that kills nobody.
var sets = []victims{
	{program: true}, {broker: true}, {postgres: true}, {program: true, broker: true}, {program: true, postgres: true},
	{broker: true, postgres: true}, {true, true, true},
}

var steps = []twophase.Step{twophase.StepWork, twophase.StepWritten, twophase.StepPrepared, twophase.StepDecided, twophase.StepDone}

// TestKills kills the program, the broker, PostgreSQL, or several of them, at each step of a payment, and looks at every row
// and every record after it. The seed chooses some of the cases, and their order; the long form takes all.
func TestKills(t *testing.T) {
	for _, decides := range []string{"store", "log"} {
		t.Run(decides+" decides", func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, decides)
			r := rand.New(rand.NewPCG(seedtest.New(t), 0))
			var cases []func()
			for _, step := range steps {
				for _, v := range sets {
					cases = append(cases, func() {
						t.Run(fmt.Sprintf("%s:%s", step, v), func(t *testing.T) { w.kill(t, step, v) })
					})
				}
			}
			r.Shuffle(len(cases), func(i, k int) { cases[i], cases[k] = cases[k], cases[i] })
			if !seedtest.Soak() {
				cases = cases[:4]
			}
			w.payments(t, 2)
			for _, c := range cases {
				if c(); t.Failed() {
					return
				}
			}
		})
	}
}

// kill lets the program come to a step, kills, starts again what was killed, lets it end its work, and compares.
func (w *world) kill(t *testing.T, step twophase.Step, v victims) {
	w.t = t
	w.target += 2
	w.run(w.target, step)
	w.await("at " + string(step))
	if v.program {
		w.killProgram()
	}
	if v.broker {
		w.killBroker()
	}
	if v.postgres {
		w.pg.Kill()
	}
	if v.broker {
		w.startBroker()
	}
	if v.postgres {
		w.pg.Start()
	}
	if v.program {
		w.run(w.target, "")
	} else {
		w.wake()
	}
	w.await("orders, a record for each")
	w.ended(false)
	w.check()
}

// payments makes some without a fault.
func (w *world) payments(t *testing.T, n int) {
	w.t = t
	w.target += n
	w.run(w.target, "")
	w.await(fmt.Sprintf("%d orders, a record for each", w.target))
	w.ended(false)
}
