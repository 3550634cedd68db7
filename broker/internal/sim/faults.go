package sim

import (
	"syscall"
	"time"

	"github.com/millrace/millrace/core/vfs"
)

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
	f.every = 20 + f.w.rng.IntN(200)
	if f.w.chance(2) {
		f.n.slow = f.w.between(0, 10*time.Millisecond)
		f.n.disk.slow = f.n.slow
	}
	if !f.w.chance(4) {
		f.net.trouble = 30 + f.w.rng.IntN(300)
	}
}

// next is called after each step.
func (f *faults) next() {
	if f.every == 0 || !f.w.chance(f.every) {
		return
	}
	switch f.w.rng.IntN(10) {
	case 0, 1:
		f.node()
	case 2:
		if !f.n.life.over {
			f.disk(f.n.disk)
		}
	case 3:
		if len(f.net.conns) > 0 {
			f.net.conns[f.w.rng.IntN(len(f.net.conns))].cut("by a fault")
		}
	case 4:
		f.clock()
	case 5:
		f.crew.side.meddle()
	default:
		f.crew.disturb()
	}
}

// node ends the run of the broker, in one of the ways in which it can end.
func (f *faults) node() {
	switch f.w.rng.IntN(6) {
	case 0:
		f.n.crash(true)
	case 1:
		f.n.crash(false)
	case 2, 3, 4:
		if !f.n.life.over {
			f.n.disk.cutAt = f.n.disk.changes + 1 + f.w.rng.Int64N(30)
		}
	default:
		f.w.after(0, "stop", nil, f.n.stop).alone = true
	}
}

// cutInSync lets the power fail in a sync that takes a while, so that much is begun and nothing of it is durable.
func (f *faults) cutInSync() {
	if !f.n.life.over && f.every > 0 {
		f.n.disk.last = f.w.between(5*time.Millisecond, 40*time.Millisecond)
	}
}

// disk makes the disk slow, full for a while, or unable to sync. A partition whose sync failed stays offline until the broker
// starts anew, so that comes soon, as an operator sees to it.
func (f *faults) disk(d *disk) {
	switch f.w.rng.IntN(4) {
	case 0, 1:
		d.slow = f.w.between(0, 30*time.Millisecond)
		f.w.log("syncs take up to %v", d.slow)
	case 2:
		d.failing, d.kinds = syscall.ENOSPC, vfs.OpCreate|vfs.OpMkdir|vfs.OpWrite
		switch f.w.rng.IntN(4) {
		case 0:
			d.failing, d.kinds = syscall.EIO, vfs.OpChanges
		case 1: // no descriptor is left
			d.failing, d.kinds = syscall.EMFILE, vfs.OpOpen|vfs.OpCreate
		}
		f.w.log("the disk: %v", d.failing)
		f.w.see("disk: " + d.failing.Error())
		f.w.after(f.w.between(time.Millisecond, 60*time.Millisecond), "room", nil, func() {
			d.failing = nil
			f.w.log("the disk works again")
			if d.broken && f.n.disk == d {
				f.n.crash(f.w.chance(2))
			}
		})
	case 3:
		d.syncFails = 1
		f.w.after(f.w.between(time.Millisecond, 60*time.Millisecond), "repair", nil, func() {
			if f.n.disk == d {
				f.n.crash(f.w.chance(2))
			}
		})
	}
}

// clock sets the node's clock, ahead or back. Timers do not follow it.
func (f *faults) clock() {
	by := f.w.between(-2*time.Second, 2*time.Second)
	if f.w.chance(4) {
		by = f.w.between(-2*time.Hour, 2*time.Hour)
	}
	f.n.skew += by
	f.w.log("the clock is set by %v", by)
}

// end repairs everything. A slow disk is no fault: what comes during a sync must be synced then too.
func (f *faults) end() {
	f.w.log("all faults end")
	f.every, f.net.trouble = 0, 0
	if d := f.n.disk; d != nil {
		d.failing, d.syncFails, d.cutAt, d.last = nil, 0, 0, 0
	}
	if f.n.skew < 0 { // or whatever waits for a time of day would wait for long
		f.n.skew = 0
	}
	if d := f.n.disk; d != nil && d.broken && !f.n.life.over {
		f.n.crash(false)
	}
	f.n.start(0)
}
