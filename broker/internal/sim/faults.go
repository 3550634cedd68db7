package sim

import "time"

// faults is what goes wrong, and how often. Each run has its own mix.
type faults struct {
	w    *world
	n    *node
	net  *network
	crew *crew
	// every is how many steps there are between two faults, on average; 0 for none yet.
	every int
}

// begin lets things go wrong from now on.
func (f *faults) begin() {
	f.every = 40 + f.w.rng.IntN(300)
	if !f.w.chance(4) {
		f.net.trouble = 30 + f.w.rng.IntN(300)
	}
}

// next is called after each step.
func (f *faults) next() {
	if f.every == 0 || !f.w.chance(f.every) {
		return
	}
	switch f.w.rng.IntN(8) {
	case 0:
		f.n.crash(true)
	case 1:
		f.n.crash(false)
	case 2:
		if !f.n.life.over {
			f.n.disk.cutAt = f.n.disk.changes + 1 + f.w.rng.Int64N(30)
		}
	case 3:
		f.w.after(0, "stop", nil, f.n.stop).alone = true
	case 4:
		if !f.n.life.over {
			f.n.disk.slow = f.w.between(0, 30*time.Millisecond)
		}
	case 5:
		if len(f.net.conns) > 0 {
			f.net.conns[f.w.rng.IntN(len(f.net.conns))].cut("by a fault")
		}
	default:
		f.crew.disturb()
	}
}

// end repairs everything.
func (f *faults) end() {
	f.w.log("all faults end")
	f.every, f.net.trouble = 0, 0
	if d := f.n.disk; d != nil {
		d.slow, d.failing, d.syncFails, d.cutAt = 0, nil, 0, 0
	}
	f.n.start(0)
}
