package sim

import (
	"context"
	"log/slog"
	"time"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/internal/api"
	"github.com/millrace/millrace/broker/internal/listener"
	"github.com/millrace/millrace/broker/internal/seam"
	"github.com/millrace/millrace/core/vfs"
)

// node is the machine that the broker runs on: its disk, its clock, and the broker while there is one.
type node struct {
	w    *world
	mem  *vfs.Mem // what the disk holds for the next run
	skew time.Duration
	cuts int // how often the power has failed
	// bounds are the settings of the relaxed topic.
	bounds bounds
	// carry is the size of append journals, which differs from seed to seed: none, full now and then, never full.
	carry int64
	// internal are settings of the internal topics; compact says that these are compacted all the time.
	internal map[string]string
	compact  bool
	// slow is how long a sync takes at most, in runs that begin from now on.
	slow time.Duration

	life   *life // of the run under way
	disk   *disk
	broker *broker.Broker // nil while it starts
	api    *api.Server    // nil unless it serves
	runs   int
	// restarting says that a start is planned.
	restarting bool
	ending     bool // a clean stop is under way
	log        slog.Handler

	// down is called when a run has ended, up when one serves.
	down, up func()
}

func newNode(w *world, log slog.Handler) *node {
	n := &node{w: w, carry: [...]int64{-1, 16 << 10, 32 << 10, 1 << 20}[w.rng.IntN(4)], mem: vfs.NewMem(), log: log, life: &life{over: true}, down: func() {}, up: func() {}}
	if n.compact = w.chance(2); n.compact {
		n.internal = map[string]string{"internal.segment.bytes": "3000", "min.cleanable.dirty.ratio": "0.01"}
	}
	return n
}

// config is a broker in which things that take days happen in seconds.
func (n *node) config() broker.Config {
	return broker.Config{
		Logger: slog.New(n.log), InternalPartitions: 2, NoAutoCreate: true,
		GroupInitialRebalanceDelay: 2 * time.Millisecond, GroupMinSessionTimeout: 100 * time.Millisecond,
		RetentionCheckInterval: 150 * time.Millisecond, CompactionInterval: 60 * time.Millisecond, ScrubInterval: time.Second,
	}
}

// start plans a start of the broker.
func (n *node) start(after time.Duration) {
	if n.restarting || !n.life.over {
		return
	}
	n.restarting = true
	n.w.after(after, "start", nil, n.run).alone = true
}

// run starts the broker. Other steps go on meanwhile, a power cut among them.
func (n *node) run() {
	n.restarting = false
	of := &life{}
	n.life, n.runs = of, n.runs+1
	d := &driver{w: n.w, of: of, skew: &n.skew}
	n.disk = &disk{w: n.w, mem: n.mem, slow: n.slow, cuts: &n.cuts, wait: func() bool { return d.flushing }}
	if n.runs > 1 && n.w.chance(4) { // also a start is not safe from a power cut
		n.disk.cutAt = 1 + n.w.rng.Int64N(60)
	}
	n.w.log("broker starts, run %d", n.runs)
	ctx := seam.With(context.Background(), seam.Options{
		FS: n.disk, Clock: d, Random: n.w, CarryBytes: n.carry, InternalTopics: n.internal,
		OpenFiles: 3,
		Serve: func(s listener.Service) {
			if !of.over {
				n.api = s.(*api.Server)
			}
		},
	})
	b, err := broker.Start(ctx, n.config())
	switch {
	case of.over:
		return // crashed meanwhile, and everything is arranged
	case n.disk.off:
		n.ended("while it started")
		return
	case err != nil:
		n.w.fail("the broker does not start: %w", err)
		return
	}
	n.broker = b
	n.disk.cutAt = 0
	n.w.log("broker serves, run %d", n.runs)
	n.up()
}

// crash ends the run at once: the power fails, or the process is killed.
func (n *node) crash(power bool) {
	if n.life.over {
		return
	}
	if power {
		n.disk.cut()
	} else {
		n.disk.kill()
	}
	n.ended("crash")
}

// ended lets go of a run whose disk is off, and plans the next one.
func (n *node) ended(why string) {
	n.w.log("broker is gone: %s", why)
	n.w.see("broker gone: " + why)
	n.life.over = true
	n.mem = n.disk.left
	n.broker, n.api, n.ending = nil, nil, false
	n.down()
	n.start(n.w.between(time.Millisecond, 40*time.Millisecond))
}

// stop ends the run in order.
func (n *node) stop() {
	b := n.broker
	if b == nil || n.ending {
		return
	}
	n.ending = true
	of := n.life
	n.w.log("broker stops")
	err := b.Close()
	if of.over {
		return
	}
	if n.disk.off {
		n.ended("while it stopped")
		return
	}
	n.w.log("broker stopped: %v", err)
	n.disk.kill()
	n.ended("stopped")
}

// settled notices a power cut that a disk operation of the last step has met.
func (n *node) settled() {
	if !n.life.over && n.disk.off && n.broker != nil && !n.ending {
		n.ended("power cut")
	}
}
